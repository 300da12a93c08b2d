/** Turns with their contents, read from the journal. */
import type { Store } from "../../engine/ports.js";
import type { ConversationEntry } from "../domain/entries.js";
import { HEAVIEST_PAGE } from "../domain/params.js";
import type { TurnPage, View } from "../domain/queries.js";
import { roughSize } from "../domain/size.js";
import type { TurnRecord } from "../domain/state.js";
import type { Turn } from "../domain/types.js";

/** Numbers this close together are read in one go. */
const NEAR = 16;
/** Turns read in one go: few until it is known that they are small. */
const FIRST_RUN = 64;
const LONGEST_RUN = 500;
const SMALL_RUN = 1024 * 1024;
/** Rows read in one go: few until it is known that they do not hold many turns each. */
const FIRST_ROWS = 16;

export interface TurnList {
  readonly turns: readonly Turn[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/**
 * In the order of the records; no more of them once they are as large as `most`. Nothing is read far beyond that: what
 * was said may be as large as a frame.
 */
export async function readTurns(
  store: Store,
  { state, upTo }: View,
  records: readonly TurnRecord[],
  most = Number.POSITIVE_INFINITY,
): Promise<Turn[]> {
  const turns: Turn[] = [];
  let size = 0;
  let longest = FIRST_RUN;
  for (let at = 0; at < records.length && size <= most; ) {
    const run = runFrom(records, at, longest);
    const contents = await readRun(store, state.header.id, run.first, run.last);
    const before = size;
    for (; at < run.end && size <= most; at++) {
      const record = records[at];
      const turn = record === undefined ? undefined : contents.get(record.number);
      if (record === undefined || turn === undefined) continue;
      turns.push(withStatus(turn, record, upTo));
      if (most !== Number.POSITIVE_INFINITY) size += roughSize(turn);
    }
    if (size - before < SMALL_RUN) longest = LONGEST_RUN;
  }
  return turns;
}

/** As many of them as are fit for one answer. */
export async function readPage(store: Store, view: View, page: TurnPage): Promise<TurnList> {
  return turnList(page, await readTurns(store, view, page.turns, HEAVIEST_PAGE));
}

/**
 * A page, of which perhaps only the beginning was read. The cursor is the last turn's id: callers hand it back as
 * `afterTurnId`, `beforeTurnId` or `fromTurnId`.
 */
export function turnList(page: TurnPage, turns: readonly Turn[]): TurnList {
  const hasMore = page.hasMore || (turns.length > 0 && turns.length < page.turns.length);
  const cursor = hasMore ? (turns.at(-1) ?? page.turns.at(-1))?.id : undefined;
  return { turns, hasMore, ...(cursor !== undefined && { nextCursor: cursor }) };
}

/** Records from one on, upwards or downwards, that are close together: from which number to which, and where they end. */
function runFrom(
  records: readonly TurnRecord[],
  from: number,
  longest: number,
): { readonly first: number; readonly last: number; readonly end: number } {
  let last = records[from]?.number ?? 0;
  let first = last;
  let end = from + 1;
  for (; end < records.length; end++) {
    const next = records[end]?.number ?? 0;
    const near = next > last ? next - last <= NEAR : first - next <= NEAR;
    if (!near || Math.max(last, next) - Math.min(first, next) >= longest) break;
    first = Math.min(first, next);
    last = Math.max(last, next);
  }
  return { first, last, end };
}

async function readRun(
  store: Store,
  conversationId: string,
  first: number,
  last: number,
): Promise<Map<number, Turn>> {
  const contents = new Map<number, Turn>();
  let after = first - 1;
  for (let limit = FIRST_ROWS; after < last; limit *= 2) {
    const rows = await store.read(conversationId, { after, limit: Math.min(limit, last - after) });
    for (const row of rows) {
      const entries: ConversationEntry[] = JSON.parse(row.data);
      for (const [index, entry] of entries.entries()) {
        if (entry.t === "turn") contents.set(row.first + index, entry.turn);
      }
    }
    after = rows.at(-1)?.last ?? last;
  }
  return contents;
}

function withStatus(turn: Turn, record: TurnRecord, upTo: number): Turn {
  const latest = record.statuses?.findLast(({ number }) => number <= upTo);
  return latest === undefined ? turn : { ...turn, status: latest.status };
}
