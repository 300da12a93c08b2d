import type { Clock } from "../../engine/ports.js";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on. */
export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  #timers = new Set<Timer>();

  constructor(start = 1_800_000_000_000) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    this.#order += 1;
    const timer: Timer = { at: this.#now + ms, order: this.#order, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Goes to the next timer, if there is one by then, and calls it. */
  step(until = Number.POSITIVE_INFINITY): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) {
        next = timer;
      }
    }
    if (next === undefined || next.at > until) return false;
    this.#timers.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.callback();
    return true;
  }

  /** Moves on without calling anything. */
  jump(ms: number): void {
    this.#now += ms;
  }
}
