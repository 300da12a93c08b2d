import type { RowWrite } from "../../journal/index.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** Continues the removal of rows whose journals are gone. */
export interface JournalSweep extends RowWrite {
  readonly kind: "journal.sweep";
}

/**
 * The store's own tables. The key of `journal` is the position: commits only append at its right end. `journals` maps
 * the long text key to a small number. `journal_rows` is the index of one journal's rows; it is a table, because it is
 * written in batches, later than the rows.
 */
export const journalTables = defineTableSet<JournalSweep>({
  name: "journal",
  migrations: [
    {
      number: 1,
      name: "journals",
      sql: `
        CREATE TABLE journals (
          id INTEGER PRIMARY KEY,
          key TEXT NOT NULL UNIQUE
        ) STRICT;
        CREATE TABLE journal (
          position INTEGER PRIMARY KEY,
          journal INTEGER NOT NULL,
          first INTEGER NOT NULL,
          last INTEGER NOT NULL,
          data TEXT NOT NULL,
          UNIQUE (journal, last)
        ) STRICT;
        CREATE TABLE counters (
          name TEXT PRIMARY KEY,
          value INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
      `,
    },
    {
      number: 2,
      name: "the index of journals in batches",
      // Existing rows stay in place with their index and are read first: a large file opens as fast as a small one.
      sql: `
        ALTER TABLE journal RENAME TO journal_old;
        CREATE TABLE journal (
          position INTEGER PRIMARY KEY,
          journal INTEGER NOT NULL,
          first INTEGER NOT NULL,
          last INTEGER NOT NULL,
          data TEXT NOT NULL
        ) STRICT;
        CREATE TABLE journal_rows (
          journal INTEGER NOT NULL,
          last INTEGER NOT NULL,
          position INTEGER NOT NULL,
          PRIMARY KEY (journal, last)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE removals (
          journal INTEGER PRIMARY KEY
        ) STRICT;
        INSERT INTO counters SELECT 'indexed', ifnull(max(position), 0) FROM journal_old;
      `,
    },
  ],
  writes: { "journal.sweep": sweep },
});

function sweep({ removals }: WriteContext): () => void {
  return () => removals.continue();
}
