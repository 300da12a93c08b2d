/** Removes finished tasks that are too old or too many, and gives the space back (decisions C5: off by default). */
import type { Clock, Store } from "../engine/ports.js";
import type { Problem, Runtime } from "../engine/runtime/index.js";

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
  readonly #report: (problem: Problem) => void;
  #cancel: (() => void) | undefined;
  #round: Promise<number> | undefined;

  constructor(parts: {
    options: RetentionOptions;
    store: Store;
    runtime: Runtime;
    clock: Clock;
    report: (problem: Problem) => void;
  }) {
    this.#options = parts.options;
    this.#store = parts.store;
    this.#runtime = parts.runtime;
    this.#clock = parts.clock;
    this.#report = parts.report;
  }

  start(): void {
    const { interval = 60_000 } = this.#options;
    this.#cancel = this.#clock.after(interval, () => {
      this.sweep()
        .catch((cause: unknown) =>
          this.#report({ code: "retention_failed", message: `retention failed: ${String(cause)}`, cause }),
        )
        .finally(() => {
          if (this.#cancel !== undefined) this.start();
        });
    });
  }

  async stop(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#round?.catch(() => {});
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
    for (;;) {
      const rows = await this.#store.tasks.finished({
        ...(maxAge !== undefined && { updatedBefore: this.#clock.now() - maxAge }),
        ...(maxTasks !== undefined && { beyondNewest: maxTasks }),
        limit: PAGE,
      });
      const gone = await Promise.all(rows.map((row) => this.#runtime.remove(row.key)));
      const count = gone.filter(Boolean).length;
      removed += count;
      if (rows.length < PAGE || count === 0) break;
    }
    if (removed > 0) await this.#store.reclaim?.();
    return removed;
  }
}
