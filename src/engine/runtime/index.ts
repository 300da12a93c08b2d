export type { RuntimeLimits } from "../settings.js";
export { StoppedError } from "./abort-handle.js";
export type { ActionOverride } from "./actions.js";
export { DeltaBuffer } from "./delta-buffer.js";
export {
  ALL_TASKS_CHANNEL,
  type CommitNotification,
  type DeltaNotification,
  deltaChannel,
  isCommitNotification,
  isDelta,
  isTaskRemoval,
  isWatchNotification,
  type NumberedEntry,
  WATCH_CHANNEL,
} from "./follow.js";
export { settleMail } from "./outbound-mail.js";
export type { JournalLocation, PostInput, PostReceipt, RowsFor } from "./receipts.js";
export type { LentMessage } from "./remote.js";
export { Runtime } from "./runtime.js";
export type { Closed } from "./shutdown.js";
export { outcomeOf, Round, type RoundOutcome, type RoundStart } from "./waiters.js";
