/** Tracks the tasks that are paused until an agent has what it needs, and retries them. */

import type { Clock } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { HoldReason } from "../agent.js";
import type { InstanceId } from "../ports.js";
import { nextUtcDay } from "../usage.js";
import { instanceKey, type LiveTask, type TaskUnit } from "./task-work.js";

export interface HeldTasksParts {
  readonly clock: Clock;
  /** Whether the task continues. */
  readonly retry: (key: JournalKey) => Promise<boolean>;
  /** A task that waits at a limit which it shares with other tasks, and which has room again. */
  readonly nextWithRoom: (
    isHeld: (key: JournalKey, instance: string) => boolean,
  ) => Promise<JournalKey | undefined>;
  /** The task has ended: it waits at no limit. */
  readonly ended: (key: JournalKey) => void;
  /** Called when a retry fails; the task stays held. */
  readonly failed: (error: unknown, key: JournalKey) => void;
}

export class HeldTasks {
  readonly #parts: HeldTasksParts;
  readonly #byInstance = new Map<string, Map<JournalKey, HoldReason>>();
  #cancelNextDay: (() => void) | undefined;
  /** Whether room at shared limits is being offered, and whether more may have come meanwhile. */
  #offering: "no" | "yes" | "again" = "no";

  constructor(parts: HeldTasksParts) {
    this.#parts = parts;
  }

  react(live: LiveTask, { entries }: TaskUnit): void {
    for (const entry of entries) {
      // Where the estimate of a call was too high, there is room again.
      if ("usage" in entry) this.#offerRoom(live);
      switch (entry.t) {
        case "paused":
          if (entry.reason !== undefined) this.note(live.key, live.work.instanceKey, entry.reason);
          // The room may have come back before the pause was durable.
          if (entry.reason === "budget") this.#offerRoom(live);
          break;
        case "resumed":
        case "completed":
        case "failed":
        case "cancelled":
          this.note(live.key, live.work.instanceKey, undefined);
          if (entry.t === "resumed") break;
          this.#parts.ended(live.key);
          this.#offerRoom(live);
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

  /**
   * Continues one task that waits at a limit with room: its own call decides whether there is room for the next one. So
   * a thousand waiting tasks do not pause again for each call that ends.
   */
  #offerRoom({ key, work }: LiveTask): void {
    if (this.#byInstance.size === 0) return;
    if (this.#offering !== "no") {
      this.#offering = "again";
      return;
    }
    this.#offering = "yes";
    void this.#offer(key, work.instanceKey);
  }

  async #offer(key: JournalKey, instance: string): Promise<void> {
    // Limits of the task itself have room only for the task.
    if (this.#isHeldByBudget(key, instance)) await this.retry(key);
    do {
      this.#offering = "yes";
      for (;;) {
        const next = await this.#nextWithRoom();
        if (next === undefined || (await this.retry(next))) break;
      }
    } while (this.#isOfferedAgain());
    this.#offering = "no";
  }

  #isOfferedAgain(): boolean {
    return this.#offering === "again";
  }

  async #nextWithRoom(): Promise<JournalKey | undefined> {
    try {
      return await this.#parts.nextWithRoom((key, instance) => this.#isHeldByBudget(key, instance));
    } catch {
      // The store cannot be read now. Later calls, changes and the next day offer it again.
      return undefined;
    }
  }

  #isHeldByBudget(key: JournalKey, instance: string): boolean {
    return this.#byInstance.get(instance)?.get(key) === "budget";
  }

  /** Never rejects: a task that cannot be read or written does not block the others. */
  async retry(key: JournalKey): Promise<boolean> {
    try {
      return await this.#parts.retry(key);
    } catch (error) {
      this.#parts.failed(error, key);
      return false;
    }
  }
}
