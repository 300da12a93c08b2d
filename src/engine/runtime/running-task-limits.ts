/**
 * Limits the number of running tasks, in total and per instance. A single instance may use the whole limit; while other
 * instances are being refused, a quarter of it.
 */

import type { Clock } from "../../base/index.js";
import { MailroomError } from "../../base/index.js";

/** The part of a shared limit that one instance may use while others wait. */
export function shareOf(limit: number): number {
  return Math.max(1, Math.floor(limit / 4));
}

/** An instance without running tasks may exceed the limit by one task, up to this factor in total. */
const MOST_OVER = 1.25;
/** Milliseconds for which a refused instance counts as waiting. */
const WAITS_FOR = 10_000;

interface TaskLimits {
  readonly runningTasks: number;
  readonly runningTasksPerInstance: number;
}

export class RunningTaskLimits {
  readonly #limits: TaskLimits;
  readonly #clock: Clock;
  readonly #byInstance = new Map<string, number>();
  /** Instances that were refused, and when. */
  readonly #refused = new Map<string, number>();
  #running = 0;

  constructor(limits: TaskLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get running(): number {
    return this.#running;
  }

  count(instance: string, change: 1 | -1): void {
    this.#running += change;
    const mine = (this.#byInstance.get(instance) ?? 0) + change;
    if (mine <= 0) this.#byInstance.delete(instance);
    else this.#byInstance.set(instance, mine);
  }

  /** @throws MailroomError `overloaded` when the instance may not run one more task */
  assertCapacity(instance: string): void {
    const { runningTasks, runningTasksPerInstance } = this.#limits;
    const mine = this.#byInstance.get(instance) ?? 0;
    if (mine >= runningTasksPerInstance) {
      throw overloaded(`${mine} of your tasks are running, which is the limit per caller`);
    }
    const full = this.#running >= (mine === 0 ? Math.ceil(runningTasks * MOST_OVER) : runningTasks);
    if (!full && (mine < shareOf(runningTasks) || !this.#othersWait(instance))) {
      this.#refused.delete(instance);
      return;
    }
    this.#note(instance);
    throw overloaded(
      full
        ? `${this.#running} tasks are running, which is the limit`
        : `${mine} of your tasks are running, which is your share while others wait`,
    );
  }

  /** Also removes the instances that were refused too long ago. The map is ordered by time. */
  #note(instance: string): void {
    const now = this.#clock.now();
    this.#refused.delete(instance);
    this.#refused.set(instance, now);
    for (const [other, at] of this.#refused) {
      if (at >= now - WAITS_FOR) return;
      this.#refused.delete(other);
    }
  }

  #othersWait(instance: string): boolean {
    const since = this.#clock.now() - WAITS_FOR;
    for (const [other, at] of this.#refused) {
      if (at < since) this.#refused.delete(other);
      else if (
        other !== instance &&
        (this.#byInstance.get(other) ?? 0) < shareOf(this.#limits.runningTasks)
      ) {
        return true;
      }
    }
    return false;
  }
}

function overloaded(reason: string): MailroomError {
  return new MailroomError("overloaded", `${reason}: retry later`);
}
