export type { Problem } from "../../journal/ports.js";
export type { ActionOverride } from "./actions.js";
export { type Carried, settleMail } from "./deliveries.js";
export { isForLater, RuntimeError, type RuntimeErrorCode } from "./errors.js";
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
export { type Closed, Runtime, type RuntimeParts } from "./runtime.js";
export { StoppedError, type StopReason } from "./stopper.js";
export { type Outcome, outcomeOf, Round, type RoundStart, withResolvers } from "./waiters.js";
