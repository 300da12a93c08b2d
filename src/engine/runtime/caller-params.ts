/** Values for the agents and actions of an instance. Held in memory only: a credential must not be stored. */
import type { InstanceId } from "../ports.js";
import { instanceKey } from "./task-work.js";

type Values = Readonly<Record<string, unknown>>;

/** Limit on the instances with values. Beyond it, the values that were set longest ago are removed. */
const MOST = 10_000;
const NONE: Values = {};

export class CallerParams {
  readonly #values = new Map<string, Values>();

  /**
   * Returns whether the values contain anything new. Equal values keep the same object, so that a later comparison by
   * identity shows whether they have changed.
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
