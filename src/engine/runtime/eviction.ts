/** Keeps memory in proportion to running work: only the most recently used idle tasks stay in memory. */
import type { JournalKey } from "../../journal/index.js";
import type { RuntimeLimits } from "../settings.js";
import type { ActionRunner } from "./action-runner.js";
import type { IdleWaiter } from "./idle-waiter.js";
import type { LiveTask, TaskKernel } from "./task-work.js";
import type { Waiters } from "./waiters.js";

export interface EvictionParts {
  readonly kernel: TaskKernel;
  readonly limits: RuntimeLimits;
  readonly waiters: Waiters;
  readonly actionRunner: ActionRunner;
  readonly idle: IdleWaiter;
}

export class Eviction {
  readonly #parts: EvictionParts;
  /** Tasks that can leave memory, least recently used first. */
  readonly #evictable = new Set<JournalKey>();

  constructor(parts: EvictionParts) {
    this.#parts = parts;
  }

  /** After a commit. */
  react(live: LiveTask): void {
    const { kernel, idle } = this.#parts;
    kernel.snapshotIfLong(live);
    idle.check();
    this.consider(live.key);
  }

  /** Work in this task has ended: if none is left, it can leave memory. */
  consider(key: JournalKey): void {
    const { kernel, idle, limits } = this.#parts;
    idle.check();
    const live = kernel.peek(key);
    this.#evictable.delete(key);
    if (live === undefined || !this.#canLeave(live)) return;
    this.#evictable.add(key);
    if (this.#evictable.size <= limits.cachedTasks) return;
    const [oldest] = this.#evictable;
    if (oldest === undefined) return;
    this.#evictable.delete(oldest);
    const leaving = kernel.peek(oldest);
    if (leaving !== undefined && this.#canLeave(leaving)) kernel.evict(leaving);
  }

  /** The task has work again, or left memory. */
  forget(key: JournalKey): void {
    this.#evictable.delete(key);
  }

  #canLeave(live: LiveTask): boolean {
    const { waiters, actionRunner } = this.#parts;
    const { state, work, key } = live;
    if (state.status === "running" || !live.quiet || work.doing.size > 0 || work.queued) return false;
    return !waiters.has(key) && !actionRunner.has(key);
  }
}
