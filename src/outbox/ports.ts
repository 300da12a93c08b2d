/** What the outbox needs of the store beside `commit`. */
import type { FinalStatus } from "./item.js";

/** The first waiting item of a lane, without its payload. */
export interface LaneHead {
  /** Ascends in the order of enqueuing, over all queues. */
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
  /** Number of attempts that ended. */
  readonly attempts: number;
  /** An attempt began and its result is not known. */
  readonly interrupted: boolean;
  /** Why the last attempt failed, or why no other follows. */
  readonly reason?: string;
  readonly outcome?: FinalStatus;
  readonly finishedAt?: number;
}

export type OutboxStatus = "waiting" | FinalStatus;
export type OutboxCounts = Readonly<Record<OutboxStatus, number>>;

export interface OutboxReads {
  /** Heads of lanes that were enqueued after a number, in order. */
  heads(queue: string, afterNumber: number, limit: number): Promise<LaneHead[]>;
  /** The first waiting item of a lane. */
  head(queue: string, lane: string): Promise<LaneHead | undefined>;
  item(id: string): Promise<StoredItem | undefined>;
  byDedupeKey(queue: string, key: string): Promise<StoredItem | undefined>;
  /** Waiting items past their deadline, anywhere in their lane; the longest overdue first. */
  overdue(queue: string, now: number, limit: number): Promise<StoredItem[]>;
  /** The earliest deadline of a waiting item that comes after a time. */
  nextDeadline(queue: string, after: number): Promise<number | undefined>;
  /** Oldest first. */
  list(
    queue: string,
    options: { status?: OutboxStatus; target?: string; afterNumber?: number; limit: number },
  ): Promise<StoredItem[]>;
  counts(queue: string): Promise<OutboxCounts>;
  /** Number of waiting items per target that has any. */
  waitingByTarget(queue: string): Promise<ReadonlyMap<string, number>>;
}
