import type { EngineRowWrite, SnapshotPut, TaskPut, TaskRemove } from "../../engine/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** The engine's tables: rows of tasks, readable without their journals, and snapshots of their state. */
export const engineTables = defineTableSet<EngineRowWrite>({
  name: "engine",
  migrations: [
    {
      number: 1,
      name: "tasks and snapshots",
      sql: `
        CREATE TABLE tasks (
          id INTEGER PRIMARY KEY,
          key TEXT NOT NULL UNIQUE,
          role TEXT NOT NULL,
          instance TEXT NOT NULL,
          task_id TEXT NOT NULL,
          owner TEXT NOT NULL,
          status TEXT NOT NULL,
          title TEXT,
          created_at INTEGER NOT NULL,
          updated_at INTEGER NOT NULL,
          UNIQUE (role, instance, task_id)
        ) STRICT;
        CREATE INDEX tasks_in_instance ON tasks (role, instance, status, key);
        CREATE INDEX tasks_by_status ON tasks (status, key);
        CREATE INDEX tasks_finished ON tasks (updated_at, key)
          WHERE status IN ('completed', 'failed', 'cancelled');
        CREATE TABLE snapshots (
          journal INTEGER PRIMARY KEY,
          number INTEGER NOT NULL,
          data TEXT NOT NULL
        ) STRICT;
      `,
    },
    {
      number: 2,
      name: "indexes of tasks that many users do not pay for, snapshots in parts",
      sql: (db) => {
        rebuildTasks(db);
        db.exec(NEW_SNAPSHOTS);
      },
    },
    { number: 3, name: "usage of tasks", sql: "ALTER TABLE tasks ADD COLUMN usage TEXT" },
  ],
  writes: {
    "task.put": putTask,
    "snapshot.put": putSnapshot,
    "task.remove": removeTask,
  },
});

/**
 * The unique key of the old table began with the instance, and SQLite cannot drop it. With many users, an index that
 * begins with the instance costs every new task a log page; only `task_list` does, and it is written in batches. The
 * other indexes have few rows or grow at the right end: tasks_by_id because generated ids are in the order of time.
 */
function rebuildTasks(db: Database): void {
  // Other table sets remove their rows of a task by triggers, which are dropped with the old table.
  const triggers = db
    .prepare<[], string>("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'tasks'")
    .pluck()
    .all();
  db.exec(`
    CREATE TABLE new_tasks (
      id INTEGER PRIMARY KEY,
      key TEXT NOT NULL UNIQUE,
      role TEXT NOT NULL,
      instance TEXT NOT NULL,
      task_id TEXT NOT NULL,
      owner TEXT NOT NULL,
      status TEXT NOT NULL,
      title TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      held INTEGER NOT NULL DEFAULT 0,
      open_work INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO new_tasks (id, key, role, instance, task_id, owner, status, title, created_at, updated_at)
      SELECT id, key, role, instance, task_id, owner, status, title, created_at, updated_at FROM tasks ORDER BY id;
    DROP TABLE tasks;
    ALTER TABLE new_tasks RENAME TO tasks;
    CREATE UNIQUE INDEX tasks_by_id ON tasks (task_id, instance, role);
    CREATE INDEX tasks_open ON tasks (status, key) WHERE status IN ('running', 'paused');
    CREATE INDEX tasks_held ON tasks (key) WHERE held = 1;
    CREATE INDEX tasks_open_work ON tasks (key) WHERE open_work = 1;
    CREATE INDEX tasks_finished ON tasks (updated_at, key)
      WHERE status IN ('completed', 'failed', 'cancelled');
    CREATE TABLE task_list (
      role TEXT NOT NULL,
      instance TEXT NOT NULL,
      key TEXT NOT NULL,
      PRIMARY KEY (role, instance, key)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO task_list SELECT role, instance, key FROM tasks ORDER BY role, instance, key;
    INSERT INTO counters SELECT 'listed', ifnull(max(id), 0) FROM tasks;
    ${triggers.map((sql) => `${sql};`).join("\n")}
  `);
}

/** Snapshots only save time: those of the old form are dropped and recreated. */
const NEW_SNAPSHOTS = `
  DROP TABLE snapshots;
  CREATE TABLE snapshots (
    journal INTEGER PRIMARY KEY,
    number INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE snapshot_parts (
    journal INTEGER NOT NULL,
    name TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (journal, name)
  ) STRICT;
`;

function putTask({ db, taskList }: WriteContext): (write: TaskPut) => void {
  const insert = db.prepare(`
    INSERT INTO tasks (id, key, role, instance, task_id, owner, status, title, created_at, updated_at, held, open_work, usage)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
  `);
  // A key or task id that belongs to another task is rejected, never updated on its behalf (law 6).
  const update = db.prepare(`
    UPDATE tasks SET status = ?, title = coalesce(?, title), updated_at = ?, held = ?, open_work = ?, usage = ?
    WHERE key = ? AND role = ? AND instance = ? AND task_id = ?
  `);
  return ({ kind, row }) => {
    const { key, taskId, status, createdAt, updatedAt } = row;
    const { role, id } = row.instance;
    const title = row.title ?? null;
    const held = row.held === true ? 1 : 0;
    const work = row.openWork === true ? 1 : 0;
    const usage = row.usage === undefined ? null : JSON.stringify(row.usage);
    const inserted = () => {
      const values = [
        key,
        role,
        id,
        taskId,
        row.owner,
        status,
        title,
        createdAt,
        updatedAt,
        held,
        work,
        usage,
      ];
      if (insert.run(taskList.nextNumber(), ...values).changes === 0) return false;
      taskList.add(row.instance, key);
      return true;
    };
    const updated = () =>
      update.run(status, title, updatedAt, held, work, usage, key, role, id, taskId).changes > 0;
    // Only new tasks come with a title, so the likely statement is tried first.
    if (title === null ? updated() || inserted() : inserted() || updated()) return;
    throw new RowConflictError(
      kind,
      `task id ${taskId} of ${role}:${id}, or key ${key}, belongs to another task`,
    );
  };
}

function putSnapshot({ db, journals }: WriteContext): (write: SnapshotPut) => void {
  const newestOf = db.prepare<[number], number>("SELECT number FROM snapshots WHERE journal = ?").pluck();
  const put = db.prepare("INSERT OR REPLACE INTO snapshots (journal, number) VALUES (?, ?)");
  const putPart = db.prepare("INSERT OR REPLACE INTO snapshot_parts (journal, name, data) VALUES (?, ?, ?)");
  const names = db.prepare<[number], string>("SELECT name FROM snapshot_parts WHERE journal = ?").pluck();
  const removePart = db.prepare("DELETE FROM snapshot_parts WHERE journal = ? AND name = ?");
  return ({ kind, journal, number, parts, kept }) => {
    const id = journals.idOf(journal);
    // Snapshots are written out of band, so one may arrive after its task was removed: it must not outlive it.
    if (id === undefined) throw new RowConflictError(kind, `journal ${journal} does not exist`);
    const last = journals.lastNumber(journal);
    if (number > last) {
      throw new RowConflictError(
        kind,
        `a snapshot at ${number} is ahead of journal ${journal}, which is at ${last}`,
      );
    }
    // An evicted task may be loaded again and write a newer snapshot first: parts of both do not fit together.
    const newest = newestOf.get(id);
    if (newest !== undefined && newest > number) {
      throw new RowConflictError(
        kind,
        `journal ${journal} has a snapshot at ${newest}, this one is at ${number}`,
      );
    }
    const missing = new Set(kept);
    for (const name of names.all(id)) if (!missing.delete(name)) removePart.run(id, name);
    const [lacking] = missing;
    if (lacking !== undefined) {
      throw new RowConflictError(kind, `the snapshot of journal ${journal} has no part "${lacking}" to keep`);
    }
    put.run(id, number);
    for (const { name, data } of parts) putPart.run(id, name, data);
  };
}

function removeTask({ db, journals, removals, taskList }: WriteContext): (write: TaskRemove) => void {
  const removeRow = db.prepare("DELETE FROM tasks WHERE key = ?");
  const find = db.prepare<
    [string],
    { role: string; instance: string; key: string; status: string; openWork: number }
  >("SELECT role, instance, key, status, open_work AS openWork FROM tasks WHERE key = ?");
  return ({ kind, key, expected }) => {
    const row = find.get(key);
    if (row?.status === "running") throw new RowConflictError(kind, `task ${key} is running`);
    if (row?.openWork === 1) {
      throw new RowConflictError(kind, `task ${key} has a running action or delivery`);
    }
    const last = journals.lastNumber(key);
    if (last !== expected) {
      throw new RowConflictError(kind, `the journal of task ${key} is at ${last}, not at ${expected}`);
    }
    if (row !== undefined) {
      removeRow.run(key);
      taskList.remove(row);
    }
    removals.remove(key);
  };
}
