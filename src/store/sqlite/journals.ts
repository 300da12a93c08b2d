import { type Append, type JournalKey, type JournalRow, StaleAppendError } from "../../journal/index.js";
import type { Database } from "./driver.js";
import { RecentMap } from "./recent-map.js";
import { Tail } from "./tail.js";
import type { Undo } from "./undo.js";

/** Current end of a journal. Changed in place by appends, so that the hot path allocates little. */
interface Head {
  readonly id: number;
  last: number;
}

interface StoredRow {
  readonly first: number;
  readonly last: number;
  readonly position: number;
  readonly data: string;
}

interface IndexedRow {
  readonly journal: number;
  readonly last: number;
  readonly position: number;
}

/** The newest position, stored when the row that had it is removed. */
const POSITION_FLOOR = "position_floor";
/** Every row up to this position is in the index. */
const INDEXED = "indexed";

const counter = (name: string): string => `ifnull((SELECT value FROM counters WHERE name = '${name}'), 0)`;

/** The queries by name, so that a test can check their plans. */
export const JOURNAL_QUERIES = {
  newestPosition: `SELECT max(
      ifnull((SELECT max(position) FROM journal), 0),
      ifnull((SELECT max(position) FROM journal_old), 0),
      ${counter(POSITION_FLOOR)},
      ${counter(INDEXED)}
    )`,
  newestOld: "SELECT ifnull((SELECT max(position) FROM journal_old), 0)",
  newestId: `SELECT max(
      ifnull((SELECT max(id) FROM journals), 0),
      ifnull((SELECT max(journal) FROM removals), 0)
    )`,
  tail: `SELECT journal, last, position FROM journal WHERE position > ${counter(INDEXED)} ORDER BY position`,
  unindexed: `SELECT journal, last, position FROM journal WHERE position > ${counter(INDEXED)}
    ORDER BY journal, last`,
  findJournal: `SELECT id, coalesce(
      (SELECT max(last) FROM journal_rows WHERE journal = journals.id),
      (SELECT max(last) FROM journal_old WHERE journal = journals.id),
      0
    ) AS last
    FROM journals WHERE key = ?`,
  readOld: `SELECT first, last, position, data FROM journal_old
    WHERE journal = ? AND last > ? ORDER BY last LIMIT ?`,
  readIndexed: `SELECT journal.first, journal.last, journal.position, journal.data
    FROM journal_rows CROSS JOIN journal ON journal.position = journal_rows.position
    WHERE journal_rows.journal = ? AND journal_rows.last > ? ORDER BY journal_rows.last LIMIT ?`,
  readRow: "SELECT first, last, position, data FROM journal WHERE position = ?",
  readAllOld: `SELECT journals.key AS journal, first, last, position, data
    FROM journal_old CROSS JOIN journals ON journals.id = journal_old.journal
    WHERE position > ? ORDER BY position LIMIT ?`,
  readAll: `SELECT journals.key AS journal, first, last, position, data
    FROM journal CROSS JOIN journals ON journals.id = journal.journal
    WHERE position > ? ORDER BY position LIMIT ?`,
} as const;

/**
 * The journals' tables and what is cached of them: the newest position, the ends of journals, and the rows that are not
 * indexed yet. Every change happens inside a transaction and pushes its reversal to `Undo`.
 */
export class Journals {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #undo: Undo;
  readonly #cached: number;
  readonly #indexBatch: number;
  #heads: RecentMap<JournalKey, Head>;
  #tail = new Tail();
  #position = 0;
  #newestId = 0;
  /** Newest position in the table of old directories; 0 if it is empty. */
  #newestOld = 0;

  constructor(db: Database, undo: Undo, options: { cachedJournals: number; indexBatch: number }) {
    this.#sql = prepareStatements(db);
    this.#undo = undo;
    this.#cached = options.cachedJournals;
    this.#indexBatch = options.indexBatch;
    this.#heads = new RecentMap(this.#cached);
    this.reload();
  }

  /** Position of the newest append. */
  get position(): number {
    return this.#position;
  }

  /** Rereads what is cached. */
  reload(): void {
    this.#position = this.#sql.newestPosition.get() ?? 0;
    this.#newestOld = this.#sql.newestOld.get() ?? 0;
    this.#newestId = this.#sql.newestId.get() ?? 0;
    this.#heads = new RecentMap(this.#cached);
    this.#tail = new Tail();
    for (const row of this.#sql.tail.all()) this.#tail.add(row.journal, row);
  }

  /** At the start of a transaction: writes the index if enough rows wait for it. */
  writeIndex(): void {
    if (this.#tail.size < this.#indexBatch) return;
    const tail = this.#tail;
    this.#sql.index.run();
    this.#sql.setCounter.run(INDEXED, this.#position);
    this.#tail = new Tail();
    this.#undo.push(() => {
      this.#tail = tail;
    });
  }

  /**
   * Returns the position of the new row.
   * @throws StaleAppendError
   */
  append({ journal, expected, count, data }: Append): number {
    const found = this.#find(journal);
    const actual = found?.last ?? 0;
    if (actual !== expected) throw new StaleAppendError(journal, expected, actual);
    const head = found ?? this.#create(journal);
    const last = expected + count;
    const before = this.#position;
    const position = before + 1;
    this.#sql.insert.run(position, head.id, expected + 1, last, data);
    this.#position = position;
    head.last = last;
    this.#tail.add(head.id, { last, position });
    this.#undo.push(() => {
      this.#tail.drop(head.id);
      this.#heads.delete(journal);
      this.#position = before;
    });
    return position;
  }

  /** The journal's internal number; undefined for a journal that does not exist. */
  idOf(key: JournalKey): number | undefined {
    return this.#find(key)?.id;
  }

  lastNumber(key: JournalKey): number {
    return this.#find(key)?.last ?? 0;
  }

  /** Removes the journal. Its rows stay until `removeRows` removes them. */
  disown(key: JournalKey): void {
    const id = this.idOf(key);
    if (id === undefined) return;
    // The rows may hold the newest position, from which counting would continue after a restart.
    this.#sql.setCounter.run(POSITION_FLOOR, this.#position);
    this.#sql.removeJournal.run(id);
    this.#heads.delete(key);
  }

  /** Removes up to `most` rows, oldest first, and returns how many. */
  removeRows(id: number, most: number): number {
    const old = this.#newestOld === 0 ? [] : this.#sql.oldPlaces.all(id, most);
    for (const { position } of old) this.#sql.removeOld.run(position);
    let removed = old.length;
    const indexed = this.#sql.places.all(id, most - removed);
    for (const { position } of indexed) this.#sql.remove.run(position);
    const last = indexed.at(-1)?.last;
    if (last !== undefined) this.#sql.unindex.run(id, last);
    removed += indexed.length;
    const tail = this.#tail.take(id, most - removed);
    for (const { position } of tail) this.#sql.remove.run(position);
    if (tail.length > 0) this.#undo.push(() => this.#tail.putBack(id, tail));
    return removed + tail.length;
  }

  read(
    key: JournalKey,
    after: number,
    limit = Number.MAX_SAFE_INTEGER,
    characters = Number.POSITIVE_INFINITY,
  ): JournalRow[] {
    const id = this.idOf(key);
    if (id === undefined) return [];
    const page = new Page<StoredRow>(limit, characters);
    if (this.#newestOld > 0) page.fill((room) => this.#sql.readOld.iterate(id, after, room));
    page.fill((room) => this.#sql.readIndexed.iterate(id, after, room));
    for (const { position } of this.#tail.after(id, after)) {
      if (page.isFull) break;
      const row = this.#sql.readRow.get(position);
      if (row !== undefined) page.add(row);
    }
    return page.rows.map((row) => ({ journal: key, ...row }));
  }

  readAll(afterPosition: number, limit: number, characters = Number.POSITIVE_INFINITY): JournalRow[] {
    const page = new Page<JournalRow>(limit, characters);
    if (afterPosition < this.#newestOld) {
      page.fill((room) => this.#sql.readAllOld.iterate(afterPosition, room));
    }
    page.fill((room) => this.#sql.readAll.iterate(afterPosition, room));
    return page.rows;
  }

  #find(key: JournalKey): Head | undefined {
    const known = this.#heads.get(key);
    if (known !== undefined) return known;
    const stored = this.#sql.find.get(key);
    if (stored === undefined) return undefined;
    const head = { id: stored.id, last: this.#tail.last(stored.id) ?? stored.last };
    this.#heads.set(key, head);
    return head;
  }

  /** Numbers are never reused, not even after a rollback: rows of a removed journal may still have theirs. */
  #create(key: JournalKey): Head {
    const head = { id: ++this.#newestId, last: 0 };
    this.#sql.createJournal.run(head.id, key);
    this.#heads.set(key, head);
    this.#undo.push(() => this.#heads.delete(key));
    return head;
  }
}

function prepareStatements(db: Database) {
  return {
    newestPosition: db.prepare<[], number>(JOURNAL_QUERIES.newestPosition).pluck(),
    newestOld: db.prepare<[], number>(JOURNAL_QUERIES.newestOld).pluck(),
    newestId: db.prepare<[], number>(JOURNAL_QUERIES.newestId).pluck(),
    tail: db.prepare<[], IndexedRow>(JOURNAL_QUERIES.tail),
    find: db.prepare<[string], Head>(JOURNAL_QUERIES.findJournal),
    readOld: db.prepare<[number, number, number], StoredRow>(JOURNAL_QUERIES.readOld),
    readIndexed: db.prepare<[number, number, number], StoredRow>(JOURNAL_QUERIES.readIndexed),
    readRow: db.prepare<[number], StoredRow>(JOURNAL_QUERIES.readRow),
    readAllOld: db.prepare<[number, number], JournalRow>(JOURNAL_QUERIES.readAllOld),
    readAll: db.prepare<[number, number], JournalRow>(JOURNAL_QUERIES.readAll),
    createJournal: db.prepare<[number, string]>("INSERT INTO journals (id, key) VALUES (?, ?)"),
    removeJournal: db.prepare<[number]>("DELETE FROM journals WHERE id = ?"),
    insert: db.prepare<[number, number, number, number, string]>(
      "INSERT INTO journal (position, journal, first, last, data) VALUES (?, ?, ?, ?, ?)",
    ),
    remove: db.prepare<[number]>("DELETE FROM journal WHERE position = ?"),
    removeOld: db.prepare<[number]>("DELETE FROM journal_old WHERE position = ?"),
    // No conflict clause: an existing row means that another process writes.
    index: db.prepare<[]>(`INSERT INTO journal_rows (journal, last, position) ${JOURNAL_QUERIES.unindexed}`),
    unindex: db.prepare<[number, number]>("DELETE FROM journal_rows WHERE journal = ? AND last <= ?"),
    places: db.prepare<[number, number], IndexedRow>(
      "SELECT journal, last, position FROM journal_rows WHERE journal = ? ORDER BY last LIMIT ?",
    ),
    oldPlaces: db.prepare<[number, number], IndexedRow>(
      "SELECT journal, last, position FROM journal_old WHERE journal = ? ORDER BY last LIMIT ?",
    ),
    setCounter: db.prepare<[string, number]>("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)"),
  };
}

/** Rows up to a number and a size; the last row may exceed the size. */
class Page<Row extends { readonly data: string }> {
  readonly rows: Row[] = [];
  readonly #limit: number;
  #characters: number;

  constructor(limit: number, characters: number) {
    this.#limit = limit;
    this.#characters = characters;
  }

  get isFull(): boolean {
    return this.rows.length >= this.#limit || this.#characters <= 0;
  }

  add(row: Row): void {
    this.rows.push(row);
    this.#characters -= row.data.length;
  }

  fill(read: (room: number) => Iterable<Row>): void {
    if (this.isFull) return;
    for (const row of read(this.#limit - this.rows.length)) {
      this.add(row);
      if (this.isFull) return;
    }
  }
}
