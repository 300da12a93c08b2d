/** What is put into tasks from outside, and where it then stands. */
import type { MAILMessage } from "../../mail/message.js";
import type { Entry } from "../entries.js";
import type { InstanceId, JournalKey, RowWrite } from "../ports.js";
import type { PersonMessage } from "./person-message.js";
import type { Outcome } from "./waiters.js";

export interface PostInput extends PersonMessage {
  /** A new task unless it names one. */
  readonly taskId?: string;
  readonly resumeFrom?: "user_response";
  /** Of the task, if it is new; of this round, if it goes on. `null` for no limit. */
  readonly maxSteps?: number | null;
  /** Opens the task in manual mode. */
  readonly manual?: boolean;
  /** Rows that are committed together with the message. */
  readonly rows?: RowsFor;
}

/** Mail from another swarm, judged and addressed: everything that decides about it was decided before. */
export interface ReceiveInput {
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly owner: string;
  /** The owner and this instance included. */
  readonly contributors: readonly string[];
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Whether a task that is not known here is taken over. A swarm's instance never creates one of its own. */
  readonly adopts: boolean;
  /** Whether an ended task goes on with it. */
  readonly resumes: boolean;
  readonly rows?: RowsFor;
}

/** Where something that was posted stands. Together with the task it names the round that follows from it. */
export interface PostedAt {
  readonly key: JournalKey;
  readonly taskId: string;
  readonly messageId: string;
  /** The journal number of the message: its consequences come after it. */
  readonly number: number;
}

export interface Posted extends PostedAt {
  /** Whether this message opened the task. */
  readonly opened: boolean;
  /** What becomes of the message. Never rejects unhandled. */
  readonly outcome: Promise<Outcome>;
}

/** Rows to be committed with something, or what makes them once it is known where that will stand. */
export type RowsFor = readonly RowWrite[] | ((at: PostedAt) => readonly RowWrite[]);

/** Rows for what stands at a place that is known once it is decided. */
export function rowsAt(
  rows: RowsFor | undefined,
  at: Omit<PostedAt, "number">,
): ((entries: readonly Entry[], first: number) => readonly RowWrite[]) | undefined {
  if (rows === undefined) return undefined;
  return (entries, first) =>
    typeof rows === "function" ? rows({ ...at, number: numberOf(entries, first, at.messageId) }) : rows;
}

/** The number of the message; of the first entry where there is none, as with the answer to a breakpoint. */
export function numberOf(entries: readonly Entry[], first: number, messageId: string): number {
  const at = entries.findIndex((entry) => entry.t === "sent" && entry.message.id === messageId);
  return first + Math.max(0, at);
}

/** What a task is called in lists: the beginning of its first message. */
export function titleOf(body: string): string {
  const text = body.trim().replaceAll(/\s+/g, " ");
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}
