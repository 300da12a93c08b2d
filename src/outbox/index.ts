/** Durable delivery: see README.md for what it promises. */
export type { Backlog } from "./backlog.js";
export {
  type Attempt,
  type AttemptResult,
  Dispatcher,
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
  type OutboxPurge,
  type OutboxRetry,
  type OutboxRowWrite,
  purgeFinished,
} from "./item.js";
export { deliveryResult, enqueueMail, mailIn, mailKey } from "./mail-item.js";
export type { LaneHead, OutboxReads, StoredItem } from "./ports.js";
