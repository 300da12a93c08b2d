/** Limits the memory for request bodies, before the sender of a request is authenticated. */
import { type Release, Semaphore } from "../../base/index.js";

const MIB = 1024 * 1024;

/** A semaphore that counts bytes. Each caller can hold a quarter, so that one caller cannot exhaust the total. */
export function createBodyMemory(total = 64 * MIB): Semaphore {
  return new Semaphore({ limit: total, perKey: total / 4 });
}

const SMALLEST = 16 * 1024;

/**
 * A body that is being received. It is copied into one buffer: kept as separate chunks, a body of very many small
 * chunks would take many times its size.
 */
export class IncomingBody {
  readonly #memory: Semaphore;
  readonly #held: Release[] = [];
  readonly #caller: string;
  readonly #limit: number;
  #buffer = Buffer.alloc(0);
  #size = 0;

  /** Keeps at most `limit + 1` bytes, which is enough to detect that a body is too long. */
  constructor(memory: Semaphore, caller: string, limit: number) {
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

  /** Returns whether the chunk fits. */
  add(part: Uint8Array): boolean {
    const most = this.#limit + 1;
    const size = Math.min(most, this.#size + part.length);
    if (size > this.#buffer.length) {
      const capacity = Math.min(most, Math.max(size, 2 * this.#buffer.length, SMALLEST));
      const release = this.#memory.tryAcquire(this.#caller, capacity - this.#buffer.length);
      if (release === undefined) return false;
      this.#held.push(release);
      const larger = Buffer.allocUnsafe(capacity);
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(part.subarray(0, size - this.#size), this.#size);
    this.#size = size;
    return true;
  }

  /** Releases the memory. Call it when the body is no longer read. */
  release(): void {
    for (const release of this.#held.splice(0)) release();
    this.#buffer = Buffer.alloc(0);
    this.#size = 0;
  }
}
