/** Items, and the row writes that change them. The store executes the writes within their batch. */
import type { RowWrite } from "../journal/index.js";

/** Times are milliseconds since the epoch. */
export interface OutboxItem {
  readonly queue: string;
  /** A UUIDv7 made by the owner, unique over all queues. */
  readonly id: string;
  readonly lane: string;
  readonly target: string;
  /** Text of the owning module. Must not contain secrets (decision C7). */
  readonly payload: string;
  readonly createdAt: number;
  /** No attempt begins before this. */
  readonly dueAt: number;
  /** After this no attempt begins: the item expires. */
  readonly deadlineAt?: number;
  /** An item whose key is already in the queue, finished or not, is not enqueued again. */
  readonly dedupeKey?: string;
}

export const FINAL_STATUSES = ["delivered", "refused", "expired"] as const;
export type FinalStatus = (typeof FINAL_STATUSES)[number];

/** How an item ended, with details for its owner. */
export interface FinalOutcome {
  readonly outcome: FinalStatus;
  readonly attempts: number;
  readonly at: number;
  readonly reason?: string;
  /** The handler's result, for the owner. In memory only. */
  readonly note?: unknown;
}

/** Never rejected: sent mail must not fail because many items wait (see `Backlog`). */
export interface OutboxEnqueue extends RowWrite {
  readonly kind: "outbox.enqueue";
  readonly item: OutboxItem;
}

/** An attempt is about to begin. Written only by queues that track attempts interrupted by a crash. */
export interface OutboxBegin extends RowWrite {
  readonly kind: "outbox.begin";
  readonly id: string;
}

/** The attempt failed and will be repeated. Rejected when the item has its final outcome. */
export interface OutboxRetry extends RowWrite {
  readonly kind: "outbox.retry";
  readonly id: string;
  readonly attempts: number;
  readonly dueAt: number;
  readonly reason: string;
  /** The attempt may have reached the target. */
  readonly uncertain: boolean;
}

/** The final outcome. Rejected when the item has one. Drops the payload, which is no longer needed. */
export interface OutboxFinish extends RowWrite {
  readonly kind: "outbox.finish";
  readonly id: string;
  readonly outcome: FinalStatus;
  readonly attempts: number;
  readonly at: number;
  readonly reason?: string;
}

/** Removes finished items and their dedupe keys. */
export interface OutboxPurge extends RowWrite {
  readonly kind: "outbox.purge";
  readonly queue: string;
  readonly finishedBefore: number;
}

export type OutboxRowWrite = OutboxEnqueue | OutboxBegin | OutboxRetry | OutboxFinish | OutboxPurge;

/** The row for the caller's batch. Call the dispatcher's `wake` when the batch is committed. */
export function enqueue(item: OutboxItem): OutboxEnqueue {
  return { kind: "outbox.enqueue", item };
}

export function finish(id: string, { outcome, attempts, at, reason }: FinalOutcome): OutboxFinish {
  return { kind: "outbox.finish", id, outcome, attempts, at, ...(reason !== undefined && { reason }) };
}

/** The row that removes items finished before a time. */
export function purgeFinished(queue: string, finishedBefore: number): OutboxPurge {
  return { kind: "outbox.purge", queue, finishedBefore };
}
