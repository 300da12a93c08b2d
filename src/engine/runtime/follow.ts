/** The channels on which the changes of tasks are published. */

import type { Bus, JournalKey } from "../../journal/index.js";
import {
  isCommitNotification as isJournalCommitNote,
  type CommitNotification as JournalCommitNote,
  type Numbered,
} from "../../journal/index.js";
import type { StreamedCall } from "../agent.js";
import type { InstanceId } from "../ports.js";
import type { Entry } from "../task/entries.js";

export type NumberedEntry = Numbered<Entry>;

/** Published after each commit, on the task's channel and on the channel of all tasks. */
export type CommitNotification = JournalCommitNote<Entry>;

/** A streamed part of an answer; neither journaled nor replayed. */
export interface DeltaNotification {
  readonly key: JournalKey;
  readonly agent: string;
  /** Grows each time that the agent's answer begins again. */
  readonly attempt: number;
  /** The call whose answer this is; absent for the agent's own text. */
  readonly call?: StreamedCall;
  /** Length of the text before this piece, in UTF-16 code units. */
  readonly offset: number;
  readonly delta: string;
  /** All earlier pieces of the agent are invalid: its answer begins again. */
  readonly reset?: true;
}

export function isDelta(note: unknown): note is DeltaNotification {
  return typeof note === "object" && note !== null && "delta" in note && "agent" in note;
}

/** Published when a client starts or stops watching a task live. */
export interface WatchNotification {
  readonly key: JournalKey;
  readonly watching: boolean;
}

/** Published on the channel of all tasks when a task was removed. */
export interface TaskRemovalNotification {
  readonly key: JournalKey;
  readonly removed: true;
  readonly taskId: string;
  readonly instance: InstanceId;
}

export const WATCH_CHANNEL = "watch";
export const ALL_TASKS_CHANNEL = "tasks";
export const taskChannel = (key: JournalKey): string => `task:${key}`;
export const deltaChannel = (key: JournalKey): string => `delta:${key}`;

export function publishCommit(bus: Bus, channel: string, note: CommitNotification): void {
  bus.publish(channel, note);
  bus.publish(ALL_TASKS_CHANNEL, note);
}

export function isCommitNotification(note: unknown): note is CommitNotification {
  return isJournalCommitNote<Entry>(note);
}

export function isTaskRemoval(note: unknown): note is TaskRemovalNotification {
  return typeof note === "object" && note !== null && "removed" in note && "taskId" in note;
}

export function isWatchNotification(note: unknown): note is WatchNotification {
  return typeof note === "object" && note !== null && "watching" in note && "key" in note;
}
