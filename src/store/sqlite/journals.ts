import { type Append, type JournalKey, type JournalRow, StaleAppendError } from "../../engine/ports.js";
import type { Database } from "./driver.js";
import { RecentMap } from "./recent-map.js";
import type { RoomJournals } from "./room.js";

/** Where a journal stands. Changed in place by appends, so that the hot path allocates nothing. */
interface JournalState {
  readonly id: number;
  last: number;
}

interface StoredRow {
  readonly first: number;
  readonly last: number;
  readonly position: number;
  readonly data: string;
}

/** The name under which the newest position is kept when the row that had it is removed. */
const POSITION_FLOOR = "position_floor";

/** The queries, by name, so that a test can ask for their plans. */
export const JOURNAL_QUERIES = {
  newestPosition: `SELECT max(
      ifnull((SELECT max(position) FROM journal), 0),
      ifnull((SELECT value FROM counters WHERE name = '${POSITION_FLOOR}'), 0)
    )`,
  findJournal: `SELECT id, ifnull((SELECT max(last) FROM journal WHERE journal = journals.id), 0) AS last
    FROM journals WHERE key = ?`,
  readJournal: `SELECT first, last, position, data FROM journal
    WHERE journal = ? AND last > ? ORDER BY last LIMIT ?`,
  readAll: `SELECT journals.key AS journal, first, last, position, data
    FROM journal JOIN journals ON journals.id = journal.journal
    WHERE position > ? ORDER BY position LIMIT ?`,
} as const;

/**
 * The journals' tables. `append` and `remove` are called within a transaction; whoever rolls it back must say so
 * (`forget`, `resetPosition`), because positions and last numbers are also held in memory.
 */
export class Journals implements RoomJournals {
  readonly #states: RecentMap<JournalKey, JournalState>;
  readonly #statements: ReturnType<typeof prepareStatements>;
  #position: number;

  constructor(db: Database, cachedJournals: number) {
    this.#states = new RecentMap(cachedJournals);
    this.#statements = prepareStatements(db);
    this.#position = this.#statements.newestPosition.get() ?? 0;
  }

  /** Position of the newest append. */
  get position(): number {
    return this.#position;
  }

  /** Law 6. Must be called before `append`: the unique key alone would let pass a gap or a number inside a row. */
  check({ journal, expected }: Append): JournalState | undefined {
    const state = this.#find(journal);
    const actual = state?.last ?? 0;
    if (actual !== expected) throw new StaleAppendError(journal, expected, actual);
    return state;
  }

  /** Writes an append that `check` let pass, with what `check` returned. */
  append({ journal, expected, count, data }: Append, found: JournalState | undefined): void {
    const state = found ?? this.#create(journal);
    const last = expected + count;
    const position = this.#position + 1;
    this.#statements.insert.run(position, state.id, expected + 1, last, data);
    this.#position = position;
    state.last = last;
  }

  idOf(key: JournalKey): number | undefined {
    return this.#find(key)?.id;
  }

  lastNumber(key: JournalKey): number {
    return this.#find(key)?.last ?? 0;
  }

  remove(key: JournalKey): void {
    const state = this.#find(key);
    if (state === undefined) return;
    // The rows may hold the newest position, from which counting would go on after a restart.
    this.#statements.keepPosition.run(POSITION_FLOOR, this.#position);
    this.#statements.removeRows.run(state.id);
    this.#statements.removeJournal.run(state.id);
    this.#states.delete(key);
  }

  read(key: JournalKey, after: number, limit: number | undefined): JournalRow[] {
    const state = this.#find(key);
    if (state === undefined) return [];
    const rows = this.#statements.read.all(state.id, after, limit ?? -1);
    return rows.map((row) => ({ journal: key, ...row }));
  }

  readAll(afterPosition: number, limit: number): JournalRow[] {
    return this.#statements.readAll.all(afterPosition, limit);
  }

  /** To be called for every journal that a rolled back batch appended to. */
  forget(key: JournalKey): void {
    this.#states.delete(key);
  }

  /** After a rollback: positions of appends that were never committed are given again. */
  resetPosition(position: number): void {
    this.#position = position;
  }

  #find(key: JournalKey): JournalState | undefined {
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const stored = this.#statements.find.get(key);
    if (stored !== undefined) this.#states.set(key, stored);
    return stored;
  }

  #create(key: JournalKey): JournalState {
    const state = { id: Number(this.#statements.createJournal.run(key).lastInsertRowid), last: 0 };
    this.#states.set(key, state);
    return state;
  }
}

function prepareStatements(db: Database) {
  return {
    newestPosition: db.prepare<[], number>(JOURNAL_QUERIES.newestPosition).pluck(),
    find: db.prepare<[string], JournalState>(JOURNAL_QUERIES.findJournal),
    read: db.prepare<[number, number, number], StoredRow>(JOURNAL_QUERIES.readJournal),
    readAll: db.prepare<[number, number], JournalRow>(JOURNAL_QUERIES.readAll),
    createJournal: db.prepare<[string]>("INSERT INTO journals (key) VALUES (?)"),
    insert: db.prepare<[number, number, number, number, string]>(
      "INSERT INTO journal (position, journal, first, last, data) VALUES (?, ?, ?, ?, ?)",
    ),
    removeRows: db.prepare<[number]>("DELETE FROM journal WHERE journal = ?"),
    removeJournal: db.prepare<[number]>("DELETE FROM journals WHERE id = ?"),
    keepPosition: db.prepare<[string, number]>("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)"),
  };
}
