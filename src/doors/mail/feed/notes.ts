/** What the feed sends about a task that has changed. */
import {
  type Entry,
  type EntryKind,
  type InstanceId,
  summaryOf,
  type TaskRow,
} from "../../../engine/index.js";
import type { JournalKey } from "../../../journal/index.js";
import type { Mailroom } from "../../../library/index.js";

/** Changes of one task that are sent as one event. */
export interface TaskChange {
  /** The journal's last number. */
  number: number;
  at: number;
  readonly kinds: Set<EntryKind>;
}

/** Entries after which a task may have another status. */
const STATUS_KINDS: ReadonlySet<EntryKind> = new Set<EntryKind>([
  "opened",
  "resumed",
  "paused",
  "completed",
  "failed",
  "cancelled",
]);

export function changesStatus({ kinds }: TaskChange): boolean {
  for (const kind of kinds) if (STATUS_KINDS.has(kind)) return true;
  return false;
}

/** Adds a row of a journal to the changes of its task. */
export function addChange(
  changes: Map<JournalKey, TaskChange>,
  key: JournalKey,
  first: number,
  entries: readonly Entry[],
): void {
  let change = changes.get(key);
  if (change === undefined) {
    change = { number: 0, at: 0, kinds: new Set() };
    changes.set(key, change);
  }
  change.number = first + entries.length - 1;
  for (const { t, at } of entries) {
    change.kinds.add(t);
    change.at = at;
  }
}

export function noteOf({ runtime }: Mailroom, row: TaskRow, change: TaskChange): string {
  return JSON.stringify({
    ...summaryOf(row),
    number: change.number,
    at: change.at,
    kinds: [...change.kinds],
    doing: runtime.workingAgents(row.key),
  });
}

/** Names who sees a task: its owner's instance. */
export function audienceOf({ role, id }: InstanceId): string {
  return `${role}:${id}`;
}
