/** The channels on which the news of tasks is told. */
import {
  isCommitNote as isJournalCommitNote,
  type CommitNote as JournalCommitNote,
  type Numbered,
} from "../../journal/follow.js";
import type { JournalKey } from "../../journal/ports.js";
import type { Entry } from "../entries.js";

export type NumberedEntry = Numbered<Entry>;

/** Published after each commit, on the task's channel and on the channel of all tasks. */
export type CommitNote = JournalCommitNote<Entry>;

/** Pieces of an answer on their way; neither journaled nor replayed. */
export interface DeltaNote {
  readonly key: JournalKey;
  readonly agent: string;
  readonly delta: string;
}

/** Published when somebody begins or ceases to watch a task live. */
export interface WatchNote {
  readonly key: JournalKey;
  readonly watching: boolean;
}

export const WATCH_CHANNEL = "watch";
export const ALL_TASKS_CHANNEL = "tasks";
export const taskChannel = (key: JournalKey): string => `task:${key}`;
export const deltaChannel = (key: JournalKey): string => `delta:${key}`;

export function isCommitNote(note: unknown): note is CommitNote {
  return isJournalCommitNote<Entry>(note);
}

export function isWatchNote(note: unknown): note is WatchNote {
  return typeof note === "object" && note !== null && "watching" in note && "key" in note;
}
