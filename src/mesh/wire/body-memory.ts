/** Memory for the bodies of requests: bounded before anybody has said who they are. */

const MIB = 1024 * 1024;

export interface BodyMemoryLimits {
  /** Bytes, of everybody together. */
  readonly total: number;
  /** Bytes, of one caller: nobody alone keeps all others out. */
  readonly perCaller: number;
}

const DEFAULT_BODY_MEMORY: BodyMemoryLimits = { total: 64 * MIB, perCaller: 16 * MIB };

export class BodyMemory {
  readonly #limits: BodyMemoryLimits;
  readonly #callers = new Map<string, number>();
  #held = 0;

  constructor(limits: BodyMemoryLimits = DEFAULT_BODY_MEMORY) {
    this.#limits = limits;
  }

  /** Bytes that are held at the moment. */
  get held(): number {
    return this.#held;
  }

  /** Whether there was room for them. */
  take(caller: string, bytes: number): boolean {
    const own = (this.#callers.get(caller) ?? 0) + bytes;
    if (own > this.#limits.perCaller || this.#held + bytes > this.#limits.total) return false;
    this.#callers.set(caller, own);
    this.#held += bytes;
    return true;
  }

  give(caller: string, bytes: number): void {
    const own = (this.#callers.get(caller) ?? 0) - bytes;
    if (own > 0) this.#callers.set(caller, own);
    else this.#callers.delete(caller);
    this.#held -= bytes;
  }
}

const SMALLEST = 16 * 1024;

/**
 * One body while it comes in. It is copied into one piece of memory: kept as it comes, a body of very many small parts
 * would take many times its size.
 */
export class IncomingBody {
  readonly #memory: BodyMemory;
  readonly #caller: string;
  readonly #limit: number;
  #buffer = Buffer.alloc(0);
  #size = 0;

  /** Of more than `limit` bytes, `limit + 1` are kept: enough to know that it is too long. */
  constructor(memory: BodyMemory, caller: string, limit: number) {
    this.#memory = memory;
    this.#caller = caller;
    this.#limit = limit;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#size);
  }

  get isTooLong(): boolean {
    return this.#size > this.#limit;
  }

  /** Whether there was room for it. */
  add(part: Uint8Array): boolean {
    const most = this.#limit + 1;
    const size = Math.min(most, this.#size + part.length);
    if (size > this.#buffer.length) {
      const capacity = Math.min(most, Math.max(size, 2 * this.#buffer.length, SMALLEST));
      if (!this.#memory.take(this.#caller, capacity - this.#buffer.length)) return false;
      const larger = Buffer.allocUnsafe(capacity);
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(part.subarray(0, size - this.#size), this.#size);
    this.#size = size;
    return true;
  }

  /** To be called when nobody reads it any more. */
  forget(): void {
    this.#memory.give(this.#caller, this.#buffer.length);
    this.#buffer = Buffer.alloc(0);
    this.#size = 0;
  }
}
