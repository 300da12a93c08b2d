/** Parts of a task's journal as JSON, forward or backward. */
import { type Entry, entriesOf, type Store, type TaskRow } from "../../engine/index.js";
import { byNumber, type JournalKey, pages, systemLoop } from "../../journal/index.js";

export interface JournalQuery {
  readonly after?: number;
  readonly before?: number;
  readonly limit?: number;
}

const MOST_ENTRIES = 1_000;
/** Characters after which a page ends. */
const LONGEST_PAGE = 4 * 1024 * 1024;
/** Entries that are read at a time on the way backward. */
const BACKWARD = 100;

/** An entry as it is stored, with its number. Memos are opaque and may be large. */
export function entryText(number: number, entry: Entry): string {
  const shown = entry.t === "turn" && entry.memo !== undefined ? { ...entry, memo: true } : entry;
  return JSON.stringify({ n: number, ...shown });
}

/** @param cursor where the feed continues: read before the journal, so that nothing falls between */
export async function* journalPage(
  store: Pick<Store, "read" | "lastNumber">,
  task: TaskRow,
  query: JournalQuery,
  cursor: string,
): AsyncGenerator<string, void, undefined> {
  const { before, limit = MOST_ENTRIES } = query;
  const number = await store.lastNumber(task.key);
  const head = JSON.stringify({
    task_id: task.taskId,
    key: task.key,
    task_owner: task.owner,
    status: task.status,
    title: task.title ?? null,
    number,
    cursor,
  });
  yield `${head.slice(0, -1)},"entries":[`;
  const more =
    before === undefined
      ? yield* forward(store, task.key, query.after ?? 0, { limit, number })
      : yield* backward(store, task.key, Math.min(before - 1, number), limit);
  yield `],"more":${more}}`;
}

/** A list of entries. Returns whether more follow. */
type Entries = AsyncGenerator<string, boolean, undefined>;

async function* forward(
  store: Pick<Store, "read">,
  key: JournalKey,
  after: number,
  { limit, number }: { readonly limit: number; readonly number: number },
): Entries {
  let count = 0;
  let length = 0;
  for await (const text of entriesAfter(store, key, after)) {
    if (count === limit || length > LONGEST_PAGE) break;
    yield count === 0 ? text : `,${text}`;
    count++;
    length += text.length;
  }
  return after + count < number;
}

async function* backward(store: Pick<Store, "read">, key: JournalKey, last: number, limit: number): Entries {
  const end = Math.max(0, last - limit);
  let newest: string[] = [];
  let length = 0;
  let upTo = last;
  while (upTo > end && length <= LONGEST_PAGE) {
    const from = Math.max(end, upTo - BACKWARD);
    const page: string[] = [];
    let number = from;
    let first = 0;
    for await (const text of entriesAfter(store, key, from)) {
      page.push(text);
      length += text.length;
      // The oldest of a page that becomes too long: they are the first of the next one.
      for (; length > LONGEST_PAGE && first < page.length - 1; first++) {
        length -= page[first]?.length ?? 0;
        page[first] = "";
      }
      if (++number === upTo) break;
    }
    // The journal was removed.
    if (page.length === 0) break;
    newest = [...page.slice(first), ...newest];
    upTo = from + first;
    if (first > 0) break;
  }
  for (const [at, text] of newest.entries()) yield at === 0 ? text : `,${text}`;
  return upTo > 0;
}

/** All entries after a number, as text. Reads at most a few large ones at a time. */
export async function* entriesAfter(
  store: Pick<Store, "read">,
  key: JournalKey,
  after: number,
): AsyncGenerator<string, void, undefined> {
  let seen = after;
  const read = (from: number, limit: number, characters: number) =>
    store.read(key, { after: from, limit, characters });
  for await (const rows of pages(read, after, byNumber, systemLoop)) {
    for (const row of rows) {
      for (const [index, entry] of entriesOf(row).entries()) {
        const number = row.first + index;
        if (number <= seen) continue;
        seen = number;
        yield entryText(number, entry);
      }
    }
  }
}
