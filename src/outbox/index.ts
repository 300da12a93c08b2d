/** Durable delivery: see README.md for what it promises. */
export {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  type DispatcherParts,
  type Handler,
  type QueueOptions,
} from "./dispatcher.js";
export {
  enqueue,
  type FinalOutcome,
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
export type { Final, Settle } from "./settle.js";
