/** Removes finished tasks that are too old or too many, and frees their space. Off by default (decision C5). */

import type { Clock, Report } from "../base/index.js";
import type { Runtime, Store, TaskRow } from "../engine/index.js";
import type { Loop } from "../journal/index.js";
import { systemLoop } from "../journal/index.js";
import type { RetentionLimits } from "./settings.js";

/** When ended tasks are removed. */
export interface RetentionOptions {
  /** How long a finished task is kept, in milliseconds. Default: without limit. */
  readonly maxAge?: number;
  /** How many finished tasks are kept. Default: without limit. */
  readonly maxTasks?: number;
  /** Milliseconds between two rounds. Default: one minute. */
  readonly interval?: number;
}

/** Decision C5: nothing is removed unless configured. */
export function retentionFrom({ maxAge, maxTasks }: RetentionLimits): RetentionOptions | undefined {
  if (maxAge === 0 && maxTasks === 0) return undefined;
  return { ...(maxAge > 0 && { maxAge }), ...(maxTasks > 0 && { maxTasks }) };
}

const PAGE = 200;

export class Retention {
  readonly #options: RetentionOptions;
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #loop: Loop;
  readonly #report: Report;
  #cancel = (): void => {};
  #stopped = false;
  #round: Promise<number> | undefined;

  constructor(parts: {
    options: RetentionOptions;
    store: Store;
    runtime: Runtime;
    clock: Clock;
    loop?: Loop;
    report: Report;
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

  /** Removes no further task. A removal that is being written may still complete. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** One round. Returns the number of removed tasks. */
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
      // Tasks that cannot be removed now must not hide those after them.
      after = rows.at(-1);
    } while (rows.length === PAGE && !this.#stopped);
    if (removed > 0 && !this.#stopped) await this.#store.reclaim?.();
    return removed;
  }

  /** One at a time: a long series of removals would delay other writes. */
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
