import type { InstanceId, SnapshotPut, TaskPut, TaskRemove, TaskRow } from "../../engine/index.js";
import type { Append, JournalRow } from "../../journal/index.js";

export const ANN: InstanceId = { role: "user", id: "ann" };
export const BOB: InstanceId = { role: "user", id: "bob" };

export function append(journal: string, expected: number, ...entries: string[]): Append {
  return { journal, expected, count: entries.length, data: JSON.stringify(entries) };
}

/** Which appends share a row is the store's to choose: what counts are the entries. */
export function entriesOf(rows: readonly JournalRow[]): unknown[] {
  return rows.flatMap(({ data }): unknown[] => JSON.parse(data));
}

export function task(key: string, fields: Partial<Omit<TaskRow, "key">> = {}): TaskRow {
  return {
    key,
    instance: ANN,
    taskId: `id of ${key}`,
    owner: "ann@desk",
    status: "running",
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    ...fields,
  };
}

export function put(row: TaskRow): TaskPut {
  return { kind: "task.put", row };
}

/** `expected`: the last number of the task's journal. */
export function remove(key: string, expected: number): TaskRemove {
  return { kind: "task.remove", key, expected };
}

/** Replaces every part but those that are kept. */
export function snapshot(
  journal: string,
  number: number,
  parts: Readonly<Record<string, string>>,
  kept: readonly string[] = [],
): SnapshotPut {
  return {
    kind: "snapshot.put",
    journal,
    number,
    parts: Object.entries(parts).map(([name, data]) => ({ name, data })),
    kept,
  };
}

/** Keys that sort in the order of their numbers, as UUIDv7 do. */
export function key(number: number): string {
  return `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;
}
