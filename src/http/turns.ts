/**
 * Work that takes much memory or time: of each caller a few things at once, and the rest waits. Unlike `Places`, which
 * turns callers away, this is not felt by those who ask for ordinary things.
 */
import type { Places } from "./places.js";

export class Turns {
  readonly #places: Places;
  readonly #atOnce: number;
  readonly #callers = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  /** @param places those who have their turn or wait for it */
  constructor(places: Places, atOnce: number) {
    this.#places = places;
    this.#atOnce = atOnce;
  }

  /**
   * Resolves when it is the caller's turn; the returned function ends it, once.
   * @throws HttpError `overloaded` when too many wait
   */
  async take(caller: string): Promise<() => void> {
    const leave = this.#places.take(caller);
    const mine = this.#callers.get(caller) ?? { running: 0, waiting: [] };
    this.#callers.set(caller, mine);
    if (mine.running < this.#atOnce) mine.running++;
    else await new Promise<void>((resolve) => mine.waiting.push(resolve));
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      leave();
      // The next one takes over where this one stops, so nobody can come between.
      const next = mine.waiting.shift();
      if (next !== undefined) next();
      else if (--mine.running === 0) this.#callers.delete(caller);
    };
  }
}
