/** Work for one caller is done in slices, so that it does not delay other callers (law 8). */

/** The end of a slice: milliseconds of work, or bytes. */
const SLICE = { milliseconds: 10, bytes: 1024 * 1024 };

/** One piece of work for one caller. */
export class WorkSlice {
  #begun = performance.now();
  #bytes = 0;

  /** Counts what was done. Resolves when the work may continue: at once, or after other callers had a turn. */
  async did(bytes = 0): Promise<void> {
    this.#bytes += bytes;
    if (this.#bytes < SLICE.bytes && performance.now() - this.#begun < SLICE.milliseconds) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#begun = performance.now();
    this.#bytes = 0;
  }
}

interface Used {
  milliseconds: number;
  bytes: number;
}

/** Synchronous work for many callers: each has one slice per turn of the event loop. */
export class FairTurns {
  readonly #used = new Map<string, Used>();
  #waiting: (() => void)[] = [];
  #scheduled = false;

  /** Whether the caller has anything left of its slice. */
  mayWork(caller: string): boolean {
    const used = this.#used.get(caller);
    return used === undefined || (used.milliseconds < SLICE.milliseconds && used.bytes < SLICE.bytes);
  }

  work(caller: string, bytes: number, act: () => void): void {
    const begun = performance.now();
    try {
      act();
    } finally {
      const used = this.#used.get(caller) ?? { milliseconds: 0, bytes: 0 };
      used.milliseconds += performance.now() - begun;
      used.bytes += bytes;
      this.#used.set(caller, used);
      this.#schedule();
    }
  }

  /**
   * For work that may take the whole slice: undefined if it can begin now, or a promise for the turn in which it can.
   * Either way nothing else of the caller begins in that turn.
   */
  whole(caller: string): Promise<void> | undefined {
    if (!this.mayWork(caller)) {
      return new Promise<void>((resolve) => this.next(resolve)).then(() => this.whole(caller));
    }
    this.work(caller, SLICE.bytes, () => {});
    return undefined;
  }

  /** Calls back in the next turn, after those that asked before. */
  next(act: () => void): void {
    this.#waiting.push(act);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#used.clear();
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const act of waiting) act();
    });
  }
}
