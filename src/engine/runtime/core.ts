/** What the parts of the runtime ask of its middle, and what all of them know. */
import type { Command } from "../commands.js";
import type { Bus, Clock, InstanceId, JournalKey } from "../ports.js";
import type { RuntimeLimits } from "./limits.js";
import type { LiveTask } from "./live-task.js";

/** Something that went wrong where nobody waits for an answer. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly task?: JournalKey;
  readonly cause?: unknown;
}

export type Phase = "open" | "closing" | "closed";

export interface Core {
  readonly limits: RuntimeLimits;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly phase: Phase;
  /**
   * Decides and sends the entries on their way. False if the engine refused, and then `onCommitted` was called
   * already; else it is called when the entries are durable, or when it is certain that they never will be.
   */
  apply(task: LiveTask, command: Command, onCommitted?: () => void): boolean;
  /** Something in the task came to an end without an entry: slots, scheduling and memory follow. */
  settle(task: LiveTask): void;
  /** Values that belong to an instance and live in memory only. */
  paramsOf(instance: InstanceId): Readonly<Record<string, unknown>>;
  report(problem: Problem): void;
}

export function instanceKey({ role, id }: InstanceId): string {
  return `${role}:${id}`;
}
