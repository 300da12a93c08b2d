/** Values for the agents and actions of an instance. Held in memory only: a credential must not be stored. */
import type { InstanceId } from "../ports.js";
import { instanceKey } from "./task-work.js";

type Values = Readonly<Record<string, unknown>>;

/** Instances whose values are remembered; of more than that, those that were set longest ago are forgotten. */
const MOST = 10_000;
const NONE: Values = {};

export class Params {
  readonly #values = new Map<string, Values>();

  /**
   * Whether there is anything among the values that was not there before. As long as they are the same, they stay one
   * object, by which it is seen later whether they have changed.
   */
  set(instance: InstanceId, values: Values): boolean {
    const key = instanceKey(instance);
    const before = this.#values.get(key) ?? NONE;
    const entries = Object.entries(values);
    const isNew = entries.some(([name, value]) => before[name] !== value);
    this.#values.delete(key);
    this.#values.set(key, isNew || Object.keys(before).length !== entries.length ? values : before);
    if (this.#values.size > MOST) {
      const [oldest] = this.#values.keys();
      if (oldest !== undefined) this.#values.delete(oldest);
    }
    return isNew;
  }

  of(instance: InstanceId): Values {
    return this.#values.size === 0 ? NONE : (this.#values.get(instanceKey(instance)) ?? NONE);
  }
}
