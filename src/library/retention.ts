/** Removes finished tasks that are too old or too many, and gives the space back (decisions C5: off by default). */
import type { Clock, Loop, Store, TaskRow } from "../engine/ports.js";
import type { Problem, Runtime } from "../engine/runtime/index.js";
import { systemLoop } from "../journal/system.js";

export interface RetentionOptions {
  /** Milliseconds after its end that a finished task is kept. */
  readonly maxAge?: number;
  /** How many finished tasks are kept. */
  readonly maxTasks?: number;
  /** Milliseconds between two rounds. Default: one minute. */
  readonly interval?: number;
}

const PAGE = 200;

export class Retention {
  readonly #options: RetentionOptions;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #loop: Loop;
  readonly #report: (problem: Problem) => void;
  #cancel = (): void => {};
  #stopped = false;
  #round: Promise<number> | undefined;

  constructor(parts: {
    options: RetentionOptions;
    store: Store;
    runtime: Runtime;
    clock: Clock;
    loop?: Loop;
    report: (problem: Problem) => void;
  }) {
    this.#options = parts.options;
    this.#store = parts.store;
    this.#runtime = parts.runtime;
    this.#clock = parts.clock;
    this.#loop = parts.loop ?? systemLoop;
    this.#report = parts.report;
  }

  start(): void {
    const { interval = 60_000 } = this.#options;
    this.#cancel = this.#clock.after(interval, () => {
      this.sweep()
        .catch((cause: unknown) => {
          if (this.#stopped) return;
          this.#report({ code: "retention_failed", message: `retention failed: ${String(cause)}`, cause });
        })
        .finally(() => {
          if (!this.#stopped) this.start();
        });
    });
  }

  /** No further task is removed. One whose removal is on its way to the disk may still go. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** One round. Returns how many tasks were removed. */
  sweep(): Promise<number> {
    this.#round ??= this.#sweep().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #sweep(): Promise<number> {
    const { maxAge, maxTasks } = this.#options;
    let removed = 0;
    let rows: TaskRow[];
    let after: TaskRow | undefined;
    do {
      rows = await this.#store.tasks.finished({
        ...(maxAge !== undefined && { updatedBefore: this.#clock.now() - maxAge }),
        ...(maxTasks !== undefined && { beyondNewest: maxTasks }),
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      removed += await this.#remove(rows);
      // Behind those that cannot go now there may be others that can.
      after = rows.at(-1);
    } while (rows.length === PAGE && !this.#stopped);
    if (removed > 0 && !this.#stopped) await this.#store.reclaim?.();
    return removed;
  }

  /** One by one: a long row of removals would keep everybody else from writing. */
  async #remove(rows: readonly TaskRow[]): Promise<number> {
    let removed = 0;
    for (const { key, openWork } of rows) {
      if (this.#stopped) break;
      if (openWork !== true && (await this.#runtime.remove(key))) removed++;
      await new Promise<void>((resolve) => this.#loop.soon(resolve));
    }
    return removed;
  }
}
