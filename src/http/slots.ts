/** Limits concurrency in total and per caller, so that one caller cannot exhaust the limit (law 5). */
import { MailroomError, type Release, Semaphore } from "../base/index.js";

export class Slots {
  readonly #what: string;
  readonly #limit: number;
  readonly #perCaller: number;
  readonly #semaphore: Semaphore;

  constructor(what: string, limit: number, perCaller: number) {
    this.#what = what;
    this.#limit = limit;
    this.#perCaller = perCaller;
    this.#semaphore = new Semaphore({ limit, perKey: perCaller });
  }

  get taken(): number {
    return this.#semaphore.inUse;
  }

  /**
   * Acquires a slot. Returns a function that releases it, once.
   * @throws MailroomError `overloaded`
   */
  take(caller: string): Release {
    const release = this.#semaphore.tryAcquire(caller);
    if (release !== undefined) return release;
    const isCallers = this.#semaphore.inUseBy(caller) >= this.#perCaller;
    const limit = isCallers ? `${this.#perCaller} per caller` : `${this.#limit} in all`;
    throw new MailroomError("overloaded", `no more ${this.#what} at once (${limit}): retry later`);
  }
}
