import { defineRoom } from "../room.js";

/**
 * The store's own tables. One row per append, in a table whose key is the position: commits only ever add to the
 * right end of it. `journals` turns the long text key into a small number once, which keeps the one index small.
 */
export const journalRoom = defineRoom<never>({
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
  ],
  writes: {},
});
