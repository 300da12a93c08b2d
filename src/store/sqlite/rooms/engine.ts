import type { EngineRowWrite, SnapshotPut, TaskPut, TaskRemove } from "../../../engine/ports.js";
import { RowConflictError } from "../../../engine/ports.js";
import { defineRoom, type RoomContext } from "../room.js";

/** The engine's tables: what is known about tasks without reading journals, and snapshots of their state. */
export const engineRoom = defineRoom<EngineRowWrite>({
  room: "engine",
  migrations: [
    {
      number: 1,
      name: "tasks and snapshots",
      // Which index serves what: tasks_in_instance the lists and counts of one instance, tasks_by_status recovery
      // and administration, tasks_finished retention. Each is paid for at every opening, so there are no more.
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
  ],
  writes: {
    "task.put": putTask,
    "snapshot.put": putSnapshot,
    "task.remove": removeTask,
  },
});

function putTask({ db }: RoomContext): (write: TaskPut) => void {
  const insert = db.prepare(`
    INSERT INTO tasks (key, role, instance, task_id, owner, status, title, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
  `);
  // Law 5: a key or a task id that belongs to another task is never updated on its behalf, but refused.
  const update = db.prepare(`
    UPDATE tasks SET status = ?, title = coalesce(?, title), updated_at = ?
    WHERE key = ? AND role = ? AND instance = ? AND task_id = ?
  `);
  return ({ kind, row }) => {
    const { key, taskId, status, createdAt, updatedAt } = row;
    const { role, id } = row.instance;
    const title = row.title ?? null;
    const inserted = () =>
      insert.run(key, role, id, taskId, row.owner, status, title, createdAt, updatedAt).changes > 0;
    const updated = () => update.run(status, title, updatedAt, key, role, id, taskId).changes > 0;
    // Only the opening of a task gives it a title, so what is likely is tried first.
    if (title === null ? updated() || inserted() : inserted() || updated()) return;
    throw new RowConflictError(
      kind,
      `task id ${taskId} of ${role}:${id}, or key ${key}, belongs to another task`,
    );
  };
}

function putSnapshot({ db, journals }: RoomContext): (write: SnapshotPut) => void {
  const put = db.prepare("INSERT OR REPLACE INTO snapshots (journal, number, data) VALUES (?, ?, ?)");
  return ({ kind, journal, number, data }) => {
    const id = journals.idOf(journal);
    // Snapshots are written out of band, so one may come after its task was removed: it must not outlive it.
    if (id === undefined) throw new RowConflictError(kind, `there is no journal ${journal}`);
    const last = journals.lastNumber(journal);
    if (number > last) {
      throw new RowConflictError(
        kind,
        `a snapshot at ${number} is ahead of journal ${journal}, which is at ${last}`,
      );
    }
    put.run(id, number, data);
  };
}

function removeTask({ db, journals }: RoomContext): (write: TaskRemove) => void {
  const removeRow = db.prepare("DELETE FROM tasks WHERE key = ?");
  const removeSnapshot = db.prepare("DELETE FROM snapshots WHERE journal = ?");
  return ({ key }) => {
    removeRow.run(key);
    const id = journals.idOf(key);
    if (id === undefined) return;
    removeSnapshot.run(id);
    journals.remove(key);
  };
}
