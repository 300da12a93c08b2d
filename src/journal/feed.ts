/**
 * All journals as one stream, in commit order: rows from the writer, and from the store where rows are missing in
 * between. Memory use is bounded.
 */
import { byPosition, pages } from "./pages.js";
import type { JournalKey, JournalRow, Loop } from "./ports.js";
import type { StoredRow, Writer } from "./writer.js";

/** The location of a stored row. A row can hold the entries of several decisions. */
export type RowPlace = Pick<JournalRow, "journal" | "first" | "position">;

export interface FeedParts {
  readonly store: {
    readonly writer: Writer;
    readAll(afterPosition: number, limit: number, characters?: number): Promise<JournalRow[]>;
    position(): Promise<number>;
  };
  readonly loop: Loop;
  /** Rows of other journals are skipped. */
  readonly wants: (journal: JournalKey) => boolean;
  /** Called for one row at a time, each after the previous call has finished. */
  readonly take: (row: RowPlace, entries: readonly object[]) => void | Promise<void>;
  readonly report: (error: unknown) => void;
}

type Item =
  | { readonly kind: "act"; readonly act: () => void }
  | { readonly kind: "row"; readonly row: RowPlace; readonly entries: readonly object[] }
  /** All rows between two positions, from the store. */
  | { readonly kind: "read"; readonly after: number; upTo: number };

/** Limit on what waits in memory; the rest is read from the store when it is due. */
const MOST_WAITING = 1000;

export class Feed {
  readonly #parts: FeedParts;
  readonly #leave: () => void;
  #queue: Item[] = [];
  #pumping = false;
  #running = false;
  #position: number;

  constructor(parts: FeedParts) {
    const { writer } = parts.store;
    this.#parts = parts;
    this.#position = writer.position;
    this.#leave = writer.onRows((rows, before) => this.#stored(rows, before));
  }

  /** The position up to which everything was consumed or waits. */
  get position(): number {
    return this.#position;
  }

  /** Consumes everything that is stored from now on. */
  async start(): Promise<void> {
    if (this.#running) return;
    const position = await this.#parts.store.position();
    if (!this.#running) this.#position = Math.max(this.#position, position);
    this.#running = true;
  }

  /** Skips everything that is stored from now on. */
  stop(): void {
    this.#running = false;
  }

  close(): void {
    this.#running = false;
    this.#leave();
  }

  /** Adds something else to the order, after everything up to the current position. */
  add(act: () => void): void {
    this.#enqueue({ kind: "act", act });
  }

  #stored(rows: readonly StoredRow[], before: number): void {
    const newest = rows.at(-1)?.position ?? 0;
    if (newest <= this.#position) return;
    if (this.#running) {
      if (this.#queue.length >= MOST_WAITING) this.#enqueueRead(newest);
      else {
        if (before > this.#position) this.#enqueueRead(before);
        for (const row of rows) if (row.position > this.#position) this.#enqueueRow(row);
      }
    }
    this.#position = newest;
  }

  #enqueueRow(stored: StoredRow): void {
    const { journal, first, position } = stored;
    if (!this.#parts.wants(journal)) return;
    this.#enqueue({ kind: "row", row: { journal, first, position }, entries: entriesOf(stored) });
  }

  #enqueueRead(upTo: number): void {
    const newest = this.#queue.at(-1);
    if (newest?.kind === "read") newest.upTo = upTo;
    else this.#enqueue({ kind: "read", after: this.#position, upTo });
  }

  #enqueue(item: Item): void {
    this.#queue.push(item);
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#pump();
  }

  async #pump(): Promise<void> {
    while (this.#queue.length > 0) {
      const items = this.#queue;
      this.#queue = [];
      for (const item of items) {
        try {
          await this.#handle(item);
        } catch (error) {
          this.#parts.report(error);
        }
      }
    }
    this.#pumping = false;
  }

  #handle(item: Item): void | Promise<void> {
    switch (item.kind) {
      case "act":
        return item.act();
      case "row":
        return this.#parts.take(item.row, item.entries);
      case "read":
        return this.#read(item.after, item.upTo);
      default:
        item satisfies never;
    }
  }

  async #read(after: number, upTo: number): Promise<void> {
    const { store, wants, take, loop } = this.#parts;
    const readPage = (from: number, limit: number, characters: number) =>
      store.readAll(from, limit, characters);
    for await (const rows of pages(readPage, after, byPosition, loop)) {
      for (const row of rows) {
        if (row.position > upTo) return;
        if (wants(row.journal)) await take(row, JSON.parse(row.data));
      }
    }
  }
}

/** The entries as decided, or parsed from the row's text if the writer did not supply them. */
function entriesOf({ units, data }: StoredRow): readonly object[] {
  const entries: object[] = [];
  for (const unit of units) {
    if (unit.entries === undefined) return JSON.parse(data);
    entries.push(...unit.entries);
  }
  return entries;
}
