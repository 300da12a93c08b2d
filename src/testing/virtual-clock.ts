import type { Clock } from "../base/index.js";

interface Timer {
  readonly due: number;
  readonly number: number;
  readonly callback: () => void;
}

/** The time at which a virtual clock starts, in milliseconds since the epoch. */
export const EPOCH = Date.UTC(2026, 2, 2, 8, 15, 30);

/**
 * A clock that moves only when a test says so. Timers fire in the order in which they are due; those due at the same
 * time fire in the order in which they were set.
 *
 * @example
 * const clock = new VirtualClock();
 * clock.after(1_000, () => console.log("one second later"));
 * clock.advance(1_000);
 */
export class VirtualClock implements Clock {
  #now: number;
  #count = 0;
  readonly #timers = new Set<Timer>();

  /** @param start Milliseconds since the epoch. */
  constructor(start = EPOCH) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#now + ms, number: this.#count++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Number of timers that have not fired. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer fires; undefined without timers. */
  get untilNext(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.due - this.#now);
  }

  /** Moves the time forward and fires every timer that is due by then. */
  advance(ms: number): void {
    const until = this.#now + ms;
    while (this.step(until));
    this.#now = until;
  }

  /** Moves to the next timer that is due by `until` and fires it. Returns whether there was one. */
  step(until = Number.POSITIVE_INFINITY): boolean {
    const next = this.#next();
    if (next === undefined || next.due > until) return false;
    this.#timers.delete(next);
    this.#now = Math.max(this.#now, next.due);
    next.callback();
    return true;
  }

  /** Moves the time forward without firing timers, as when a machine sleeps. */
  jump(ms: number): void {
    this.#now += ms;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.due < first.due) first = timer;
      else if (timer.due === first.due && timer.number < first.number) first = timer;
    }
    return first;
  }
}
