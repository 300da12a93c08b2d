/** Tasks that stand still until an agent has what it needs (decisions H1), and when they are tried again. */
import type { InstanceId, JournalKey, TaskRow } from "../ports.js";
import type { TaskState } from "../state.js";
import { instanceKey } from "./core.js";

export interface HoldsParts {
  /** Paused tasks in order of their keys. */
  readonly paused: (after: JournalKey | undefined, limit: number) => Promise<readonly TaskRow[]>;
  readonly isHeld: (key: JournalKey) => Promise<boolean>;
  readonly retry: (key: JournalKey) => Promise<void>;
  readonly isOpen: () => boolean;
  /** A task could not be tried now; it stays as it is. */
  readonly failed: (error: unknown, key: JournalKey) => void;
}

const PAGE = 100;

export class Holds {
  readonly #parts: HoldsParts;
  readonly #byInstance = new Map<string, Set<JournalKey>>();

  constructor(parts: HoldsParts) {
    this.#parts = parts;
  }

  /** To be told whenever a task pauses, ends or goes on. */
  note({ key, instance, held }: Pick<TaskState, "key" | "instance" | "held">): void {
    if (held === undefined && this.#byInstance.size === 0) return;
    const of = instanceKey(instance);
    const keys = this.#byInstance.get(of);
    if (held === undefined) {
      if (keys?.delete(key) && keys.size === 0) this.#byInstance.delete(of);
    } else if (keys === undefined) {
      this.#byInstance.set(of, new Set([key]));
    } else {
      keys.add(key);
    }
  }

  /** The caller has brought something new: what was held for want of it goes on. */
  async retryAll(instance: InstanceId): Promise<void> {
    // A copy: what is held up again meanwhile is not tried twice.
    for (const key of [...(this.#byInstance.get(instanceKey(instance)) ?? [])]) {
      await this.#each(key, () => this.#parts.retry(key));
    }
  }

  /** A process starts with surroundings of its own: whatever the last one held is tried once. */
  async takeUp(): Promise<void> {
    let after: JournalKey | undefined;
    while (this.#parts.isOpen()) {
      const rows = await this.#parts.paused(after, PAGE);
      for (const { key } of rows) {
        if (!this.#parts.isOpen()) return;
        await this.#each(key, async () => {
          if (await this.#parts.isHeld(key)) await this.#parts.retry(key);
        });
      }
      after = rows.at(-1)?.key;
      if (rows.length < PAGE) return;
    }
  }

  /** A task that cannot be read or written keeps no other one from going on. */
  async #each(key: JournalKey, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#parts.failed(error, key);
    }
  }
}
