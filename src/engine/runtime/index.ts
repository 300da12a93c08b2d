export { type RuntimeLimits, runtimeSettings } from "../settings.js";
export { StoppedError, type StopReason } from "./abort-handle.js";
export type { ActionOverride } from "./actions.js";
export {
  ALL_TASKS_CHANNEL,
  type CommitNote,
  type DeltaNotification,
  deltaChannel,
  isCommitNotification,
  isTaskRemoval,
  isWatchNotification,
  type NumberedEntry,
  taskChannel,
  WATCH_CHANNEL,
  type WatchNotification,
} from "./follow.js";
export { settleMail } from "./outbound-mail.js";
export type { JournalLocation, PostInput, PostReceipt, ReceiveInput, RowsFor } from "./receipts.js";
export type { LentMessage, RemoteMailboxes } from "./remote.js";
export { Runtime, type RuntimeParts } from "./runtime.js";
export type { Closed } from "./shutdown.js";
export type { Carried } from "./task-work.js";
export { outcomeOf, Round, type RoundOutcome, type RoundStart } from "./waiters.js";
