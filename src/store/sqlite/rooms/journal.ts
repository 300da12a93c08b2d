import type { RowWrite } from "../../../journal/ports.js";
import { defineRoom, type RoomContext } from "../room.js";

/** Goes on with the removal of rows whose journals are gone. */
export interface JournalSweep extends RowWrite {
  readonly kind: "journal.sweep";
}

/**
 * The store's own tables. Rows lie in a table whose key is the position: commits only ever add to the right end of it.
 * `journals` turns the long text key into a small number once. `journal_rows` is the index of one journal's rows; it is
 * a table, because it is written in batches, behind the rows.
 */
export const journalRoom = defineRoom<JournalSweep>({
  room: "journal",
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
      // What is there stays where it is, with its index, and is read first: a large file opens as fast as a small one.
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

function sweep({ removals }: RoomContext): () => void {
  return () => removals.goOn();
}
