/**
 * The search index: a file of its own beside the data, with SQLite's full-text search. It is divided into parts of limited
 * size, because SQLite reads everything that begins with a prefix before it returns the first match: each word is stored
 * with the number of its part before it, so that a query reads one part only.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, rmSync } from "node:fs";
import type { InstanceId } from "../../engine/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { FoundEntry, SearchableEntry, SearchIndex, SearchQuery } from "../ports/search.js";
import { type Database, openDatabase } from "./driver.js";

/** Another number when the tables change: the file is built again. */
const VERSION = 2;
/** Characters of an entry that are searched. */
const LONGEST_TEXT = 20_000;
/** Characters of a part. A query of a part takes some 10 ms at most. */
const PART = 512 * 1024;
/** Counted for an entry besides its text. */
const ENTRY = 50;
const WORDS_IN_SNIPPET = 24;
const WORDS_BEFORE_MATCH = 8;
const LONGEST_WORD = 100;
const BUSY_TIMEOUT = 1_000;

interface Row {
  readonly key: string;
  readonly number: number;
  readonly kind: string;
  readonly at: number;
  readonly sender: string | null;
  readonly recipient: string | null;
  readonly text: string;
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
      text TEXT NOT NULL,
      UNIQUE (key, number)
    ) STRICT;
    CREATE TABLE progress (position INTEGER NOT NULL, part INTEGER NOT NULL, size INTEGER NOT NULL) STRICT;
    INSERT INTO progress VALUES (0, 0, 0);
    CREATE VIRTUAL TABLE words USING fts5(
      text, owner, tokenize = "unicode61 remove_diacritics 2", content = '', contentless_delete = 1
    );
    PRAGMA user_version = ${VERSION};
  `);
}

interface Progress {
  readonly position: number;
  /** The part that is being filled, and its characters. */
  readonly part: number;
  readonly size: number;
}

class SqliteSearchIndex implements OpenSearchIndex {
  readonly #db: Database;
  readonly #add: (entries: readonly SearchableEntry[], position: number) => void;
  readonly #remove: (key: string) => void;
  readonly #readProgress;
  readonly #find;

  constructor(db: Database) {
    this.#db = db;
    const insert = db.prepare<[object]>(`
      INSERT INTO entries (key, number, kind, agent, sender, recipient, at, text)
      VALUES (@key, @number, @kind, @agent, @sender, @recipient, @at, @text) ON CONFLICT DO NOTHING
    `);
    const index = db.prepare<[number | bigint, string, string]>(
      "INSERT INTO words (rowid, text, owner) VALUES (?, ?, ?)",
    );
    const move = db.prepare<[Progress]>(
      "UPDATE progress SET position = max(position, @position), part = @part, size = @size",
    );
    this.#readProgress = db.prepare<[], Progress>("SELECT position, part, size FROM progress");
    this.#add = db.transaction((entries: readonly SearchableEntry[], position: number) => {
      let { part, size } = this.#progress;
      for (const { key, number, kind, agent, from, to, at, instance, ...entry } of entries) {
        const text = entry.text.slice(0, LONGEST_TEXT);
        const row = {
          key,
          number,
          kind,
          agent: agent ?? null,
          sender: from ?? null,
          recipient: to ?? null,
          at,
          text,
        };
        const { changes, lastInsertRowid } = insert.run(row);
        if (changes === 0) continue;
        const words = new Set(text.match(WORD));
        index.run(lastInsertRowid, [...words].map(inPart(part)).join(" "), ownerWord(instance));
        size += text.length + ENTRY;
        if (size < PART) continue;
        part += 1;
        size = 0;
      }
      move.run({ position, part, size });
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
      SELECT key, number, kind, at, sender, recipient, entries.text AS text
      FROM words CROSS JOIN entries ON entries.id = words.rowid
      WHERE words MATCH @match AND (@kind IS NULL OR kind = @kind) AND (@agent IS NULL OR agent = @agent)
        AND at >= @since
      ORDER BY words.rowid DESC LIMIT @limit
    `);
  }

  get position(): number {
    return this.#progress.position;
  }

  add(entries: readonly SearchableEntry[], position: number): void {
    this.#add(entries, position);
  }

  *find({ words, instance, kind, agent, since = 0, limit }: SearchQuery): Generator<FoundEntry[], void> {
    if (words.length === 0) return;
    const owner = instance === undefined ? "" : ` AND owner : "${ownerWord(instance)}"`;
    const toSnippet = snippetsOf(words);
    let left = limit;
    for (let { part } = this.#progress; part >= 0 && left > 0; part -= 1) {
      // Words are quoted, so that none of their characters is an operator.
      const terms = words
        .map(inPart(part))
        .map((word, at) => `"${word.replaceAll('"', '""')}"${at === words.length - 1 ? "*" : ""}`);
      const match = `text : (${terms.join(" AND ")})${owner}`;
      const found = this.#find
        .all({ match, kind: kind ?? null, agent: agent ?? null, since, limit: left })
        .map(({ sender, recipient, text, ...row }) => ({
          ...row,
          from: sender,
          to: recipient,
          snippet: toSnippet(text),
        }));
      left -= found.length;
      yield found;
    }
  }

  remove(key: JournalKey): void {
    this.#remove(key);
  }

  close(): void {
    this.#db.close();
  }

  get #progress(): Progress {
    return this.#readProgress.get() ?? { position: 0, part: 0, size: 0 };
  }
}

/** As the index separates words. */
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/** A word as it is stored for a part. The number has a fixed length: no word of another part is like it. */
function inPart(part: number): (word: string) => string {
  const prefix = part.toString(36).padStart(6, "0");
  return (word) => prefix + word;
}

/** As the index compares words: without case and diacritics. */
function folded(word: string): string {
  const plain = ASCII.test(word) ? word : word.normalize("NFD").replaceAll(/\p{M}/gu, "");
  return plain.toLowerCase();
}

const ASCII = /^[!-~]*$/;

/**
 * Text around the first match, with every match in it marked. SQLite's own function takes quadratic time for a text in
 * which a word occurs often.
 */
function snippetsOf(words: readonly string[]): (text: string) => string {
  const wanted = new Set(words.map(folded));
  const beginning = folded(words.at(-1) ?? "");
  const isMatch = (word: string) => {
    const plain = folded(word);
    return wanted.has(plain) || plain.startsWith(beginning);
  };
  return (text) => {
    const shown: { readonly word: string; readonly index: number }[] = [];
    let skipped = false;
    let isCut = false;
    let matched = false;
    for (const { 0: word, index } of text.matchAll(WORD)) {
      isCut = shown.length === WORDS_IN_SNIPPET;
      if (isCut) break;
      shown.push({ word, index });
      matched ||= isMatch(word);
      if (matched || shown.length <= WORDS_BEFORE_MATCH) continue;
      shown.shift();
      skipped = true;
    }
    let snippet = skipped ? "…" : "";
    let written = skipped ? (shown[0]?.index ?? 0) : 0;
    for (const { word, index } of shown) {
      const marked = isMatch(word) ? `\u0001${cut(word)}\u0002` : cut(word);
      snippet += cut(text.slice(written, index)) + marked;
      written = index + word.length;
    }
    return snippet + (isCut ? "…" : cut(text.slice(written)));
  };
}

/** A word, or what is between two. */
function cut(text: string): string {
  return text.length > LONGEST_WORD ? `${text.slice(0, LONGEST_WORD)}…` : text;
}

/** One word per instance, so that the index itself keeps instances apart (law 6). */
function ownerWord({ role, id }: InstanceId): string {
  return `o${createHash("sha256").update(`${role}:${id}`).digest("hex").slice(0, 32)}`;
}
