/** How many tasks run, in all and per instance; more than the limits are refused until some have ended (law 7). */
import type { InstanceId } from "../ports.js";
import { instanceKey } from "./core.js";
import { RuntimeError } from "./errors.js";

export class HeadCount {
  readonly #limits: { readonly runningTasks: number; readonly runningTasksPerInstance: number };
  readonly #byInstance = new Map<string, number>();
  #running = 0;

  constructor(limits: { readonly runningTasks: number; readonly runningTasksPerInstance: number }) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running;
  }

  count(instance: InstanceId, change: 1 | -1): void {
    this.#running += change;
    const key = instanceKey(instance);
    const mine = (this.#byInstance.get(key) ?? 0) + change;
    if (mine <= 0) this.#byInstance.delete(key);
    else this.#byInstance.set(key, mine);
  }

  /** @throws RuntimeError `overloaded` when one more task would be too many */
  assertRoom(instance: InstanceId): void {
    const mine = this.#byInstance.get(instanceKey(instance)) ?? 0;
    const { runningTasks, runningTasksPerInstance } = this.#limits;
    if (this.#running < runningTasks && mine < runningTasksPerInstance) return;
    const limit = this.#running >= runningTasks ? runningTasks : runningTasksPerInstance;
    throw new RuntimeError("overloaded", `${limit} tasks are running, which is the limit; try again later`);
  }
}
