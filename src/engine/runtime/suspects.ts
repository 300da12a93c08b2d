/**
 * Turns that the end of a process cut short more than once start one at a time. One of them may be what ends the
 * process; were they started together, it would take the innocent ones down with it until all of them count as poison.
 */
import type { Clock, JournalKey } from "../../journal/ports.js";

/** Milliseconds after which a turn that is still under way no longer keeps the next one waiting. */
const LONGEST = 1_000;

export class Suspects {
  readonly #clock: Clock;
  readonly #offer: (key: JournalKey) => void;
  readonly #waiting = new Set<JournalKey>();
  #current:
    | { readonly key: JournalKey; readonly agent: string; readonly cancelTimer: () => void }
    | undefined;

  /** `offer` is called for each task that was kept waiting when there is room for the next turn. */
  constructor(clock: Clock, offer: (key: JournalKey) => void) {
    this.#clock = clock;
    this.#offer = offer;
  }

  /** Whether a suspect turn of this task may start now; if not, the task is offered again later. */
  admits(key: JournalKey): boolean {
    if (this.#current === undefined) return true;
    this.#waiting.add(key);
    return false;
  }

  begin(key: JournalKey, agent: string): void {
    const cancelTimer = this.#clock.after(LONGEST, () => this.#end());
    this.#current = { key, agent, cancelTimer };
  }

  ended(key: JournalKey, agent: string): void {
    if (this.#current?.key === key && this.#current.agent === agent) this.#end();
  }

  #end(): void {
    this.#current?.cancelTimer();
    this.#current = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const key of waiting) this.#offer(key);
  }
}
