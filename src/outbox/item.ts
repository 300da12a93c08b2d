/** Items and what can happen to them. The store carries the row writes out within the batch they come in. */
import type { RowWrite } from "../engine/ports.js";

/** Times are milliseconds since the epoch. */
export interface OutboxItem {
  readonly queue: string;
  /** Unique in all queues: a UUIDv7 of the owner's making. */
  readonly id: string;
  readonly lane: string;
  readonly target: string;
  /** The owner's own text. Secrets do not belong in it (decisions C7). */
  readonly payload: string;
  readonly createdAt: number;
  /** Not before this. */
  readonly dueAt: number;
  /** After this no attempt begins: the item expires. */
  readonly deadlineAt?: number;
  /** What was enqueued under this key before (in this queue) is not enqueued again, finished or not. */
  readonly dedupeKey?: string;
}

export const FINAL_OUTCOMES = ["delivered", "refused", "expired"] as const;
export type FinalOutcome = (typeof FINAL_OUTCOMES)[number];

/** How an item ended, and what its owner should know of it. */
export interface Final {
  readonly outcome: FinalOutcome;
  readonly attempts: number;
  readonly at: number;
  readonly reason?: string;
  /** What the handler learned, for the owner. In memory only. */
  readonly note?: unknown;
}

/** Never refused: mail that an agent has sent must not fail because much waits (see `Backlog`). */
export interface OutboxEnqueue extends RowWrite {
  readonly kind: "outbox.enqueue";
  readonly item: OutboxItem;
}

/** An attempt is about to begin. Written only by queues that must know about attempts that a crash cut off. */
export interface OutboxBegin extends RowWrite {
  readonly kind: "outbox.begin";
  readonly id: string;
}

/** The attempt failed; there will be another one. Refused when the item has its final outcome. */
export interface OutboxRetry extends RowWrite {
  readonly kind: "outbox.retry";
  readonly id: string;
  readonly attempts: number;
  readonly dueAt: number;
  readonly reason: string;
  /** Nobody knows whether the attempt got through. */
  readonly uncertain: boolean;
}

/** The final outcome. Refused when the item has one. The payload is dropped: it is not needed any more. */
export interface OutboxFinish extends RowWrite {
  readonly kind: "outbox.finish";
  readonly id: string;
  readonly outcome: FinalOutcome;
  readonly attempts: number;
  readonly at: number;
  readonly reason?: string;
}

/** Forgets finished items, and with them their dedupe keys. */
export interface OutboxPurge extends RowWrite {
  readonly kind: "outbox.purge";
  readonly queue: string;
  readonly finishedBefore: number;
}

export type OutboxRowWrite = OutboxEnqueue | OutboxBegin | OutboxRetry | OutboxFinish | OutboxPurge;

/** The row to put into one's own batch; tell the dispatcher (`wake`) when the batch is committed. */
export function enqueue(item: OutboxItem): OutboxEnqueue {
  return { kind: "outbox.enqueue", item };
}

export function finish(id: string, { outcome, attempts, at, reason }: Final): OutboxFinish {
  return { kind: "outbox.finish", id, outcome, attempts, at, ...(reason !== undefined && { reason }) };
}

/** The row that forgets what was finished before a time. */
export function purgeFinished(queue: string, finishedBefore: number): OutboxPurge {
  return { kind: "outbox.purge", queue, finishedBefore };
}
