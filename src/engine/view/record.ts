/** The reference's task record (mail.md 1.12), and what a list of tasks shows. */
import type { MAILMessage } from "../../mail/message.js";
import type { HoldReason } from "../agent.js";
import type { TaskRow, TaskStatus } from "../ports.js";
import type { TaskState } from "../state.js";
import type { MailEvent } from "./events.js";

export interface TaskRecord {
  readonly task_id: string;
  readonly task_owner: string;
  readonly task_contributors: readonly string[];
  readonly start_time: string;
  readonly events: readonly MailEvent[];
  readonly is_running: boolean;
  /** Messages that wait while the task stands still: tier, place, message. */
  readonly task_message_queue: readonly (readonly [number, number, MAILMessage])[];
  readonly remote_swarms: readonly string[];
  readonly completed: boolean;
  readonly title: string | null;
  readonly status: TaskStatus;
  readonly error?: { readonly code: string; readonly message: string };
  /** What an agent needs before a paused task can go on. */
  readonly reason?: HoldReason;
  /** Internal key of the task. */
  readonly key: string;
}

/** The booleans of the reference; a paused task is a completed one there (mail.md 3.2). */
export function legacyFlags(status: TaskStatus): { is_running: boolean; completed: boolean } {
  return { is_running: status === "running", completed: status !== "running" };
}

export function recordOf(
  state: TaskState,
  events: readonly MailEvent[],
  title: string | undefined,
): TaskRecord {
  const queue: (readonly [number, number, MAILMessage])[] = [];
  if (state.status !== "running") {
    for (const agent of state.agents.values()) {
      for (const mail of agent.mailbox) queue.push([mail.tier, mail.number, mail.message]);
    }
  }
  queue.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return {
    task_id: state.taskId,
    task_owner: state.owner,
    task_contributors: [...state.contributors],
    start_time: new Date(state.createdAt).toISOString(),
    events,
    ...legacyFlags(state.status),
    task_message_queue: queue,
    remote_swarms: [...state.remoteSwarms],
    title: title ?? null,
    status: state.status,
    ...(state.error !== undefined && { error: state.error }),
    ...(state.held !== undefined && { reason: state.held }),
    key: state.key,
  };
}

export interface TaskSummary {
  readonly task_id: string;
  readonly key: string;
  readonly task_owner: string;
  readonly status: TaskStatus;
  readonly title: string | null;
  readonly start_time: string;
  readonly updated_time: string;
  readonly is_running: boolean;
  readonly completed: boolean;
}

export function summaryOf(row: TaskRow): TaskSummary {
  return {
    task_id: row.taskId,
    key: row.key,
    task_owner: row.owner,
    status: row.status,
    title: row.title ?? null,
    start_time: new Date(row.createdAt).toISOString(),
    updated_time: new Date(row.updatedAt).toISOString(),
    ...legacyFlags(row.status),
  };
}
