/** From the store into memory. */
import type { Entry } from "../entries.js";
import { evolve, fold } from "../evolve.js";
import type { JournalKey, JournalRow, Store } from "../ports.js";
import { thaw } from "../snapshot.js";
import type { TaskState } from "../state.js";

export interface LoadedTask {
  readonly state: TaskState;
  /** The number that the newest snapshot has seen; 0 if there is none. */
  readonly snapshotAt: number;
}

const PAGE = 500;

export async function loadTask(store: Store, key: JournalKey): Promise<LoadedTask | undefined> {
  const snapshot = await store.readSnapshot(key);
  let state = snapshot === undefined ? undefined : thaw(snapshot.data);
  for (;;) {
    const after = state?.number ?? 0;
    const rows = await store.read(key, { after, limit: PAGE });
    for (const row of rows) {
      const entries = entriesOf(row);
      if (state === undefined) state = fold(entries);
      else for (const entry of entries.slice(state.number - row.first + 1)) evolve(state, entry);
    }
    if (rows.length < PAGE) break;
  }
  return state === undefined ? undefined : { state, snapshotAt: snapshot?.number ?? 0 };
}

/** Our own writing: it was checked when it was made, and the corpus in `test/` keeps older versions readable. */
export function entriesOf(row: JournalRow): Entry[] {
  return JSON.parse(row.data);
}
