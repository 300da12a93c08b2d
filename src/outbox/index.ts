/** Durable delivery: see README.md for what it promises. */
export type { Backlog } from "./backlog.js";
export {
  type Attempt,
  type AttemptResult,
  type DeliveryHandler,
  Dispatcher,
  type DispatcherParts,
  type QueueOptions,
  type Settle,
} from "./dispatcher.js";
export {
  enqueue,
  FINAL_STATUSES,
  type FinalOutcome,
  type FinalStatus,
  finish,
  type OutboxBegin,
  type OutboxEnqueue,
  type OutboxFinish,
  type OutboxItem,
  type OutboxPurge,
  type OutboxRetry,
  type OutboxRowWrite,
  purgeFinished,
} from "./item.js";
export type { LaneHead, OutboxCounts, OutboxReads, OutboxStatus, StoredItem } from "./ports.js";
