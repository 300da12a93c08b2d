/** What other modules may import: see README.md. */

export type { Aggregate, Decision, DecisionContext, Types } from "./aggregate.js";
export { Feed, type RowPlace } from "./feed.js";
export {
  type CommitNotification,
  Followers,
  type FollowOptions,
  follow,
  isCommitNotification,
  type Numbered,
} from "./follow.js";
export { copyJson } from "./json.js";
export { Kernel } from "./kernel.js";
export type { Reactor } from "./kernel-parts.js";
export type { Handling, Live, Unit } from "./live.js";
export { byNumber, byPosition, pages } from "./pages.js";
export {
  type Append,
  type Batch,
  type Bus,
  type Committed,
  type Group,
  type GroupResult,
  type JournalKey,
  type JournalRow,
  type Loop,
  RowConflictError,
  type RowWrite,
  type Snapshot,
  type SnapshotPart,
  StaleAppendError,
  type StoreDriver,
  type StoredJournal,
  type Subscription,
  storeClosed,
} from "./ports.js";
export { Projection } from "./projection.js";
export { systemLoop } from "./system.js";
export { Writer, type WriterHealth, type WriterLimits } from "./writer.js";
