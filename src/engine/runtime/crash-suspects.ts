/**
 * Starts turns one at a time if they were interrupted by more than one process end, because one of them may cause the
 * crash. If they started together, the harmless ones would be interrupted with it until all of them count as poison.
 */

import type { Clock } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";

/** Milliseconds after which the next turn starts even if the current one is still running. */
const LONGEST = 1_000;

export class CrashSuspects {
  readonly #clock: Clock;
  readonly #offer: (key: JournalKey) => void;
  readonly #waiting = new Set<JournalKey>();
  #current:
    | { readonly key: JournalKey; readonly agent: string; readonly cancelTimer: () => void }
    | undefined;

  /** `offer` is called for each waiting task when the next turn may start. */
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
