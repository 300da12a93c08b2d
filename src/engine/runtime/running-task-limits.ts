/**
 * Limits the number and the size of running tasks, which stay in memory, in total and per instance. A single instance
 * may use the whole number; while other instances are being refused, a quarter of it.
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
  readonly runningSize: number;
  readonly runningSizePerInstance: number;
}

/** Running tasks, and the characters of their journals. */
interface Usage {
  readonly tasks: number;
  readonly size: number;
}

const NOTHING: Usage = { tasks: 0, size: 0 };

export class RunningTaskLimits {
  readonly #limits: TaskLimits;
  readonly #clock: Clock;
  readonly #byInstance = new Map<string, Usage>();
  /** Instances that were refused, and when. */
  readonly #refused = new Map<string, number>();
  #all = NOTHING;

  constructor(limits: TaskLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get running(): number {
    return this.#all.tasks;
  }

  /** Tasks have started or ended, or their journals have changed. */
  count(instance: string, change: Usage): void {
    this.#all = sum(this.#all, change);
    const mine = sum(this.#of(instance), change);
    if (mine.tasks <= 0) this.#byInstance.delete(instance);
    else this.#byInstance.set(instance, mine);
  }

  /** @throws MailroomError `overloaded` when the instance may not run one more task */
  assertCapacity(instance: string): void {
    const { runningTasks, runningTasksPerInstance } = this.#limits;
    const { tasks: mine } = this.#of(instance);
    if (mine >= runningTasksPerInstance) {
      throw overloaded(`${mine} of your tasks are running, which is the limit per caller`);
    }
    if (mine > 0) this.#assertSize(instance);
    const full = this.#all.tasks >= (mine === 0 ? Math.ceil(runningTasks * MOST_OVER) : runningTasks);
    if (!full && (mine < shareOf(runningTasks) || !this.#othersWait(instance))) {
      this.#refused.delete(instance);
      return;
    }
    this.#note(instance);
    throw overloaded(
      full
        ? `${this.#all.tasks} tasks are running, which is the limit`
        : `${mine} of your tasks are running, which is your share while others wait`,
    );
  }

  /**
   * A single running task may grow up to its own limit, so that the last one of a caller can always be continued.
   * @throws MailroomError `overloaded` when the instance may not add to a running task
   */
  assertGrowth(instance: string): void {
    if (this.#of(instance).tasks > 1) this.#assertSize(instance);
  }

  #assertSize(instance: string): void {
    const { runningSize, runningSizePerInstance } = this.#limits;
    const { size: mine } = this.#of(instance);
    if (mine >= runningSizePerInstance) {
      throw overloaded(`your running tasks have ${mine} characters, which is the limit per caller`);
    }
    const { size } = this.#all;
    if (size < runningSize) return;
    // Callers that have less than most others may still add something.
    if (size < runningSize * MOST_OVER && mine * this.#byInstance.size < size) return;
    throw overloaded(`the running tasks have ${size} characters, which is the limit`);
  }

  #of(instance: string): Usage {
    return this.#byInstance.get(instance) ?? NOTHING;
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
      else if (other !== instance && this.#of(other).tasks < shareOf(this.#limits.runningTasks)) {
        return true;
      }
    }
    return false;
  }
}

function sum(one: Usage, other: Usage): Usage {
  return { tasks: one.tasks + other.tasks, size: one.size + other.size };
}

function overloaded(reason: string): MailroomError {
  return new MailroomError("overloaded", `${reason}: retry later`);
}
