import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { storeContract } from "../contract/store-contract.js";
import { type Durability, openSqliteStore } from "./open.js";

function onDisk(durability: Durability) {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-store-"));
    let current = await openSqliteStore({ directory, durability });
    return {
      store: current,
      reopen: async () => {
        await current.close();
        current = await openSqliteStore({ directory, durability });
        return current;
      },
      destroy: async () => {
        await current.close();
        rmSync(directory, { recursive: true });
      },
    };
  };
}

storeContract("SQLite, a file with fsync", onDisk("fsync"));
storeContract("SQLite, a fast file", onDisk("fast"));
storeContract("SQLite in memory", async () => {
  const store = await openSqliteStore({ path: ":memory:" });
  return { store, destroy: () => store.close() };
});
// Indexes written every three rows: what is read comes from the table, the tail in memory, or both.
storeContract("SQLite, a file with small batches of its indexes", async () => {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-store-"));
  const open = () => openSqliteStore({ directory, durability: "fast", indexBatch: 3 });
  let current = await open();
  return {
    store: current,
    reopen: async () => {
      await current.close();
      current = await open();
      return current;
    },
    destroy: async () => {
      await current.close();
      rmSync(directory, { recursive: true });
    },
  };
});
// A cache too small for its journals: last numbers are read from the table again and again.
storeContract("SQLite in memory, hardly any cache", async () => {
  const store = await openSqliteStore({ path: ":memory:", cachedJournals: 2 });
  return { store, destroy: () => store.close() };
});
