import {
  INSTANCE_ROLES,
  type InstanceId,
  type InstanceRole,
  TASK_STATUSES,
  type TaskReads,
  type TaskRow,
  type TaskStatus,
} from "../../engine/index.js";
import type { Loop } from "../../journal/index.js";
import type { Database } from "../database.js";

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
  readonly held: number;
  readonly open_work: number;
  readonly usage: string | null;
}

const COLUMNS =
  "key, role, instance, task_id, owner, status, title, created_at, updated_at, held, open_work, usage";

/** Sorts after every key: where a list without a cursor begins. */
const AFTER_EVERY_KEY = "\u{10FFFF}";

/** Maximum number of rows that a page reads, however few of them match. */
const MOST_ROWS = 2_000;

/** Rows that a filtered page reads at a time. */
const FEWEST_ROWS = 100;

/** Tasks counted before other work may run. */
const COUNTED_AT_ONCE = 2_000;

const OPEN = "status IN ('running', 'paused')";
const FINISHED = "status IN ('completed', 'failed', 'cancelled')";

const LISTED_COLUMNS = COLUMNS.replaceAll(/\w+/g, "tasks.$&");
const LISTED = `FROM task_list CROSS JOIN tasks ON tasks.key = task_list.key
    WHERE task_list.role = @role AND task_list.instance = @instance`;

/** The queries by name, so that a test can check their plans. */
export const TASK_QUERIES = {
  find: `SELECT ${COLUMNS} FROM tasks WHERE task_id = @taskId AND instance = @instance AND role = @role`,
  byKey: `SELECT ${COLUMNS} FROM tasks WHERE key = @key`,
  listAll: `SELECT ${COLUMNS} FROM tasks WHERE key < @before ORDER BY key DESC LIMIT @limit`,
  // The condition twice: as the index has it, so that it is used, and as requested.
  listOpen: `SELECT ${COLUMNS} FROM tasks
    WHERE ${OPEN} AND status = @status AND key < @before ORDER BY key DESC LIMIT @limit`,
  listInstance: `SELECT ${LISTED_COLUMNS} ${LISTED} AND task_list.key < @before ORDER BY task_list.key DESC LIMIT @limit`,
  inOrderAll: `SELECT ${COLUMNS} FROM tasks WHERE key > @after ORDER BY key LIMIT @limit`,
  inOrderInstance: `SELECT ${LISTED_COLUMNS} ${LISTED} AND task_list.key > @after ORDER BY task_list.key LIMIT @limit`,
  withOpenStatus: `SELECT ${COLUMNS} FROM tasks
    WHERE ${OPEN} AND status = @status AND key > @after ORDER BY key LIMIT @limit`,
  withStatus: `SELECT ${COLUMNS} FROM tasks WHERE status = @status AND key > @after ORDER BY key LIMIT @limit`,
  withHeld: `SELECT ${COLUMNS} FROM tasks WHERE held = 1 AND key > @after ORDER BY key LIMIT @limit`,
  withOpenWork: `SELECT ${COLUMNS} FROM tasks WHERE open_work = 1 AND key > @after ORDER BY key LIMIT @limit`,
  // Named, because the planner would otherwise walk the keys.
  finishedBefore: `SELECT ${COLUMNS} FROM tasks INDEXED BY tasks_finished
    WHERE ${FINISHED} AND (updated_at, key) < (@updatedAt, @key)
      AND (updated_at, key) > (@afterUpdatedAt, @afterKey)
    ORDER BY updated_at, key LIMIT @limit`,
  oldestToKeep: `SELECT updated_at AS updatedAt, key FROM tasks INDEXED BY tasks_finished
    WHERE ${FINISHED} ORDER BY updated_at DESC, key DESC LIMIT 1 OFFSET @skip`,
  countAll: `SELECT status, count(*) AS count, max(key) AS newest FROM (
      SELECT key, status FROM tasks WHERE key > @after ORDER BY key LIMIT @limit
    ) GROUP BY status`,
  countInstance: `SELECT status, count(*) AS count, max(key) AS newest FROM (
      SELECT tasks.key, status ${LISTED} AND task_list.key > @after ORDER BY task_list.key LIMIT @limit
    ) GROUP BY status`,
} as const;

/** Tasks of one status, within a part of a list. */
interface Counted {
  readonly status: string;
  readonly count: number;
  readonly newest: string;
}

/** Where retention must stop, in the order (updatedAt, key). */
interface Cutoff {
  readonly updatedAt: number;
  readonly key: string;
}

export interface TaskReadsParts {
  readonly taskList: {
    /** Keys of the instance's tasks that are not in the table `task_list` yet, in no order. */
    unlisted(instance: InstanceId): string[];
  };
  readonly loop: Loop;
  /** Called before every read. */
  readonly ready: () => void;
}

export function createTaskReads(db: Database, { taskList, loop, ready }: TaskReadsParts): TaskReads {
  const one = (sql: string) => db.prepare<[object], StoredTask>(sql);
  const find = one(TASK_QUERIES.find);
  const byKey = one(TASK_QUERIES.byKey);
  const listAll = one(TASK_QUERIES.listAll);
  const listOpen = one(TASK_QUERIES.listOpen);
  const listInstance = one(TASK_QUERIES.listInstance);
  const inOrderAll = one(TASK_QUERIES.inOrderAll);
  const inOrderInstance = one(TASK_QUERIES.inOrderInstance);
  const withOpenStatus = one(TASK_QUERIES.withOpenStatus);
  const withStatus = one(TASK_QUERIES.withStatus);
  const withHeld = one(TASK_QUERIES.withHeld);
  const withOpenWork = one(TASK_QUERIES.withOpenWork);
  const finishedBefore = one(TASK_QUERIES.finishedBefore);
  const countAll = db.prepare<[object], Counted>(TASK_QUERIES.countAll);
  const countInstance = db.prepare<[object], Counted>(TASK_QUERIES.countInstance);
  const oldestToKeep = db.prepare<[object], Cutoff>(TASK_QUERIES.oldestToKeep);

  /** Merges an instance's tasks that are not in the table yet with listed ones, in order. */
  function merged(
    listed: readonly StoredTask[],
    instance: InstanceId,
    limit: number,
    order: {
      readonly includes: (key: string) => boolean;
      readonly compare: (a: string, b: string) => number;
    },
  ): StoredTask[] {
    const others = taskList.unlisted(instance).filter(order.includes).sort(order.compare).slice(0, limit);
    if (others.length === 0) return [...listed];
    const rows = others.flatMap((key) => byKey.get({ key }) ?? []);
    return [...listed, ...rows].sort((a, b) => order.compare(a.key, b.key)).slice(0, limit);
  }

  /** Candidate rows of a page, newest first; the caller filters them. */
  function rowsBefore(
    instance: InstanceId | undefined,
    status: TaskStatus | undefined,
    page: { readonly before: string; readonly limit: number },
  ): StoredTask[] {
    if (status !== undefined && isOpen(status)) return listOpen.all({ ...page, status });
    if (instance === undefined) return listAll.all(page);
    const listed = listInstance.all({ ...page, ...scopeOf(instance) });
    return merged(listed, instance, page.limit, {
      includes: (key) => key < page.before,
      compare: newestFirst,
    });
  }

  function rowsAfter(instance: InstanceId | undefined, after: string, limit: number): StoredTask[] {
    if (instance === undefined) return inOrderAll.all({ after, limit });
    const listed = inOrderInstance.all({ ...scopeOf(instance), after, limit });
    return merged(listed, instance, limit, { includes: (key) => key > after, compare: oldestFirst });
  }

  /** Retention keeps a task only if every limit allows it: the later of the two cutoffs counts. */
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
      ready();
      return optional(find.get({ ...scopeOf(instance), taskId }));
    },

    async byKey(key) {
      ready();
      return optional(byKey.get({ key }));
    },

    async list({ instance, status, limit, cursor }) {
      ready();
      const asked = (row: StoredTask): boolean =>
        (status === undefined || row.status === status) &&
        (instance === undefined || (row.role === instance.role && row.instance === instance.id));
      const tasks: TaskRow[] = [];
      let before = cursor ?? AFTER_EVERY_KEY;
      for (let read = 0; read < MOST_ROWS; ) {
        // One row more than requested tells whether there is another page.
        const most =
          status === undefined ? limit + 1 : Math.min(MOST_ROWS - read, Math.max(limit + 1, FEWEST_ROWS));
        const rows = rowsBefore(instance, status, { before, limit: most });
        for (const row of rows) {
          if (asked(row)) {
            if (tasks.length >= limit) return { tasks, nextCursor: tasks.at(-1)?.key ?? before };
            tasks.push(toTaskRow(row));
          }
          before = row.key;
        }
        if (rows.length < most) return { tasks };
        read += rows.length;
      }
      return { tasks, nextCursor: before };
    },

    async inOrder({ instance, after = "", limit }) {
      ready();
      return rowsAfter(instance, after, limit).map(toTaskRow);
    },

    async withStatus(status, afterKey, limit) {
      ready();
      const query = isOpen(status) ? withOpenStatus : withStatus;
      return query.all({ status, after: afterKey ?? "", limit }).map(toTaskRow);
    },

    async withWork(kind, afterKey, limit) {
      ready();
      const query = kind === "held" ? withHeld : withOpenWork;
      return query.all({ after: afterKey ?? "", limit }).map(toTaskRow);
    },

    async finished({ updatedBefore, beyondNewest, limit, after }) {
      ready();
      const cutoff = cutoffFor(updatedBefore, beyondNewest);
      if (cutoff === undefined) return [];
      const from = {
        afterUpdatedAt: after?.updatedAt ?? Number.MIN_SAFE_INTEGER,
        afterKey: after?.key ?? "",
      };
      return finishedBefore.all({ ...cutoff, ...from, limit }).map(toTaskRow);
    },

    async counts(instance) {
      const total = { running: 0, paused: 0, completed: 0, failed: 0, cancelled: 0 };
      for (let after = ""; ; ) {
        ready();
        const page = { after, limit: COUNTED_AT_ONCE };
        const counted =
          instance === undefined ? countAll.all(page) : countInstance.all({ ...page, ...scopeOf(instance) });
        let read = 0;
        let last = after;
        for (const { status, count, newest } of counted) {
          total[statusOf(status)] += count;
          read += count;
          if (newest > last) last = newest;
        }
        const done = read < COUNTED_AT_ONCE;
        for (const key of instance === undefined ? [] : taskList.unlisted(instance)) {
          const row = key > after && (done || key <= last) ? byKey.get({ key }) : undefined;
          if (row !== undefined) total[statusOf(row.status)]++;
        }
        if (done) return total;
        after = last;
        await new Promise<void>((resume) => loop.soon(resume));
      }
    },
  };
}

function isOpen(status: TaskStatus): boolean {
  return status === "running" || status === "paused";
}

function oldestFirst(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function newestFirst(a: string, b: string): number {
  return oldestFirst(b, a);
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
    ...(stored.held === 1 && { held: true }),
    ...(stored.open_work === 1 && { openWork: true }),
    ...(stored.usage !== null && { usage: JSON.parse(stored.usage) }),
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
