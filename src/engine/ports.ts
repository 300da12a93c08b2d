/**
 * What the engine asks of the world. Rooms outside implement these; the engine imports none of them.
 *
 * Terms
 * - journal: the append-only, densely numbered list of entries of one task (numbers start at 1).
 * - append: the entries that one decision adds; it is stored as one row.
 * - batch: appends and rows that become durable together or not at all.
 * - position: the place of an append in the one global commit order.
 */
import type { KeyValueMemory } from "./memory.js";

/** Names a journal. For a task this is its internal key, a UUIDv7. */
export type JournalKey = string;

export interface Append {
  readonly journal: JournalKey;
  /** The journal's last number as the writer knows it (0 for a journal that does not exist yet). */
  readonly expected: number;
  /** How many entries `data` holds; they get the numbers expected+1 … expected+count. */
  readonly count: number;
  /** The entries as the text of a JSON array. Serialised once, by the writer. */
  readonly data: string;
}

/**
 * A change to a table that some room owns. The room declares the shape of its writes, the store knows how to
 * carry each `kind` out; a kind that the store does not know rejects the batch.
 */
export interface RowWrite {
  readonly kind: string;
}

export interface Batch {
  readonly appends: readonly Append[];
  readonly rows?: readonly RowWrite[];
}

export interface Committed {
  /** Position of the batch's last append (of the newest append in the store if the batch had none). */
  readonly position: number;
}

export interface JournalRow {
  readonly journal: JournalKey;
  readonly first: number;
  readonly last: number;
  readonly position: number;
  readonly data: string;
}

export interface Snapshot {
  /** The journal number up to which the snapshot has seen everything. */
  readonly number: number;
  readonly data: string;
}

export interface Store {
  /**
   * Makes a batch durable, all or nothing. Batches that arrive together may share one transaction, but a
   * batch that is refused takes no other with it. Batches take effect in the order of the calls.
   * @throws StaleAppendError when an append's expected number is not the journal's last number.
   * @throws RowConflictError when a conditional row write does not hold.
   */
  commit(batch: Batch): Promise<Committed>;
  /**
   * Whether a batch of so many appends and rows, with so many characters, would be refused now because too much waits.
   * For those who would have to undo something if it were.
   */
  isFull?(writes: number, characters: number): boolean;
  /** Rows of one journal in order, beginning with the row that contains number `after` + 1. */
  read(journal: JournalKey, options?: { after?: number; limit?: number }): Promise<JournalRow[]>;
  /** Rows of all journals in commit order after a position; nothing is ever inserted before what was returned. */
  readAll(afterPosition: number, limit: number): Promise<JournalRow[]>;
  /** 0 for a journal that does not exist. */
  lastNumber(journal: JournalKey): Promise<number>;
  readSnapshot(journal: JournalKey): Promise<Snapshot | undefined>;
  readonly tasks: TaskIndex;
  /** What instances keep beyond their tasks, where the store has a place for it. */
  readonly memory?: KeyValueMemory;
  /** Gives the space of removed tasks back, where that needs asking for. Called after a round of retention. */
  reclaim?(): Promise<unknown>;
  close(): Promise<void>;
}

export const TASK_STATUSES = ["running", "paused", "completed", "failed", "cancelled"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const INSTANCE_ROLES = ["admin", "user", "swarm"] as const;
export type InstanceRole = (typeof INSTANCE_ROLES)[number];

/** The scope that owns tasks. Every query about tasks is made within one. */
export interface InstanceId {
  readonly role: InstanceRole;
  readonly id: string;
}

/** What can be known about a task without reading its journal. Times are milliseconds since the epoch. */
export interface TaskRow {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly owner: string;
  readonly status: TaskStatus;
  readonly title?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Inserts a task's row, or updates its status, `updatedAt` and, where the row has one, its title. */
export interface TaskPut extends RowWrite {
  readonly kind: "task.put";
  readonly row: TaskRow;
}

/** Replaces the journal's snapshot. Written out of band, never on the way of a message. */
export interface SnapshotPut extends RowWrite {
  readonly kind: "snapshot.put";
  readonly journal: JournalKey;
  readonly number: number;
  readonly data: string;
}

/** Removes a task: its row, journal and snapshot. Its task id is unused again. */
export interface TaskRemove extends RowWrite {
  readonly kind: "task.remove";
  readonly key: JournalKey;
}

export type EngineRowWrite = TaskPut | SnapshotPut | TaskRemove;

export interface TaskPage {
  readonly tasks: readonly TaskRow[];
  /** Hand this back to get the next page; absent on the last one. */
  readonly nextCursor?: string;
}

export interface TaskIndex {
  find(instance: InstanceId, taskId: string): Promise<TaskRow | undefined>;
  byKey(key: JournalKey): Promise<TaskRow | undefined>;
  /** Newest first. Without `instance` it lists every task: for administration only. */
  list(options: {
    instance?: InstanceId;
    status?: TaskStatus;
    limit: number;
    cursor?: string;
  }): Promise<TaskPage>;
  /** Oldest first, after a key. Without `instance` it lists every task: for administration only. */
  inOrder(options: { instance?: InstanceId; after?: JournalKey; limit: number }): Promise<TaskRow[]>;
  /** Tasks of one status in order of their key, for recovery. */
  withStatus(status: TaskStatus, afterKey: JournalKey | undefined, limit: number): Promise<TaskRow[]>;
  /**
   * Finished tasks (completed, failed, cancelled) that retention may remove: oldest first. Either limit is reason
   * enough to remove a task; where none is given there is nothing to remove.
   */
  finished(options: { updatedBefore?: number; beyondNewest?: number; limit: number }): Promise<TaskRow[]>;
  counts(instance?: InstanceId): Promise<Record<TaskStatus, number>>;
}

/** Carries wake-ups and live news between those who write and those who watch. Never the only copy of anything. */
export interface Bus {
  publish(channel: string, note: unknown): void;
  /** Handlers are called in order of publication; one that throws disturbs nobody else. */
  subscribe(channel: string, handler: (note: unknown) => void): () => void;
  close(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels it. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** Where new ids come from; a simulation hands in a seeded one. */
export interface Ids {
  /** A random UUID, for everything that goes on the wire. */
  uuid(): string;
  /** A time-ordered UUID, for keys that are indexed. */
  ordered(): string;
}

/** Another writer was first. The caller's picture of the journal is out of date and must be read again. */
export class StaleAppendError extends Error {
  override readonly name = "StaleAppendError";
  readonly code = "stale_append";
  readonly journal: JournalKey;
  readonly expected: number;
  readonly actual: number;
  constructor(journal: JournalKey, expected: number, actual: number) {
    super(`journal ${journal} is at ${actual}, not at ${expected}: it was written by someone else`);
    this.journal = journal;
    this.expected = expected;
    this.actual = actual;
  }
}

/** A row write came with a condition that does not hold (a name that is taken, a counter that is used up). */
export class RowConflictError extends Error {
  override readonly name = "RowConflictError";
  readonly code = "row_conflict";
  readonly kind: string;
  readonly reason: string;
  constructor(kind: string, reason: string) {
    super(`${kind} refused: ${reason}`);
    this.kind = kind;
    this.reason = reason;
  }
}
