/** Parts of a task's journal as JSON, forward or backward. */
import { type Entry, entriesOf, type Store, type TaskRow } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";

export interface JournalQuery {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
}

const MOST_ENTRIES = 1_000;
/** Characters after which a page ends. */
const LONGEST_PAGE = 4 * 1024 * 1024;
/** Rows that are read at a time. */
const ROWS = 50;
/** Entries that are read at a time on the way backward. */
const BACKWARD = 100;

/** An entry as it is stored, with its number. Memos are opaque and may be large. */
export function entryText(number: number, entry: Entry): string {
  const shown = entry.t === "turn" && entry.memo !== undefined ? { ...entry, memo: true } : entry;
  return JSON.stringify({ n: number, ...shown });
}

/** @param cursor where the feed continues: read before the journal, so that nothing falls between */
export async function journalPage(
  store: Pick<Store, "read" | "lastNumber">,
  task: TaskRow,
  query: JournalQuery,
  cursor: string,
): Promise<string> {
  const { before, limit = MOST_ENTRIES } = query;
  const number = await store.lastNumber(task.key);
  const page =
    before === undefined
      ? await forward(store, task.key, query.after ?? 0, { limit, number })
      : await backward(store, task.key, Math.min(before - 1, number), limit);
  const head = JSON.stringify({
    task_id: task.taskId,
    key: task.key,
    task_owner: task.owner,
    status: task.status,
    title: task.title ?? null,
    number,
    cursor,
  });
  // Assembled from text, because each entry is already serialized to measure its length.
  return `${head.slice(0, -1)},"entries":[${page.entries.join(",")}],"more":${page.more}}`;
}

interface Entries {
  readonly entries: readonly string[];
  readonly more: boolean;
}

async function forward(
  store: Pick<Store, "read">,
  key: JournalKey,
  after: number,
  { limit, number }: { readonly limit: number; readonly number: number },
): Promise<Entries> {
  const entries: string[] = [];
  let length = 0;
  for await (const text of entriesAfter(store, key, after)) {
    if (entries.length === limit || length > LONGEST_PAGE) break;
    entries.push(text);
    length += text.length;
  }
  return { entries, more: after + entries.length < number };
}

async function backward(
  store: Pick<Store, "read">,
  key: JournalKey,
  last: number,
  limit: number,
): Promise<Entries> {
  const end = Math.max(0, last - limit);
  let pages: string[][] = [];
  let length = 0;
  let upTo = last;
  while (upTo > end && length <= LONGEST_PAGE) {
    const from = Math.max(end, upTo - BACKWARD);
    const page: string[] = [];
    for await (const text of entriesAfter(store, key, from)) {
      page.push(text);
      length += text.length;
      if (from + page.length === upTo) break;
    }
    // The journal was removed.
    if (page.length === 0) break;
    pages = [page, ...pages];
    upTo = from;
  }
  const entries = pages.flat();
  // The oldest of a page that became too long: they are the first of the next one.
  let first = 0;
  while (length > LONGEST_PAGE && first < entries.length - 1) length -= entries[first++]?.length ?? 0;
  return { entries: entries.slice(first), more: upTo + first > 0 };
}

/** All entries after a number, as text. */
export async function* entriesAfter(
  store: Pick<Store, "read">,
  key: JournalKey,
  after: number,
): AsyncGenerator<string, void, undefined> {
  for (let seen = after; ; ) {
    const rows = await store.read(key, { after: seen, limit: ROWS });
    for (const row of rows) {
      for (const [index, entry] of entriesOf(row).entries()) {
        const number = row.first + index;
        if (number <= seen) continue;
        seen = number;
        yield entryText(number, entry);
      }
    }
    if (rows.length < ROWS) return;
  }
}
