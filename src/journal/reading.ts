/** Rebuilds a state from its stored journal: the snapshot, if it is usable, and the rows after it. */
import type { Types } from "./aggregate.js";
import { asError } from "./errors.js";
import type { KernelParts } from "./kernel-parts.js";
import type { Live } from "./live.js";
import { byNumber, pages } from "./pages.js";
import type { JournalKey, JournalRow, Snapshot, StoredJournal } from "./ports.js";
import { isSnapshotHeader, readHeader } from "./snapshots.js";

/** What was read so far. */
export interface Reading<T extends Types> {
  /** `undefined` if there is no such journal. */
  state: T["state"] | undefined;
  size: number;
  snapshotAt: number;
}

export class StateReader<T extends Types> {
  readonly #parts: KernelParts<T>;

  constructor(parts: KernelParts<T>) {
    this.#parts = parts;
  }

  async read(key: JournalKey): Promise<Reading<T>> {
    const { store, aggregate, loop } = this.#parts;
    const read = this.#begin(key, await store.readSnapshot(key));
    const after = read.state === undefined ? 0 : aggregate.number(read.state);
    const readPage = (from: number, limit: number, characters: number) =>
      store.read(key, { after: from, limit, characters });
    for await (const rows of pages(readPage, after, byNumber, loop)) {
      for (const row of rows) this.#add(read, row);
    }
    return read;
  }

  /** Returns nothing if the snapshot is unusable: the rows begin after it, so the journal must be read from its start. */
  fromStored({ journal, snapshot, rows }: StoredJournal): Reading<T> | undefined {
    const read = this.#begin(journal, snapshot);
    if (snapshot !== undefined && read.state === undefined) return undefined;
    for (const row of rows) this.#add(read, row);
    return read;
  }

  /** Makes what was read the durable and newest state of an aggregate. */
  settle(live: Live<T>, state: T["state"], { size, snapshotAt }: Reading<T>): void {
    const { aggregate } = this.#parts;
    live.state = state;
    live.durable = aggregate.number(state);
    live.summary = aggregate.summary(state);
    live.latest = live.summary;
    live.size = size;
    live.snapshotAt = snapshotAt;
    live.snapshotParts = undefined;
  }

  /** A snapshot only saves time: if it is unusable, the journal alone yields the same state. */
  #begin(key: JournalKey, snapshot: Snapshot | undefined): Reading<T> {
    const read: Reading<T> = { state: undefined, size: 0, snapshotAt: 0 };
    if (snapshot === undefined) return read;
    const { aggregate, report } = this.#parts;
    try {
      const header = readHeader(snapshot);
      const parts = snapshot.parts.filter((part) => !isSnapshotHeader(part));
      const state = header === undefined ? undefined : aggregate.thaw?.(parts);
      if (state === undefined || header === undefined || aggregate.number(state) !== snapshot.number)
        return read;
      read.state = state;
      read.size = header.size;
      read.snapshotAt = snapshot.number;
    } catch (cause) {
      read.state = undefined;
      report({
        code: "bad_snapshot",
        message: `the snapshot cannot be read and is ignored: ${asError(cause).message}`,
        task: key,
        cause,
      });
    }
    return read;
  }

  #add(read: Reading<T>, row: JournalRow): void {
    const { aggregate } = this.#parts;
    const entries: T["entry"][] = JSON.parse(row.data);
    read.size += row.data.length;
    const seen = read.state === undefined ? 0 : aggregate.number(read.state);
    for (const entry of seen < row.first ? entries : entries.slice(seen - row.first + 1)) {
      if (read.state === undefined) read.state = aggregate.begin(entry);
      else aggregate.evolve(read.state, entry);
    }
  }
}
