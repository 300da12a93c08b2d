import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { referenceStoreTest } from "../../../test/kit/reference-store.js";
import { type OpenStore, storeContract } from "../../testing/contracts/store.js";
import { taskReadsContract } from "../../testing/contracts/task-reads.js";
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

function test(title: string, open: OpenStore): void {
  describe(title, () => {
    for (const { name, run } of [...storeContract(open), ...taskReadsContract(open)]) it(name, run);
    referenceStoreTest(open);
  });
}

test("SQLite store in a file, durability fsync", onDisk("fsync"));
test("SQLite store in a file, durability fast", onDisk("fast"));
test("SQLite store in memory", async () => {
  const store = await openSqliteStore({ path: ":memory:" });
  return { store, destroy: () => store.close() };
});
// Indexes written every three rows: reads combine the table and the rows that are not indexed yet.
test("SQLite store in a file, small index batches", async () => {
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
// A cache too small for its journals: last numbers are read from the table every time.
test("SQLite store in memory, small cache", async () => {
  const store = await openSqliteStore({ path: ":memory:", cachedJournals: 2 });
  return { store, destroy: () => store.close() };
});

it("large journals are read a few at a time, however many are asked for", async () => {
  const store = await openSqliteStore({ path: ":memory:" });
  const data = JSON.stringify(["x".repeat(3 * 1024 * 1024)]);
  const keys = ["a", "b", "c"];
  for (const journal of keys) await store.commit({ appends: [{ journal, expected: 0, count: 1, data }] });
  const read = async (journals: readonly string[]) =>
    (await store.readMany(journals)).map(({ journal, rows }) => [journal, rows.length]);
  expect(await read(keys)).toEqual([
    ["a", 1],
    ["b", 1],
  ]);
  expect(await read(["c"])).toEqual([["c", 1]]);
  await store.close();
});

it("a journal that is too large to be read at once is not read further than its first rows", async () => {
  const store = await openSqliteStore({ path: ":memory:" });
  const data = JSON.stringify(["x".repeat(1024 * 1024)]);
  for (let expected = 0; expected < 9; expected++) {
    await store.commit({ appends: [{ journal: "a", expected, count: 1, data }] });
  }
  const [large] = await store.readMany(["a"]);
  expect(large?.more).toBe(true);
  expect(large?.rows.length).toBeLessThan(6);
  await store.close();
});
