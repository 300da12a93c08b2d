import type { JournalKey } from "../../journal/index.js";
import type { Database } from "./driver.js";
import type { Journals } from "./journals.js";
import type { Undo } from "./undo.js";

/** Maximum number of rows that one transaction removes: a few milliseconds. */
const MOST_ROWS = 2_000;
/** How many rows a snapshot part counts as: it may have a megabyte. */
const ROWS_PER_PART = 100;

/**
 * Removes journals with their snapshots. The journal is gone at once; the rows of a long one are removed in steps, so
 * that they never block the event loop. Unfinished removals are stored and continue after a restart.
 */
export class Removals {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #journals: Journals;
  readonly #undo: Undo;
  #unfinished = new Set<number>();
  /** How many more rows this transaction may remove. */
  #room = MOST_ROWS;

  constructor(db: Database, journals: Journals, undo: Undo) {
    this.#sql = prepareStatements(db);
    this.#journals = journals;
    this.#undo = undo;
    this.reload();
  }

  /** Whether rows of removed journals remain. */
  get unfinished(): boolean {
    return this.#unfinished.size > 0;
  }

  reload(): void {
    this.#unfinished = new Set(this.#sql.unfinished.all());
  }

  /** At the start of a transaction. */
  begin(): void {
    this.#room = MOST_ROWS;
  }

  remove(key: JournalKey): void {
    const id = this.#journals.idOf(key);
    if (id === undefined) return;
    this.#journals.disown(key);
    this.#sql.removeSnapshot.run(id);
    if (this.#clear(id)) return;
    this.#sql.note.run(id);
    this.#unfinished.add(id);
    this.#undo.push(() => this.#unfinished.delete(id));
  }

  /** Continues unfinished removals, as far as this transaction may. */
  continue(): void {
    for (const id of [...this.#unfinished]) {
      if (!this.#clear(id)) return;
      this.#sql.done.run(id);
      this.#unfinished.delete(id);
      this.#undo.push(() => this.#unfinished.add(id));
    }
  }

  /** Returns whether all rows of the journal are removed. */
  #clear(id: number): boolean {
    const parts = this.#sql.parts.all(id, Math.ceil(this.#room / ROWS_PER_PART));
    for (const name of parts) this.#sql.removePart.run(id, name);
    this.#room = Math.max(0, this.#room - parts.length * ROWS_PER_PART);
    this.#room -= this.#journals.removeRows(id, this.#room);
    return this.#room > 0;
  }
}

function prepareStatements(db: Database) {
  return {
    unfinished: db.prepare<[], number>("SELECT journal FROM removals ORDER BY journal").pluck(),
    note: db.prepare<[number]>("INSERT INTO removals (journal) VALUES (?)"),
    done: db.prepare<[number]>("DELETE FROM removals WHERE journal = ?"),
    removeSnapshot: db.prepare<[number]>("DELETE FROM snapshots WHERE journal = ?"),
    parts: db
      .prepare<[number, number], string>("SELECT name FROM snapshot_parts WHERE journal = ? LIMIT ?")
      .pluck(),
    removePart: db.prepare<[number, string]>("DELETE FROM snapshot_parts WHERE journal = ? AND name = ?"),
  };
}
