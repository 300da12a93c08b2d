export type { ActionOverride } from "./actions.js";
export type { Problem } from "./core.js";
export { RuntimeError, type RuntimeErrorCode } from "./errors.js";
export {
  ALL_TASKS_CHANNEL,
  type CommitNote,
  type DeltaNote,
  deltaChannel,
  isCommitNote,
  isWatchNote,
  type NumberedEntry,
  taskChannel,
  WATCH_CHANNEL,
  type WatchNote,
} from "./follow.js";
export { DEFAULT_RUNTIME_LIMITS, type RuntimeLimits } from "./limits.js";
export type { Posted, PostedAt, PostInput, ReceiveInput, RowsFor } from "./posting.js";
export type { Lending, RemoteMailboxes } from "./remote.js";
export { Round, type RoundStart } from "./round.js";
export { Runtime, type RuntimeParts } from "./runtime.js";
export { StoppedError, type StopReason } from "./stopper.js";
export { type Outcome, outcomeOf } from "./waiters.js";
