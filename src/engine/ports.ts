/**
 * What the engine requires of a store, on top of the journal's own ports. Other modules implement it; the engine
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
  Writer,
} from "../journal/index.js";
import type { BudgetChange, UsageTotals } from "./usage.js";

/** Where journals and rows are stored. `openStore` opens one. */
export interface Store {
  /** The only path to the disk. */
  readonly writer: Writer;
  /**
   * Makes a batch durable, all or nothing. Batches that arrive together may share one transaction, but a
   * refused batch does not affect others. Batches take effect in the order of the calls.
   *
   * A `post` (the default) is refused at once when the queue is full or the store is degraded; a `result` waits.
   * @throws StaleAppendError when an append's expected number is not the journal's last number.
   * @throws RowConflictError when a conditional row write does not hold.
   * @throws MailroomError `store_busy`, `store_failed`, `store_closed`
   */
  commit(batch: Batch, kind?: "post" | "result"): Promise<Committed>;
  /**
   * Rows of one journal in order, beginning with the row that contains number `after` + 1. Stops after the row with
   * which they reach `characters`, so that a few large rows do not fill the memory.
   */
  read(
    journal: JournalKey,
    options?: { after?: number; limit?: number; characters?: number },
  ): Promise<JournalRow[]>;
  /**
   * Snapshot and the rows after it, of many journals at once in the order of the keys; a missing journal has no rows.
   * At least one journal: a store stops early when they get large, and the caller asks again for the rest.
   */
  readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]>;
  /**
   * Rows of all journals in commit order after a position; nothing is ever inserted before what was returned. Stops at
   * `characters` as `read` does.
   */
  readAll(afterPosition: number, limit: number, characters?: number): Promise<JournalRow[]>;
  /** Every row up to this position can be read; later ones may follow. */
  position(): Promise<number>;
  /** 0 for a journal that does not exist. */
  lastNumber(journal: JournalKey): Promise<number>;
  readSnapshot(journal: JournalKey): Promise<Snapshot | undefined>;
  readonly tasks: TaskReads;
  /** Approvers of tasks and the audit log, if the store implements them. */
  readonly approvals?: ApprovalReads;
  /** What model calls used by day, and limits that admins set, if the store implements them. */
  readonly usage?: UsageReads;
  /** The key-value memory of instances, if the store implements it. */
  readonly memory?: KeyValueStore;
  /** Returns the space of removed tasks to the system. Called after a round of retention. */
  reclaim?(): Promise<unknown>;
  close(): Promise<void>;
}

export const TASK_STATUSES = ["running", "paused", "completed", "failed", "cancelled"] as const;
/** Whether a task runs, waits for a person, or has ended. */
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const INSTANCE_ROLES = ["admin", "user", "swarm"] as const;
export type InstanceRole = (typeof INSTANCE_ROLES)[number];

/** The scope that owns tasks. Every query about tasks is made within one. */
export interface InstanceId {
  readonly role: InstanceRole;
  readonly id: string;
}

/** The facts about a task that are available without reading its journal. Times are milliseconds since the epoch. */
export interface TaskRow {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly owner: string;
  readonly status: TaskStatus;
  readonly title?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The task is paused because an agent requires something; recovery retries it. */
  readonly held?: boolean;
  /** The task does not run, but one of its actions does: recovery resumes it. */
  readonly openWork?: boolean;
  /** What its model calls used; absent before the first one. */
  readonly usage?: UsageTotals;
}

/** Inserts a task's row, or updates its status, `updatedAt` and, where the row has one, its title. */
export interface TaskPut extends RowWrite {
  readonly kind: "task.put";
  readonly row: TaskRow;
}

/**
 * Replaces the journal's snapshot, unless that is newer. Written out of band, never in the path of a message.
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
 * has running actions, and when its journal has moved past `expected`.
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

export interface TaskReads {
  find(instance: InstanceId, taskId: string): Promise<TaskRow | undefined>;
  byKey(key: JournalKey): Promise<TaskRow | undefined>;
  /** Newest first. Without `instance` it lists every task: for administration only. A cursor is a key: older ones follow. */
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
  /** Tasks that recovery must load although they do not run (`held`, `openWork`), by key. */
  withWork(kind: "held" | "openWork", afterKey: JournalKey | undefined, limit: number): Promise<TaskRow[]>;
  /**
   * Finished tasks (completed, failed, cancelled) that retention may remove: oldest first, after a row that was
   * returned before. Either limit is reason enough to remove a task; without limits nothing is removed.
   */
  finished(options: {
    updatedBefore?: number;
    beyondNewest?: number;
    limit: number;
    after?: Pick<TaskRow, "updatedAt" | "key">;
  }): Promise<TaskRow[]>;
  counts(instance?: InstanceId): Promise<Record<TaskStatus, number>>;
}

/** Replaces the approvers of a task, so that their tasks can be listed. Removed with the task. */
export interface ApproversPut extends RowWrite {
  readonly kind: "approvers.put";
  readonly key: JournalKey;
  readonly approvers: readonly string[];
}

export const AUDIT_ACTIONS = ["approvers", "answer", "message", "cancel", "budget"] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What a principal did to a task, committed with its journal entries. It outlives the task. */
export interface AuditRecord {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** `role:id` of the principal that acted. */
  readonly actor: string;
  readonly action: AuditAction;
  /** Why it was allowed to. */
  readonly right: "owner" | "approver" | "admin";
  readonly key: JournalKey;
  readonly taskId: string;
  /** `role:id` of the instance that owns the task. */
  readonly owner: string;
  /** Facts without contents: approvers, call ids. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface AuditPut extends RowWrite {
  readonly kind: "audit.put";
  readonly record: AuditRecord;
}

/** Removes records from before a time, the oldest first; of very many, only some. */
export interface AuditExpire extends RowWrite {
  readonly kind: "audit.expire";
  readonly before: number;
}

export type ApprovalRowWrite = ApproversPut | AuditPut | AuditExpire;

export interface ApprovalReads {
  /** Paused tasks that wait for one of these approvers, newest first. */
  named(options: {
    approvers: readonly string[];
    limit: number;
    cursor?: string;
    order?: "asc" | "desc";
  }): Promise<TaskPage>;
  /**
   * Newest first. With `concerning`, only what that principal did and what was done to its tasks. A page ends with the
   * number to pass as `before`.
   */
  audit(options: {
    concerning?: string;
    actor?: string;
    key?: JournalKey;
    before?: number;
    limit: number;
  }): Promise<readonly (AuditRecord & { readonly number: number })[]>;
  /** When the oldest record was made; undefined without any. */
  oldestAudit(): Promise<number | undefined>;
}

/** Adds to what model calls used on a day, in one commit with the entries that say so. */
export interface UsageAdd extends RowWrite {
  readonly kind: "usage.add";
  /** In UTC: `2026-01-31`. */
  readonly day: string;
  readonly instance: InstanceId;
  readonly agent: string;
  /** Tokens and cost may be negative, where an estimate was too high. */
  readonly used: UsageTotals;
}

/** What the limits apply to: one caller (`role:id`), or the whole server. */
export type BudgetScope = { readonly caller: InstanceId; readonly total?: true } | "day";

/** Replaces the limits that admins set in place of the configured ones. Without any, the configured ones apply. */
export interface BudgetPut extends RowWrite {
  readonly kind: "budget.put";
  readonly scope: BudgetScope;
  readonly limits: BudgetChange;
}

/**
 * Removes days from before a day, the oldest first; of very many rows, only some. What callers used in total stays the
 * same.
 */
export interface UsageExpire extends RowWrite {
  readonly kind: "usage.expire";
  readonly before: string;
}

export type UsageRowWrite = UsageAdd | UsageExpire | BudgetPut;

export interface UsageReads {
  /** Of one caller, or of all. */
  ofDay(day: string, caller?: InstanceId): Promise<UsageTotals | undefined>;
  /** Of one caller on all days, including those that were removed. */
  total(caller: InstanceId): Promise<UsageTotals | undefined>;
  /** Days with any usage, newest first. `to` is included. */
  days(options: {
    caller?: InstanceId;
    from?: string;
    to?: string;
    limit: number;
  }): Promise<readonly { readonly day: string; readonly used: UsageTotals }[]>;
  /** The oldest day with any usage. */
  oldestDay(): Promise<string | undefined>;
  /** By agent, of one caller or of all, the most expensive first. */
  agents(
    day: string,
    limit: number,
    caller?: InstanceId,
  ): Promise<readonly { readonly agent: string; readonly used: UsageTotals }[]>;
  /** The most expensive first. */
  callers(
    day: string,
    limit: number,
  ): Promise<readonly { readonly caller: InstanceId; readonly used: UsageTotals }[]>;
  /** Limits that admins set, as they are stored. */
  limits(scope: BudgetScope): Promise<BudgetChange | undefined>;
  /** All callers with limits of their own, for a day or in total, in order. */
  limitedCallers(limit: number, after?: InstanceId): Promise<readonly InstanceId[]>;
}

export interface MemoryItem {
  readonly key: string;
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

export interface MemoryListOptions {
  /** Only keys that begin with this. */
  readonly prefix?: string;
  /** Only keys that come after this one. */
  readonly after?: string;
  readonly limit: number;
}

/**
 * The key-value memory of instances (decision H3): what agents store beyond a task. The store implements it; programs can
 * pass another implementation. Every call names the instance: no instance sees the memory of another.
 */
export interface KeyValueStore {
  get(instance: InstanceId, key: string): Promise<MemoryItem | undefined>;
  /**
   * Resolves when it is durable.
   * @throws an Error with code `row_conflict` when the instance stores too much
   */
  set(instance: InstanceId, key: string, value: string): Promise<void>;
  /** Whether there was something to remove. */
  delete(instance: InstanceId, key: string): Promise<boolean>;
  /** In the order of the keys. */
  list(instance: InstanceId, options: MemoryListOptions): Promise<readonly MemoryItem[]>;
}
