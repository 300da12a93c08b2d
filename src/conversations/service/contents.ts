/** Reads turns with their contents from the journal. */
import { WorkSlice } from "../../base/node.js";
import type { Store } from "../../engine/index.js";
import type { ConversationEntry } from "../rules/entries.js";
import { MAX_PAGE_BYTES } from "../rules/params.js";
import type { ConversationView, TurnPage } from "../rules/queries.js";
import type { TurnRecord } from "../rules/state.js";
import type { Turn } from "../rules/types.js";

/** Numbers at most this far apart are read together. */
const NEAR = 4;
/** The largest distance between numbers that are read together. */
const MAX_RUN = 500;
/** The size of one read. */
const READ_CHARACTERS = 1024 * 1024;

export interface TurnList {
  readonly turns: readonly Turn[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/**
 * Returns turns in the order of the records, and stops when they exceed `most` bytes. Holds little beyond that, because
 * a turn can be as large as a frame.
 */
export async function readTurns(
  store: Store,
  { state, upTo }: ConversationView,
  records: readonly TurnRecord[],
  most: number,
): Promise<Turn[]> {
  const turns: Turn[] = [];
  const slice = new WorkSlice();
  let size = 0;
  for (let at = 0; at < records.length && size <= most; ) {
    const run = runFrom(records, at, most - size);
    const contents = await readRun(store, state.header.id, run, slice);
    for (const record of run) {
      size += record.size;
      const turn = contents.get(record.number);
      if (turn !== undefined) turns.push(withStatus(turn, record, upTo));
    }
    at += run.length;
  }
  return turns;
}

/** Reads as many turns as fit into one response. */
export async function readPage(store: Store, view: ConversationView, page: TurnPage): Promise<TurnList> {
  return turnList(page, await readTurns(store, view, page.turns, MAX_PAGE_BYTES));
}

/**
 * A page that may have been read only in part. The cursor is the last turn's id, which callers pass back as
 * `afterTurnId`, `beforeTurnId` or `fromTurnId`.
 */
export function turnList(page: TurnPage, turns: readonly Turn[]): TurnList {
  const hasMore = page.hasMore || (turns.length > 0 && turns.length < page.turns.length);
  const cursor = hasMore ? (turns.at(-1) ?? page.turns.at(-1))?.id : undefined;
  return { turns, hasMore, ...(cursor !== undefined && { nextCursor: cursor }) };
}

/**
 * The longest run of records, ascending or descending, whose numbers are close together and which does not exceed `most`
 * bytes before its last turn.
 */
function runFrom(records: readonly TurnRecord[], from: number, most: number): readonly TurnRecord[] {
  let last = records[from]?.number ?? 0;
  let first = last;
  let size = records[from]?.size ?? 0;
  let end = from + 1;
  for (; end < records.length && size <= Math.min(most, READ_CHARACTERS); end++) {
    const next = records[end];
    if (next === undefined) break;
    const near = next.number > last ? next.number - last <= NEAR : first - next.number <= NEAR;
    if (!near || Math.max(last, next.number) - Math.min(first, next.number) >= MAX_RUN) break;
    first = Math.min(first, next.number);
    last = Math.max(last, next.number);
    size += next.size;
  }
  return records.slice(from, end);
}

async function readRun(
  store: Store,
  conversationId: string,
  run: readonly TurnRecord[],
  slice: WorkSlice,
): Promise<Map<number, Turn>> {
  const wanted = new Set(run.map(({ number }) => number));
  const last = Math.max(...wanted);
  const contents = new Map<number, Turn>();
  let after = Math.min(...wanted) - 1;
  while (after < last) {
    const rows = await store.read(conversationId, {
      after,
      limit: last - after,
      characters: READ_CHARACTERS,
    });
    for (const row of rows) {
      await slice.did(row.data.length);
      const entries: ConversationEntry[] = JSON.parse(row.data);
      for (const [index, entry] of entries.entries()) {
        if (entry.t === "turn" && wanted.has(row.first + index)) contents.set(row.first + index, entry.turn);
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
