/** What callers make the server remember beside conversations: agents, scopes and filters, counted in bytes by caller. */
import { MapError, roughSize } from "../../conversations/index.js";

interface Charge {
  readonly caller: string;
  readonly bytes: number;
}

export class Registrations {
  readonly #limit: number;
  readonly #charges = new Map<object, Charge>();
  readonly #byCaller = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Bytes that the caller's registrations take. */
  of(caller: string): number {
    return this.#byCaller.get(caller) ?? 0;
  }

  /** Whether there is room for a value, in place of an item if there was one. */
  fits(caller: string, value: unknown, replaced?: object): boolean {
    const charge = replaced === undefined ? undefined : this.#charges.get(replaced);
    const freed = charge?.caller === caller ? charge.bytes : 0;
    return this.of(caller) - freed + roughSize(value) <= this.#limit;
  }

  /** @throws MapError QUOTA_EXCEEDED */
  assertFits(caller: string, value: unknown, replaced?: object): void {
    if (this.fits(caller, value, replaced)) return;
    throw new MapError(
      "QUOTA_EXCEEDED",
      `the agents, scopes and filters of one caller can take ${this.#limit} bytes; remove some`,
      { limit: this.#limit },
    );
  }

  /** Counts an item, or counts it again after it changed. */
  charge(item: object, caller: string, value: unknown): void {
    this.release(item);
    const bytes = roughSize(value);
    this.#charges.set(item, { caller, bytes });
    this.#byCaller.set(caller, this.of(caller) + bytes);
  }

  release(item: object): void {
    const charge = this.#charges.get(item);
    if (charge === undefined) return;
    this.#charges.delete(item);
    const left = this.of(charge.caller) - charge.bytes;
    if (left > 0) this.#byCaller.set(charge.caller, left);
    else this.#byCaller.delete(charge.caller);
  }
}
