/**
 * What the engine asks of the world, on top of the journal's own ports. Modules outside implement these; the engine
 * imports none of them.
 */
import type {
  Batch,
  Committed,
  JournalKey,
  JournalRow,
  RowWrite,
  Snapshot,
  SnapshotPart,
  StoredJournal,
} from "../journal/ports.js";
import type { Writer } from "../journal/writer.js";

export type { WriterHealth } from "../journal/writer.js";

import type { KeyValueMemory } from "./memory.js";

export {
  type Append,
  type Batch,
  type Bus,
  type Clock,
  type Committed,
  type Ids,
  type JournalKey,
  type JournalRow,
  type Loop,
  RowConflictError,
  type RowWrite,
  type Snapshot,
  type SnapshotPart,
  StaleAppendError,
  type StoredJournal,
} from "../journal/ports.js";

export interface Store {
  /** The one way to the disk; the kernel hands its units to it. */
  readonly writer: Writer;
  /**
   * Makes a batch durable, all or nothing. Batches that arrive together may share one transaction, but a
   * batch that is refused takes no other with it. Batches take effect in the order of the calls.
   *
   * A `post` (the default) is refused at once when there is no room or the store cannot be written for the moment; a
   * `result` says what is known already, and waits.
   * @throws StaleAppendError when an append's expected number is not the journal's last number.
   * @throws RowConflictError when a conditional row write does not hold.
   * @throws StoreBusyError, StoreFailedError, StoreClosedError
   */
  commit(batch: Batch, kind?: "post" | "result"): Promise<Committed>;
  /** Rows of one journal in order, beginning with the row that contains number `after` + 1. */
  read(journal: JournalKey, options?: { after?: number; limit?: number }): Promise<JournalRow[]>;
  /** Snapshot and the rows behind it, of many journals at once; what is missing has no rows. In the order asked for. */
  readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]>;
  /** Rows of all journals in commit order after a position; nothing is ever inserted before what was returned. */
  readAll(afterPosition: number, limit: number): Promise<JournalRow[]>;
  /** Every row up to this position can be read; later ones may follow. */
  position(): Promise<number>;
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
  /** An agent waits for something that it needs (the task is paused for that); recovery tries such tasks again. */
  readonly held?: boolean;
  /** The task does not run, but an action of it is under way: recovery takes it up. */
  readonly openWork?: boolean;
}

/** Inserts a task's row, or updates its status, `updatedAt` and, where the row has one, its title. */
export interface TaskPut extends RowWrite {
  readonly kind: "task.put";
  readonly row: TaskRow;
}

/**
 * Replaces the journal's snapshot, unless that is newer. Written out of band, never on the way of a message.
 */
export interface SnapshotPut extends RowWrite {
  readonly kind: "snapshot.put";
  readonly journal: JournalKey;
  readonly number: number;
  /** Parts that are new or have changed. */
  readonly parts: readonly SnapshotPart[];
  /** Names of parts that stay as they are; every other part is removed. */
  readonly kept: readonly string[];
}

/**
 * Removes a task: its row, journal and snapshot. Its task id is unused again. Refused while the task runs or
 * something of it is under way, and when its journal has moved past `expected`.
 */
export interface TaskRemove extends RowWrite {
  readonly kind: "task.remove";
  readonly key: JournalKey;
  /** The journal's last number as the caller knows it. */
  readonly expected: number;
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
  /** Tasks that a starting process has to look at although they do not run (`held`, `openWork`), by key. */
  withWork(kind: "held" | "openWork", afterKey: JournalKey | undefined, limit: number): Promise<TaskRow[]>;
  /**
   * Finished tasks (completed, failed, cancelled) that retention may remove: oldest first, after a row that was
   * returned before. Either limit is reason enough to remove a task; where none is given there is nothing to remove.
   */
  finished(options: {
    updatedBefore?: number;
    beyondNewest?: number;
    limit: number;
    after?: Pick<TaskRow, "updatedAt" | "key">;
  }): Promise<TaskRow[]>;
  counts(instance?: InstanceId): Promise<Record<TaskStatus, number>>;
}
