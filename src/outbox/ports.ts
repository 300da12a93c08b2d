/** What the outbox asks of the store beside `commit`. */
import type { FinalOutcome } from "./item.js";

/** The first waiting item of a lane, without its payload. */
export interface LaneHead {
  /** The order of enqueuing, over all queues. */
  readonly number: number;
  readonly id: string;
  readonly lane: string;
  readonly target: string;
  readonly dueAt: number;
}

export interface StoredItem extends LaneHead {
  readonly queue: string;
  readonly payload: string;
  readonly createdAt: number;
  readonly deadlineAt?: number;
  readonly dedupeKey?: string;
  /** Attempts that ended. */
  readonly attempts: number;
  /** An attempt began whose end is not known. */
  readonly interrupted: boolean;
  /** Why the last attempt failed, or why there will be no other. */
  readonly reason?: string;
  readonly outcome?: FinalOutcome;
  readonly finishedAt?: number;
}

export type OutboxStatus = "waiting" | FinalOutcome;
export type OutboxCounts = Readonly<Record<OutboxStatus, number>>;

export interface OutboxReads {
  /** Heads of lanes that were enqueued after a number, in order. */
  heads(queue: string, afterNumber: number, limit: number): Promise<LaneHead[]>;
  /** The first waiting item of a lane. */
  head(queue: string, lane: string): Promise<LaneHead | undefined>;
  item(id: string): Promise<StoredItem | undefined>;
  byDedupeKey(queue: string, key: string): Promise<StoredItem | undefined>;
  /** Waiting items whose deadline has passed, wherever in their lane they stand; the longest overdue first. */
  overdue(queue: string, now: number, limit: number): Promise<StoredItem[]>;
  /** The earliest deadline of a waiting item that comes after a time. */
  nextDeadline(queue: string, after: number): Promise<number | undefined>;
  /** Oldest first. */
  list(
    queue: string,
    options: { status?: OutboxStatus; target?: string; afterNumber?: number; limit: number },
  ): Promise<StoredItem[]>;
  counts(queue: string): Promise<OutboxCounts>;
  /** How many items wait for each target that has any. */
  waitingByTarget(queue: string): Promise<ReadonlyMap<string, number>>;
}
