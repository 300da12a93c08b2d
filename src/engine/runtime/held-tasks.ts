/** Tracks the tasks that are paused until an agent has what it needs, and retries them. */

import type { JournalKey } from "../../journal/index.js";
import type { InstanceId } from "../ports.js";
import { instanceKey, type LiveTask, type TaskUnit } from "./task-work.js";

export interface HeldTasksParts {
  readonly retry: (key: JournalKey) => Promise<void>;
  /** Called when a retry fails; the task stays held. */
  readonly failed: (error: unknown, key: JournalKey) => void;
}

export class HeldTasks {
  readonly #parts: HeldTasksParts;
  readonly #byInstance = new Map<string, Set<JournalKey>>();

  constructor(parts: HeldTasksParts) {
    this.#parts = parts;
  }

  react(live: LiveTask, { entries }: TaskUnit): void {
    for (const entry of entries) {
      switch (entry.t) {
        case "paused":
          if (entry.reason !== undefined) this.note(live.key, live.work.instanceKey, true);
          break;
        case "resumed":
        case "completed":
        case "failed":
        case "cancelled":
          this.note(live.key, live.work.instanceKey, false);
          break;
        default:
          break;
      }
    }
  }

  note(key: JournalKey, instance: string, held: boolean): void {
    if (!held && this.#byInstance.size === 0) return;
    const keys = this.#byInstance.get(instance);
    if (!held) {
      if (keys?.delete(key) === true && keys.size === 0) this.#byInstance.delete(instance);
    } else if (keys === undefined) this.#byInstance.set(instance, new Set([key]));
    else keys.add(key);
  }

  /** Retries the held tasks of an instance whose caller has supplied new values. */
  async retryAll(instance: InstanceId): Promise<void> {
    // A copy, so that a task that is held again meanwhile is not retried twice.
    for (const key of [...(this.#byInstance.get(instanceKey(instance)) ?? [])]) await this.retry(key);
  }

  /** Never rejects: a task that cannot be read or written does not block the others. */
  async retry(key: JournalKey): Promise<void> {
    try {
      await this.#parts.retry(key);
    } catch (error) {
      this.#parts.failed(error, key);
    }
  }
}
