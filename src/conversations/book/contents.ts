/** Turns with their contents, read from the journal. */
import type { Store } from "../../engine/ports.js";
import type { TurnRecord } from "../domain/state.js";
import type { Turn } from "../domain/types.js";
import { conversationEntries } from "./live.js";

/** Numbers this close together are read in one go. */
const NEAR = 16;
const LONGEST_RUN = 500;

/** In the order of the records. */
export async function readTurns(
  store: Store,
  conversationId: string,
  records: readonly TurnRecord[],
  upTo: number,
): Promise<Turn[]> {
  const contents = new Map<number, Turn>();
  const ascending = records.map(({ number }) => number).sort((a, b) => a - b);
  for (let at = 0; at < ascending.length; ) {
    const first = ascending[at] ?? 0;
    let last = first;
    for (at++; at < ascending.length; at++) {
      const next = ascending[at] ?? last;
      if (next - last > NEAR || next - first >= LONGEST_RUN) break;
      last = next;
    }
    const rows = await store.read(conversationId, { after: first - 1, limit: last - first + 1 });
    for (const row of rows) {
      for (const [index, entry] of conversationEntries(row).entries()) {
        if (entry.t === "turn") contents.set(row.first + index, entry.turn);
      }
    }
  }
  return records.flatMap((record) => {
    const turn = contents.get(record.number);
    return turn === undefined ? [] : [withStatus(turn, record, upTo)];
  });
}

function withStatus(turn: Turn, record: TurnRecord, upTo: number): Turn {
  const latest = record.statuses?.findLast(({ number }) => number <= upTo);
  return latest === undefined ? turn : { ...turn, status: latest.status };
}
