/** Finds the task of an instance by its id, in memory or in the store. */

import type { JournalKey } from "../../journal/index.js";
import type { InstanceId, TaskReads } from "../ports.js";
import { instanceKey } from "./task-work.js";

interface Named {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly taskId: string;
}

export class TaskNames {
  readonly #index: TaskReads;
  readonly #keys = new Map<string, JournalKey>();
  /** Ids that are being looked up, or with which a task is being opened. */
  readonly #reserved = new Map<string, Promise<void>>();

  constructor(index: TaskReads) {
    this.#index = index;
  }

  add({ key, instance, taskId }: Named): void {
    this.#keys.set(nameOf(instance, taskId), key);
  }

  remove({ key, instance, taskId }: Named): void {
    const name = nameOf(instance, taskId);
    if (this.#keys.get(name) === key) this.#keys.delete(name);
  }

  async keyOf(instance: InstanceId, taskId: string): Promise<JournalKey | undefined> {
    return this.#keys.get(nameOf(instance, taskId)) ?? (await this.#index.find(instance, taskId))?.key;
  }

  /** The key of the instance's task of this id, or a reservation of the id so that two callers cannot both open it. */
  async findOrReserve(instance: InstanceId, taskId: string): Promise<JournalKey | (() => void)> {
    const name = nameOf(instance, taskId);
    for (;;) {
      const known = this.#keys.get(name);
      if (known !== undefined) return known;
      const reserved = this.#reserved.get(name);
      if (reserved === undefined) break;
      await reserved;
    }
    let free = () => {};
    const reservation = new Promise<void>((resolve) => {
      free = resolve;
    });
    const release = () => {
      this.#reserved.delete(name);
      free();
    };
    this.#reserved.set(name, reservation);
    try {
      const row = await this.#index.find(instance, taskId);
      if (row === undefined) return release;
      release();
      return row.key;
    } catch (error) {
      release();
      throw error;
    }
  }
}

function nameOf(instance: InstanceId, taskId: string): string {
  return `${instanceKey(instance)}\n${taskId}`;
}
