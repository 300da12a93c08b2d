/**
 * The simulated world: it controls time and every wait. Everything that happens later is an event. The seed chooses among
 * the due events; if none is due, time advances to the next one.
 */

import type { Clock } from "../../src/base/index.js";
import type { Loop } from "../../src/journal/ports.js";
import { EPOCH } from "../../src/testing/virtual-clock.js";
import { type Random, seededRandom } from "../kit/seeded.js";

/** One process, from its start to its death. Events of a dead process never happen. */
export class Life {
  alive = true;
  /** Whether it was closed in an orderly way. In a program that keeps running it may still exist. */
  closed = false;
  /** Whether there was a longer outage of writes. */
  degraded = false;
  /** The offset of its wall clock. */
  clockOffset = 0;
  /** The latest time that its wall clock has shown. */
  latestTime = 0;
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

/** A law was violated. */
export class Violation extends Error {
  override readonly name = "Violation";
}

interface Event {
  readonly at: number;
  /** Undefined for events of the world, which happen regardless of the processes. */
  readonly life: Life | undefined;
  run: (() => void) | undefined;
}

export class World {
  readonly seed: number;
  /** Milliseconds since the start of the simulation. */
  now = 0;
  steps = 0;
  /** From now on no fault occurs and all work finishes. */
  hurried = false;
  readonly #order: Random;
  readonly #lines: string[] | undefined;
  #events: Event[] = [];
  #ids = 0;
  #words = 0;
  #violation: Violation | undefined;

  constructor(seed: number, options: { readonly trace: boolean }) {
    this.seed = seed;
    this.#order = this.stream("order");
    this.#lines = options.trace ? [] : undefined;
  }

  /** Independent random choices for each purpose, so that removing an operation from a plan changes little else. */
  stream(purpose: string): Random {
    let mixed = this.seed >>> 0;
    for (let at = 0; at < purpose.length; at++) mixed = Math.imul(mixed ^ purpose.charCodeAt(at), 0x01000193);
    return seededRandom(mixed);
  }

  /** A unique text. */
  word(): string {
    return `${++this.#words}`;
  }

  /** Sequential ids in the form of UUIDs. */
  id(version: 4 | 7): string {
    const count = (++this.#ids).toString(16).padStart(12, "0");
    return `00000000-0000-${version}000-8000-${count}`;
  }

  get timestamp(): string {
    return new Date(EPOCH + this.now).toISOString();
  }

  later(ms: number, run: () => void, life?: Life): () => void {
    const event: Event = { at: this.now + ms, life, run };
    this.#events.push(event);
    return () => {
      event.run = undefined;
    };
  }

  clockOf(life: Life): Clock {
    return {
      now: () => {
        const time = EPOCH + Math.floor(this.now) + life.clockOffset;
        life.latestTime = Math.max(life.latestTime, time);
        return time;
      },
      after: (ms, callback) => this.later(Math.max(0, ms), callback, life),
    };
  }

  loopOf(life: Life): Loop {
    return {
      soon: (callback) => {
        this.later(0, callback, life);
      },
      micro: (callback) => queueMicrotask(() => life.alive && this.#guarded(callback)),
    };
  }

  /** Recorded instead of thrown, because the code under test catches errors. The first violation counts. */
  violate(what: string): void {
    if (this.#violation !== undefined) return;
    this.#violation = new Violation(what);
    this.note("VIOLATION", what);
  }

  get violation(): Violation | undefined {
    return this.#violation;
  }

  note(what: string, ...details: readonly (string | number)[]): void {
    this.#lines?.push(`${String(Math.floor(this.now)).padStart(5)} ${what} ${details.join(" ")}`.trimEnd());
  }

  get tracing(): boolean {
    return this.#lines !== undefined;
  }

  get trace(): readonly string[] {
    return this.#lines ?? [];
  }

  /** Runs one event and everything that follows from it immediately. Returns false if no event is left. */
  async step(): Promise<boolean> {
    const event = this.#next();
    if (event === undefined) return false;
    const { run } = event;
    event.run = undefined;
    this.steps++;
    if (run !== undefined) this.#guarded(run);
    await settled();
    if (this.#violation !== undefined) throw this.#violation;
    return true;
  }

  get isIdle(): boolean {
    return !this.#events.some(isPending);
  }

  #next(): Event | undefined {
    let due: Event[] = [];
    let earliest = Number.POSITIVE_INFINITY;
    let kept = 0;
    for (const event of this.#events) {
      if (!isPending(event)) continue;
      this.#events[kept++] = event;
      if (event.at > earliest && event.at > this.now) continue;
      if (event.at <= this.now) {
        if (earliest > this.now) due = [];
        earliest = this.now;
        due.push(event);
      } else if (event.at < earliest) {
        earliest = event.at;
        due = [event];
      } else {
        due.push(event);
      }
    }
    this.#events.length = kept;
    const chosen = due[this.#order.int(due.length)];
    if (chosen !== undefined && chosen.at > this.now) this.now = chosen.at;
    return chosen;
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.violate(`uncaught: ${describe(error)}`);
    }
  }
}

function isPending(event: Event): boolean {
  return event.run !== undefined && event.life?.alive !== false;
}

export function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Resolves when all pending promise callbacks have run: code in the simulation waits only for the world. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
