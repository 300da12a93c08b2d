/** A clock that stands still until it is told to go on. */
import type { Clock } from "../../src/engine/ports.js";

interface Timer {
  readonly due: number;
  readonly number: number;
  readonly callback: () => void;
}

export const EPOCH = Date.UTC(2026, 2, 2, 8, 15, 30);

export class VirtualClock implements Clock {
  #now = EPOCH;
  #set = 0;
  #timers: Timer[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#now + ms, number: this.#set++, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Lets time pass and rings what is due, in order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.due > until) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.due);
      next.callback();
    }
    this.#now = until;
  }

  /** Milliseconds until something rings; nothing if nothing will. */
  get untilNext(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.due - this.#now);
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
