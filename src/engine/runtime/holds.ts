/** Tasks that stand still until an agent has what it needs, and when they are tried again. */
import type { InstanceId, JournalKey } from "../ports.js";
import { instanceKey, type LiveTask, type TaskUnit } from "./task-work.js";

export interface HoldsParts {
  readonly retry: (key: JournalKey) => Promise<void>;
  /** A task could not be tried now; it stays as it is. */
  readonly failed: (error: unknown, key: JournalKey) => void;
}

export class Holds {
  readonly #parts: HoldsParts;
  readonly #byInstance = new Map<string, Set<JournalKey>>();

  constructor(parts: HoldsParts) {
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

  /** The caller has brought something new: what was held for want of it goes on. */
  async retryAll(instance: InstanceId): Promise<void> {
    // A copy: what is held up again meanwhile is not tried twice.
    for (const key of [...(this.#byInstance.get(instanceKey(instance)) ?? [])]) await this.retry(key);
  }

  /** A task that cannot be read or written keeps no other one from going on. */
  async retry(key: JournalKey): Promise<void> {
    try {
      await this.#parts.retry(key);
    } catch (error) {
      this.#parts.failed(error, key);
    }
  }
}
