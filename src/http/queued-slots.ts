/**
 * Limits expensive work: a few units per caller run at once, and further ones wait. `Slots` rejects callers instead.
 */
import { type Release, Semaphore } from "../base/index.js";
import type { Slots } from "./slots.js";

export class QueuedSlots {
  readonly #slots: Slots;
  readonly #semaphore: Semaphore;

  /**
   *
   * @param slots limits running and waiting calls
   */
  constructor(slots: Slots, atOnce: number) {
    this.#slots = slots;
    this.#semaphore = new Semaphore({ perKey: atOnce });
  }

  /**
   * Resolves when the caller has a slot. Returns a function that releases it, once.
   * @throws MailroomError `overloaded` when too many calls wait
   */
  async take(caller: string): Promise<Release> {
    const leave = this.#slots.take(caller);
    const release = await this.#semaphore.acquire(caller);
    return () => {
      leave();
      release();
    };
  }
}
