/** Search in what a reader may see, newest first. Reads contents from the journal, so its work is bounded in bytes. */
import { WorkSlice } from "../../base/node.js";
import { toPlainText } from "../rules/content.js";
import { MapError } from "../rules/errors.js";
import type { ConversationView } from "../rules/queries.js";
import { roughSize } from "../rules/size.js";
import type { TurnRecord } from "../rules/state.js";
import type { Turn } from "../rules/types.js";
import { sees } from "../rules/visibility.js";

/** A conversation that a reader may read, of either kind. */
export interface ReadableConversation {
  readonly view: ConversationView;
  /** The turns of these records, in order. Stops when they exceed `most` bytes. */
  readonly read: (records: readonly TurnRecord[], most: number) => Promise<readonly Turn[]>;
}

export interface SearchStep {
  readonly found: readonly Turn[];
  /** The oldest turn that was looked at. Absent: all of them were. */
  readonly next?: string;
  /** Bytes of the contents that were read. */
  readonly size: number;
}

const RECORDS_AT_ONCE = 64;

/** Looks at turns before `before`, until `limit` of them match or about `most` bytes are read. */
export async function searchTurns(
  { view, read }: ReadableConversation,
  { query, before, limit, most }: { query: string; before?: string | undefined; limit: number; most: number },
): Promise<SearchStep> {
  const { state, viewer, upTo } = view;
  const wanted = query.toLowerCase();
  const start = before === undefined ? undefined : state.turnsById.get(before)?.number;
  if (before !== undefined && start === undefined) {
    throw new MapError("INVALID_PARAMS", "cursor: not a cursor of this search");
  }
  const found: Turn[] = [];
  let size = 0;
  let at = state.turns.length - 1;
  const slice = new WorkSlice();
  for (;;) {
    await slice.did();
    const records: TurnRecord[] = [];
    for (; at >= 0 && records.length < RECORDS_AT_ONCE; at--) {
      const turn = state.turns[at];
      if (turn === undefined || turn.number > upTo || turn.number >= (start ?? Number.POSITIVE_INFINITY))
        continue;
      if (sees(viewer, turn, "history")) records.push(turn);
    }
    if (records.length === 0) return { found, size };
    const turns = await read(records, most);
    for (const turn of turns) {
      size += roughSize(turn);
      if (textOf(turn.content).toLowerCase().includes(wanted)) found.push(turn);
      if (found.length >= limit || size > most) return { found, next: turn.id, size };
    }
    // A page that was cut, or turns that retention has removed.
    const last = turns.at(-1) ?? records.at(-1);
    if (turns.length < records.length && last !== undefined) return { found, next: last.id, size };
  }
}

function textOf(content: unknown): string {
  return toPlainText(content) ?? JSON.stringify(content) ?? "";
}
