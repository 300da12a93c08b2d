/** The search index: a file of its own beside the data, with SQLite's full-text search. */
import { createHash } from "node:crypto";
import { closeSync, openSync, rmSync } from "node:fs";
import type { InstanceId } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { FoundEntry, SearchableEntry, SearchIndex, SearchQuery } from "../ports/search.js";
import { type Database, openDatabase } from "./driver.js";

/** Another number when the tables change: the file is built again. */
const VERSION = 1;
/** Characters of an entry that are searched. */
const LONGEST_TEXT = 20_000;
const BUSY_TIMEOUT = 1_000;

interface Row {
  readonly key: string;
  readonly number: number;
  readonly kind: string;
  readonly at: number;
  readonly sender: string | null;
  readonly recipient: string | null;
  readonly snippet: string;
}

export interface OpenSearchIndex extends SearchIndex {
  close(): void;
}

/** @param path a file, which is created, or `:memory:` */
export function openSearchIndex(path: string): OpenSearchIndex {
  try {
    return create(path);
  } catch (error) {
    if (path === ":memory:") throw error;
    // Damaged, or of another version: it is derived, so it is built again.
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    return create(path);
  }
}

function create(path: string): OpenSearchIndex {
  if (path !== ":memory:") createPrivate(path);
  const db = openDatabase(path, { busyTimeout: BUSY_TIMEOUT });
  try {
    prepare(db);
    return new SqliteSearchIndex(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

function prepare(db: Database): void {
  db.pragma("journal_mode = WAL");
  // A crash may lose the last moments, which are then indexed again.
  db.pragma("synchronous = NORMAL");
  db.pragma("trusted_schema = OFF");
  const version = db.prepare<[], number>("PRAGMA user_version").pluck().get();
  if (version !== 0 && version !== VERSION) throw new Error(`the search index has version ${version}`);
  if (version === VERSION) return;
  db.exec(`
    CREATE TABLE entries (
      id INTEGER PRIMARY KEY,
      key TEXT NOT NULL,
      number INTEGER NOT NULL,
      kind TEXT NOT NULL,
      agent TEXT,
      sender TEXT,
      recipient TEXT,
      at INTEGER NOT NULL,
      UNIQUE (key, number)
    ) STRICT;
    CREATE TABLE progress (position INTEGER NOT NULL) STRICT;
    INSERT INTO progress VALUES (0);
    CREATE VIRTUAL TABLE words USING fts5(text, owner, tokenize = "unicode61 remove_diacritics 2");
    PRAGMA user_version = ${VERSION};
  `);
}

class SqliteSearchIndex implements OpenSearchIndex {
  readonly #db: Database;
  readonly #add: (entries: readonly SearchableEntry[], position: number) => void;
  readonly #remove: (key: string) => void;
  readonly #position;
  readonly #find;

  constructor(db: Database) {
    this.#db = db;
    const insert = db.prepare<[object]>(`
      INSERT INTO entries (key, number, kind, agent, sender, recipient, at)
      VALUES (@key, @number, @kind, @agent, @sender, @recipient, @at) ON CONFLICT DO NOTHING
    `);
    const index = db.prepare<[number | bigint, string, string]>(
      "INSERT INTO words (rowid, text, owner) VALUES (?, ?, ?)",
    );
    const move = db.prepare<[number]>("UPDATE progress SET position = max(position, ?)");
    this.#position = db.prepare<[], number>("SELECT position FROM progress").pluck();
    this.#add = db.transaction((entries: readonly SearchableEntry[], position: number) => {
      for (const { key, number, kind, agent, from, to, at, text, instance } of entries) {
        const row = {
          key,
          number,
          kind,
          agent: agent ?? null,
          sender: from ?? null,
          recipient: to ?? null,
          at,
        };
        const { changes, lastInsertRowid } = insert.run(row);
        if (changes > 0) index.run(lastInsertRowid, text.slice(0, LONGEST_TEXT), ownerWord(instance));
      }
      move.run(position);
    });
    const forgetWords = db.prepare<[string]>(
      "DELETE FROM words WHERE rowid IN (SELECT id FROM entries WHERE key = ?)",
    );
    const forget = db.prepare<[string]>("DELETE FROM entries WHERE key = ?");
    this.#remove = db.transaction((key: string) => {
      forgetWords.run(key);
      forget.run(key);
    });
    this.#find = db.prepare<[object], Row>(`
      SELECT key, number, kind, at, sender, recipient,
        snippet(words, 0, char(1), char(2), '…', 24) AS snippet
      FROM words CROSS JOIN entries ON entries.id = words.rowid
      WHERE words MATCH @match AND (@kind IS NULL OR kind = @kind) AND (@agent IS NULL OR agent = @agent)
        AND at >= @since
      ORDER BY words.rowid DESC LIMIT @limit
    `);
  }

  get position(): number {
    return this.#position.get() ?? 0;
  }

  add(entries: readonly SearchableEntry[], position: number): void {
    this.#add(entries, position);
  }

  find({ words, instance, kind, agent, since = 0, limit }: SearchQuery): FoundEntry[] {
    if (words.length === 0) return [];
    // Words are quoted, so that none of their characters is an operator.
    const terms = words.map(
      (word, at) => `"${word.replaceAll('"', '""')}"${at === words.length - 1 ? "*" : ""}`,
    );
    const owner = instance === undefined ? "" : ` AND owner : "${ownerWord(instance)}"`;
    const match = `text : (${terms.join(" AND ")})${owner}`;
    return this.#find
      .all({ match, kind: kind ?? null, agent: agent ?? null, since, limit })
      .map(({ sender, recipient, ...row }) => ({ ...row, from: sender, to: recipient }));
  }

  remove(key: JournalKey): void {
    this.#remove(key);
  }

  close(): void {
    this.#db.close();
  }
}

/** One word per instance, so that the index itself keeps instances apart (law 6). */
function ownerWord({ role, id }: InstanceId): string {
  return `o${createHash("sha256").update(`${role}:${id}`).digest("hex").slice(0, 32)}`;
}
