/** Tracks the tasks that are paused until an agent has what it needs, and retries them. */

import type { Clock } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { HoldReason } from "../agent.js";
import type { InstanceId } from "../ports.js";
import { nextUtcDay } from "../usage.js";
import { instanceKey, type LiveTask, type TaskUnit } from "./task-work.js";

export interface HeldTasksParts {
  readonly clock: Clock;
  readonly retry: (key: JournalKey) => Promise<void>;
  /** Called when a retry fails; the task stays held. */
  readonly failed: (error: unknown, key: JournalKey) => void;
}

export class HeldTasks {
  readonly #parts: HeldTasksParts;
  readonly #byInstance = new Map<string, Map<JournalKey, HoldReason>>();
  #cancelNextDay: (() => void) | undefined;

  constructor(parts: HeldTasksParts) {
    this.#parts = parts;
  }

  react(live: LiveTask, { entries }: TaskUnit): void {
    for (const entry of entries) {
      switch (entry.t) {
        case "paused":
          if (entry.reason !== undefined) this.note(live.key, live.work.instanceKey, entry.reason);
          break;
        case "resumed":
        case "completed":
        case "failed":
        case "cancelled":
          this.note(live.key, live.work.instanceKey, undefined);
          break;
        default:
          break;
      }
    }
  }

  note(key: JournalKey, instance: string, reason: HoldReason | undefined): void {
    if (reason === undefined && this.#byInstance.size === 0) return;
    const keys = this.#byInstance.get(instance);
    if (reason === undefined) {
      if (keys?.delete(key) === true && keys.size === 0) this.#byInstance.delete(instance);
    } else if (keys === undefined) this.#byInstance.set(instance, new Map([[key, reason]]));
    else keys.set(key, reason);
    if (reason === "budget") this.#waitForNextDay();
  }

  /** Retries the tasks that are held for a reason: those of one instance, or all. */
  async retryAll(reason: HoldReason, instance?: InstanceId): Promise<void> {
    const held =
      instance === undefined
        ? [...this.#byInstance.values()]
        : [this.#byInstance.get(instanceKey(instance)) ?? new Map<JournalKey, HoldReason>()];
    // A copy, so that a task that is held again meanwhile is not retried twice.
    const keys = held.flatMap((reasons) => [...reasons].filter(([, other]) => other === reason));
    for (const [key] of keys) await this.retry(key);
  }

  stop(): void {
    this.#cancelNextDay?.();
    this.#cancelNextDay = undefined;
  }

  /** Daily budgets begin again. */
  #waitForNextDay(): void {
    if (this.#cancelNextDay !== undefined) return;
    const { clock } = this.#parts;
    this.#cancelNextDay = clock.after(nextUtcDay(clock.now()) - clock.now(), () => {
      this.#cancelNextDay = undefined;
      void this.retryAll("budget").then(() => {
        const isLeft = [...this.#byInstance.values()].some((keys) => [...keys.values()].includes("budget"));
        if (isLeft) this.#waitForNextDay();
      });
    });
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
