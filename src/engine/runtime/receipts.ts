/** What is posted into tasks from outside, and its location in the journal. */

import type { JournalKey, RowWrite } from "../../journal/index.js";
import type { MAILMessage } from "../../mail/index.js";
import type { InstanceId } from "../ports.js";
import type { Entry } from "../task/entries.js";
import type { BudgetChange } from "../usage.js";
import type { UserMessage } from "./user-message.js";
import type { RoundOutcome } from "./waiters.js";

export interface PostInput extends UserMessage {
  /** Default: a new task. */
  readonly taskId?: string;
  readonly resumeFrom?: "user_response";
  /** Step limit of a new task, or of this round of an existing one. `null` for no limit. */
  readonly maxSteps?: number | null;
  /** Limits on what model calls of the task use. For an existing task they change those that its owner set. */
  readonly budget?: BudgetChange;
  /** Refuse the message while a call of the task waits for approval, because its text could be meant as the approval. */
  readonly refuseInApproval?: true;
  /** Opens the task in manual mode. */
  readonly manual?: boolean;
  /** Rows that are committed together with the message. */
  readonly rows?: RowsFor;
}

/** Mail from another swarm that was validated and addressed. No further check follows. */
export interface ReceiveInput {
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly owner: string;
  /** Includes the owner and this instance. */
  readonly contributors: readonly string[];
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Whether an unknown task is adopted. A swarm's instance never creates tasks of its own. */
  readonly adopts: boolean;
  /** Whether the mail resumes an ended task. */
  readonly resumes: boolean;
  readonly rows?: RowsFor;
}

/** The location of a posted message or answer in the journal. It identifies the round that follows. */
export interface JournalLocation {
  readonly key: JournalKey;
  readonly taskId: string;
  readonly messageId: string;
  /** The journal number of the message: its consequences come after it. */
  readonly number: number;
}

export interface PostReceipt extends JournalLocation {
  /** Whether this message opened the task. */
  readonly opened: boolean;
  /** The outcome of the message's round. A rejection that no caller handles does not crash the process. */
  readonly outcome: Promise<RoundOutcome>;
}

/** Rows to commit with a message, or a function that makes them once the location of the message is decided. */
export type RowsFor = readonly RowWrite[] | ((at: JournalLocation) => readonly RowWrite[]);

/** The rows for a message whose location has been decided. */
export function rowsAt(
  rows: RowsFor | undefined,
  at: Omit<JournalLocation, "number">,
): ((entries: readonly Entry[], first: number) => readonly RowWrite[]) | undefined {
  if (rows === undefined) return undefined;
  return (entries, first) =>
    typeof rows === "function" ? rows({ ...at, number: numberOf(entries, first, at.messageId) }) : rows;
}

/** The number of the message, or of the first entry if there is no message, as for an answer to a breakpoint. */
export function numberOf(entries: readonly Entry[], first: number, messageId: string): number {
  const at = entries.findIndex((entry) => entry.t === "sent" && entry.message.id === messageId);
  return first + Math.max(0, at);
}

/** The title of a task in lists: the beginning of its first message. */
export function titleOf(body: string): string {
  const text = body.trim().replaceAll(/\s+/g, " ");
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}
