/**
 * Removes finished tasks that are too old or too many, and frees their space; off by default (decision C5). Removes old
 * records of the audit log and old usage by day.
 */

import type { Clock, Report } from "../base/index.js";
import {
  type AuditExpire,
  type Runtime,
  type Store,
  type TaskRow,
  type UsageExpire,
  utcDay,
} from "../engine/index.js";
import type { Loop } from "../journal/index.js";
import { systemLoop } from "../journal/index.js";
import type { RetentionLimits } from "./settings.js";

/** When ended tasks, records of the audit log and usage by day are removed. */
export interface RetentionOptions {
  /** How long a finished task is kept, in milliseconds. Default: without limit. */
  readonly maxAge?: number;
  /** How many finished tasks are kept. Default: without limit. */
  readonly maxTasks?: number;
  /** How long records of the audit log are kept, in milliseconds. Default: without limit. */
  readonly auditAge?: number;
  /** How long usage by day is kept, in milliseconds. What callers used in total is kept. Default: without limit. */
  readonly usageAge?: number;
  /** Milliseconds between two rounds. Default: one minute. */
  readonly interval?: number;
}

/** 0 sets no limit. */
export function retentionFrom(limits: RetentionLimits): RetentionOptions {
  const { maxAge, maxTasks, auditAge, usageAge } = limits;
  return {
    ...(maxAge > 0 && { maxAge }),
    ...(maxTasks > 0 && { maxTasks }),
    ...(auditAge > 0 && { auditAge }),
    ...(usageAge > 0 && { usageAge }),
  };
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
    await this.#expireAudit();
    await this.#expireUsage();
    if (removed > 0 && !this.#stopped) await this.#store.reclaim?.();
    return removed;
  }

  async #expireAudit(): Promise<void> {
    const { auditAge } = this.#options;
    const { approvals } = this.#store;
    if (auditAge === undefined || approvals === undefined) return;
    const expire: AuditExpire = { kind: "audit.expire", before: this.#clock.now() - auditAge };
    while (!this.#stopped && ((await approvals.oldestAudit()) ?? Infinity) < expire.before) {
      await this.#store.commit({ appends: [], rows: [expire] });
    }
  }

  async #expireUsage(): Promise<void> {
    const { usageAge } = this.#options;
    const { usage } = this.#store;
    if (usageAge === undefined || usage === undefined) return;
    const expire: UsageExpire = { kind: "usage.expire", before: utcDay(this.#clock.now() - usageAge) };
    const isOld = (day: string | undefined): boolean => day !== undefined && day < expire.before;
    while (!this.#stopped && isOld(await usage.oldestDay())) {
      await this.#store.commit({ appends: [], rows: [expire] });
    }
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
