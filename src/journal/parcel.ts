/** A group as it is handed to the store: which stored row holds which unit's append. */
import type { Append, Batch, JournalKey, JournalRow, RowWrite } from "./ports.js";

/** One decision that waits to become durable. */
export interface Unit {
  readonly appends: readonly Append[];
  readonly rows: readonly RowWrite[];
  /** Units of one owner depend on each other: when one is refused, the later ones are withdrawn. */
  readonly owner?: object | undefined;
  /** The entries of its one append, so that readers need not parse the text. */
  readonly entries?: readonly object[] | undefined;
  /** It is durable. `position` is that of its last append. */
  durable(position: number): void;
  /** The unit is never written, nor are the later units of its owner, which are returned in order. */
  refused(error: Error, later: readonly Unit[]): void;
}

/** A row as it is stored, with the units it holds: appends of one journal that follow each other. */
export class StoredRow implements Append, JournalRow {
  readonly journal: JournalKey;
  readonly expected: number;
  count: number;
  data: string;
  readonly units: Unit[];
  /** Set when the row is stored. */
  position = 0;
  #size: number;
  #texts: string[] | undefined;

  constructor({ journal, expected, count, data }: Append, unit: Unit) {
    this.journal = journal;
    this.expected = expected;
    this.count = count;
    this.data = data;
    this.units = [unit];
    this.#size = data.length;
  }

  get first(): number {
    return this.expected + 1;
  }

  get last(): number {
    return this.expected + this.count;
  }

  /** Whether the append could be added: it follows, and the row does not get too large. */
  add({ expected, count, data }: Append, unit: Unit, most: number): boolean {
    if (expected !== this.expected + this.count || this.#size + data.length > most) return false;
    this.#texts ??= [this.data];
    this.#texts.push(data);
    this.#size += data.length;
    this.count += count;
    this.units.push(unit);
    return true;
  }

  /** Ends the row: joins the JSON arrays into one, copying each text once. */
  close(): void {
    const texts = this.#texts;
    if (texts === undefined) return;
    const last = texts.length - 1;
    for (const [index, text] of texts.entries()) {
      texts[index] = text.slice(index === 0 ? 0 : 1, index === last ? undefined : -1);
    }
    this.data = texts.join(",");
    this.#texts = undefined;
  }
}

export interface Parcel {
  readonly batches: readonly Batch[];
  /** In the order of the appends in the batches. */
  readonly rows: readonly StoredRow[];
  /** By the index of a unit: the row with its last append, if it has any. */
  readonly rowOf: readonly (StoredRow | undefined)[];
}

/** Each unit is a batch of its own. */
export function separate(units: readonly Unit[]): Parcel {
  const rows: StoredRow[] = [];
  const rowOf: (StoredRow | undefined)[] = [];
  const batches = units.map((unit) => {
    const own = unit.appends.map((append) => new StoredRow(append, unit));
    rows.push(...own);
    rowOf.push(own.at(-1));
    return { appends: own, rows: unit.rows };
  });
  return { batches, rows, rowOf };
}

/** All units in one batch. Appends of one journal become one row of at most `rowCharacters`. */
export function merge(units: readonly Unit[], rowCharacters: number): Parcel {
  const rows: StoredRow[] = [];
  const rowOf: (StoredRow | undefined)[] = [];
  const open = new Map<JournalKey, StoredRow>();
  const writes: RowWrite[] = [];
  for (const unit of units) {
    let row: StoredRow | undefined;
    for (const append of unit.appends) {
      row = open.get(append.journal);
      if (row?.add(append, unit, rowCharacters) !== true) {
        row = new StoredRow(append, unit);
        open.set(append.journal, row);
        rows.push(row);
      }
    }
    rowOf.push(row);
    for (const write of unit.rows) writes.push(write);
  }
  for (const row of rows) row.close();
  return { batches: [{ appends: rows, rows: writes }], rows, rowOf };
}
