/**
 * How many tasks run, in all and per instance; more than the limit are refused until some have ended. Alone an instance
 * may have all of the room; while others were refused, a quarter of it.
 */
import type { Clock } from "../../journal/ports.js";
import { RuntimeError } from "./errors.js";

/** What one instance may hold of a shared limit while others wait. */
export function shareOf(limit: number): number {
  return Math.max(1, Math.floor(limit / 4));
}

/** An instance that has nothing running may exceed the limit by one task, up to this share of it in all. */
const MOST_OVER = 1.25;
/** How long somebody who was refused counts as waiting. */
const WAITS_FOR = 10_000;

interface RoomLimits {
  readonly runningTasks: number;
  readonly runningTasksPerInstance: number;
}

export class Room {
  readonly #limits: RoomLimits;
  readonly #clock: Clock;
  readonly #byInstance = new Map<string, number>();
  /** Instances that were refused, and when. */
  readonly #refused = new Map<string, number>();
  #running = 0;

  constructor(limits: RoomLimits, clock: Clock) {
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

  /** @throws RuntimeError `overloaded` when one more task of the instance would be too many */
  assertRoom(instance: string): void {
    const { runningTasks, runningTasksPerInstance } = this.#limits;
    const mine = this.#byInstance.get(instance) ?? 0;
    if (mine >= runningTasksPerInstance) {
      throw new RuntimeError(
        "overloaded",
        `${mine} of your tasks are running, which is the limit; try again later`,
      );
    }
    const full = this.#running >= (mine === 0 ? Math.ceil(runningTasks * MOST_OVER) : runningTasks);
    if (!full && (mine < shareOf(runningTasks) || !this.#othersWait(instance))) {
      this.#refused.delete(instance);
      return;
    }
    this.#note(instance);
    const reason = full
      ? `${this.#running} tasks are running, which is the limit`
      : `${mine} of your tasks are running, which is your share while others wait`;
    throw new RuntimeError("overloaded", `${reason}; try again later`);
  }

  /** Who was refused and did not come back is forgotten; the map is in the order of time. */
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
