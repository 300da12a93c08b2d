import {
  INSTANCE_ROLES,
  type InstanceId,
  type InstanceRole,
  TASK_STATUSES,
  type TaskIndex,
  type TaskRow,
  type TaskStatus,
} from "../../engine/ports.js";
import type { Database } from "./driver.js";

interface StoredTask {
  readonly key: string;
  readonly role: string;
  readonly instance: string;
  readonly task_id: string;
  readonly owner: string;
  readonly status: string;
  readonly title: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

const COLUMNS = "key, role, instance, task_id, owner, status, title, created_at, updated_at";

/** Sorts after every key: where a list begins that was given no cursor. */
const AFTER_EVERY_KEY = "\u{10FFFF}";

/** The queries, by name, so that a test can ask for their plans. */
export const TASK_QUERIES = {
  find: `SELECT ${COLUMNS} FROM tasks WHERE role = @role AND instance = @instance AND task_id = @taskId`,
  byKey: `SELECT ${COLUMNS} FROM tasks WHERE key = @key`,
  listAll: `SELECT ${COLUMNS} FROM tasks WHERE key < @before ORDER BY key DESC LIMIT @limit`,
  listStatus: `SELECT ${COLUMNS} FROM tasks WHERE status = @status AND key < @before ORDER BY key DESC LIMIT @limit`,
  listInstanceStatus: `SELECT ${COLUMNS} FROM tasks
    WHERE role = @role AND instance = @instance AND status = @status AND key < @before
    ORDER BY key DESC LIMIT @limit`,
  // One index serves an instance's list with and without a status: without, its five ordered parts are merged.
  listInstance: `${TASK_STATUSES.map(
    (status) => `SELECT ${COLUMNS} FROM tasks
      WHERE role = @role AND instance = @instance AND status = '${status}' AND key < @before`,
  ).join(" UNION ALL ")} ORDER BY key DESC LIMIT @limit`,
  inOrderAll: `SELECT ${COLUMNS} FROM tasks WHERE key > @after ORDER BY key LIMIT @limit`,
  inOrderInstance: `${TASK_STATUSES.map(
    (status) => `SELECT ${COLUMNS} FROM tasks
      WHERE role = @role AND instance = @instance AND status = '${status}' AND key > @after`,
  ).join(" UNION ALL ")} ORDER BY key LIMIT @limit`,
  withStatus: `SELECT ${COLUMNS} FROM tasks WHERE status = @status AND key > @after ORDER BY key LIMIT @limit`,
  // Named, because the planner would rather look up the three statuses in tasks_by_status and sort all they have.
  finishedBefore: `SELECT ${COLUMNS} FROM tasks INDEXED BY tasks_finished
    WHERE status IN ('completed', 'failed', 'cancelled') AND (updated_at, key) < (@updatedAt, @key)
    ORDER BY updated_at, key LIMIT @limit`,
  oldestToKeep: `SELECT updated_at AS updatedAt, key FROM tasks INDEXED BY tasks_finished
    WHERE status IN ('completed', 'failed', 'cancelled')
    ORDER BY updated_at DESC, key DESC LIMIT 1 OFFSET @skip`,
  counts: "SELECT status, count(*) AS count FROM tasks GROUP BY status",
  countsOfInstance: `SELECT status, count(*) AS count FROM tasks
    WHERE role = @role AND instance = @instance GROUP BY status`,
} as const;

/** The end of what retention may remove, in the order (updatedAt, key). */
interface Cutoff {
  readonly updatedAt: number;
  readonly key: string;
}

export function createTaskIndex(db: Database, assertOpen: () => void): TaskIndex {
  const one = (sql: string) => db.prepare<[object], StoredTask>(sql);
  const find = one(TASK_QUERIES.find);
  const byKey = one(TASK_QUERIES.byKey);
  const listAll = one(TASK_QUERIES.listAll);
  const listStatus = one(TASK_QUERIES.listStatus);
  const listInstance = one(TASK_QUERIES.listInstance);
  const listInstanceStatus = one(TASK_QUERIES.listInstanceStatus);
  const inOrderAll = one(TASK_QUERIES.inOrderAll);
  const inOrderInstance = one(TASK_QUERIES.inOrderInstance);
  const withStatus = one(TASK_QUERIES.withStatus);
  const finishedBefore = one(TASK_QUERIES.finishedBefore);
  const oldestToKeep = db.prepare<[object], Cutoff>(TASK_QUERIES.oldestToKeep);
  const counts = db.prepare<[], { status: string; count: number }>(TASK_QUERIES.counts);
  const countsOfInstance = db.prepare<[object], { status: string; count: number }>(
    TASK_QUERIES.countsOfInstance,
  );

  function select(
    instance: InstanceId | undefined,
    status: TaskStatus | undefined,
    page: { before: string; limit: number },
  ): StoredTask[] {
    if (instance === undefined) {
      return status === undefined ? listAll.all(page) : listStatus.all({ ...page, status });
    }
    const scope = scopeOf(instance);
    return status === undefined
      ? listInstance.all({ ...page, ...scope })
      : listInstanceStatus.all({ ...page, ...scope, status });
  }

  /** Retention keeps a task only if every limit lets it: the later of the two cutoffs counts. */
  function cutoffFor(
    updatedBefore: number | undefined,
    beyondNewest: number | undefined,
  ): Cutoff | undefined {
    const byAge = updatedBefore === undefined ? undefined : { updatedAt: updatedBefore, key: "" };
    if (beyondNewest === undefined) return byAge;
    const byNumber: Cutoff | undefined =
      beyondNewest === 0
        ? { updatedAt: Number.MAX_SAFE_INTEGER, key: AFTER_EVERY_KEY }
        : oldestToKeep.get({ skip: beyondNewest - 1 });
    if (byAge === undefined || byNumber === undefined) return byAge ?? byNumber;
    return byAge.updatedAt > byNumber.updatedAt ? byAge : byNumber;
  }

  return {
    async find(instance, taskId) {
      assertOpen();
      return optional(find.get({ ...scopeOf(instance), taskId }));
    },

    async byKey(key) {
      assertOpen();
      return optional(byKey.get({ key }));
    },

    async list({ instance, status, limit, cursor }) {
      assertOpen();
      // One more than asked for tells whether there is another page.
      const rows = select(instance, status, { before: cursor ?? AFTER_EVERY_KEY, limit: limit + 1 });
      const tasks = rows.slice(0, limit).map(toTaskRow);
      const last = tasks.at(-1);
      return rows.length > limit && last !== undefined ? { tasks, nextCursor: last.key } : { tasks };
    },

    async inOrder({ instance, after = "", limit }) {
      assertOpen();
      const rows =
        instance === undefined
          ? inOrderAll.all({ after, limit })
          : inOrderInstance.all({ ...scopeOf(instance), after, limit });
      return rows.map(toTaskRow);
    },

    async withStatus(status, afterKey, limit) {
      assertOpen();
      return withStatus.all({ status, after: afterKey ?? "", limit }).map(toTaskRow);
    },

    async finished({ updatedBefore, beyondNewest, limit }) {
      assertOpen();
      const cutoff = cutoffFor(updatedBefore, beyondNewest);
      return cutoff === undefined ? [] : finishedBefore.all({ ...cutoff, limit }).map(toTaskRow);
    },

    async counts(instance) {
      assertOpen();
      const rows = instance === undefined ? counts.all() : countsOfInstance.all(scopeOf(instance));
      const total = { running: 0, paused: 0, completed: 0, failed: 0, cancelled: 0 };
      for (const { status, count } of rows) total[statusOf(status)] = count;
      return total;
    },
  };
}

function scopeOf({ role, id }: InstanceId): { role: string; instance: string } {
  return { role, instance: id };
}

function optional(stored: StoredTask | undefined): TaskRow | undefined {
  return stored === undefined ? undefined : toTaskRow(stored);
}

function toTaskRow(stored: StoredTask): TaskRow {
  return {
    key: stored.key,
    instance: { role: roleOf(stored.role), id: stored.instance },
    taskId: stored.task_id,
    owner: stored.owner,
    status: statusOf(stored.status),
    ...(stored.title === null ? {} : { title: stored.title }),
    createdAt: stored.created_at,
    updatedAt: stored.updated_at,
  };
}

function statusOf(text: string): TaskStatus {
  const status = TASK_STATUSES.find((candidate) => candidate === text);
  if (status === undefined) throw new Error(`the database holds a task of unknown status "${text}"`);
  return status;
}

function roleOf(text: string): InstanceRole {
  const role = INSTANCE_ROLES.find((candidate) => candidate === text);
  if (role === undefined) throw new Error(`the database holds a task of unknown role "${text}"`);
  return role;
}
