/** State cached beside the tables must agree with a scan of every row, whenever the process dies. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualLoop } from "../../../test/kit/manual-loop.js";
import { seededRandom } from "../../../test/kit/seeded.js";
import type { Batch, JournalRow } from "../../journal/index.js";
import {
  ANN,
  append,
  BOB,
  entriesOf,
  key,
  put,
  remove,
  snapshot,
  task,
} from "../../testing/contracts/fixtures.js";
import { openDatabase } from "./driver.js";
import { openSqliteStore, type SqliteStoreOptions } from "./open.js";
import type { SqliteStore } from "./store.js";

let root: string;
const stores: SqliteStore[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mailroom-batches-"));
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  rmSync(root, { recursive: true });
});

async function open(name: string, options: Omit<SqliteStoreOptions, "path" | "directory"> = {}) {
  const store = await openSqliteStore({ directory: join(root, name), durability: "fast", ...options });
  stores.push(store);
  return store;
}

/** A copy of what a process killed now would leave. */
function killed(name: string, as: string): string {
  cpSync(join(root, name), join(root, as), { recursive: true });
  return as;
}

/** Every row, found by a full scan. */
function scan(name: string): JournalRow[] {
  const db = openDatabase(join(root, name, "mailroom.db"), { busyTimeout: 0 });
  const rows = db
    .prepare<[], JournalRow>(`
      SELECT key AS journal, first, last, position, data FROM journals
      JOIN (SELECT * FROM journal UNION ALL SELECT * FROM journal_old) AS stored ON stored.journal = journals.id
      ORDER BY position
    `)
    .all();
  db.close();
  return rows;
}

function count(name: string, table: string): number {
  const db = openDatabase(join(root, name, "mailroom.db"), { busyTimeout: 0 });
  const rows = db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
  db.close();
  return rows;
}

it("finds every row after a kill between any two groups", async () => {
  const random = seededRandom(7);
  const store = await open("data", { indexBatch: 5, cachedJournals: 2, writerLimits: { rowCharacters: 0 } });
  const keys = [key(1), key(2), key(3), key(4), key(5), key(6)] as const;
  for (let group = 0; group < 60; group += 1) {
    const batches: Batch[] = [];
    const planned = new Map<string, number>();
    for (let batch = random.int(4); batch >= 0; batch -= 1) {
      const journal = random.pick(keys);
      const expected = planned.get(journal) ?? (await store.lastNumber(journal));
      const removes = random.chance(0.15);
      const instance = keys.indexOf(journal) % 2 === 0 ? ANN : BOB;
      const row = task(journal, { instance, taskId: journal, status: "completed" });
      const plan = removes
        ? { appends: [], rows: [remove(journal, expected)] }
        : { appends: [append(journal, expected, `${group}`, "and more")], rows: [put(row)] };
      // Rejected in its last row: its earlier writes are rolled back.
      if (random.chance(0.2)) batches.push({ ...plan, rows: [...plan.rows, snapshot("none", 1, {})] });
      else {
        batches.push(plan);
        planned.set(journal, removes ? 0 : expected + 2);
      }
    }
    await Promise.allSettled(batches.map((batch) => store.commit(batch)));

    const copy = killed("data", `killed-${group}`);
    const rows = scan(copy);
    for (const table of ["journal", "journal_rows"]) {
      expect(count(copy, `${table} WHERE journal NOT IN (SELECT id FROM journals)`)).toBe(0);
    }
    const again = await open(copy, { indexBatch: 5 });
    expect(await again.readAll(0, 10_000)).toEqual(rows);
    expect(await again.position()).toBe(await store.position());
    const tasks = (await again.tasks.list({ limit: 100 })).tasks;
    for (const journal of keys) {
      const own = rows.filter((row) => row.journal === journal);
      for (const reader of [store, again]) {
        expect(await reader.read(journal)).toEqual(own);
        expect(await reader.read(journal, { after: 2, limit: 2 })).toEqual(
          own.filter(({ last }) => last > 2).slice(0, 2),
        );
        expect(await reader.lastNumber(journal)).toBe(own.at(-1)?.last ?? 0);
      }
    }
    for (const instance of [ANN, BOB]) {
      const own = tasks.filter((row) => row.instance.id === instance.id);
      for (const reader of [store, again]) {
        expect((await reader.tasks.list({ instance, limit: 100 })).tasks).toEqual(own);
        expect(await reader.tasks.inOrder({ instance, limit: 100 })).toEqual([...own].reverse());
        expect((await reader.tasks.counts(instance)).completed).toBe(own.length);
      }
    }
    await again.close();
  }
  // Otherwise the test did not touch the index.
  expect(count("data", "journal_rows")).toBeGreaterThan(20);
  expect(count("data", "task_list")).toBeGreaterThan(0);
});

it("lists a task that was opened after the newest ones were removed", async () => {
  const first = await open("data", { indexBatch: 1 });
  const ended = (number: number) => task(key(number), { status: "completed" });
  for (const number of [1, 2, 3]) await first.commit({ appends: [], rows: [put(ended(number))] });
  await first.commit({ appends: [], rows: [remove(key(2), 0), remove(key(3), 0)] });
  await first.close();
  const second = await open("data");
  await second.commit({ appends: [], rows: [put(ended(4))] });
  await second.close();
  const third = await open("data");
  expect((await third.tasks.list({ instance: ANN, limit: 9 })).tasks).toEqual([ended(4), ended(1)]);
});

describe("two writers on one file", () => {
  it("see each other's writes, and their stale appends are rejected", async () => {
    const one = await open("data", { indexBatch: 2, lock: false });
    const two = await open("data", { indexBatch: 2, lock: false });
    for (let round = 0; round < 6; round += 1) {
      for (const [mine, store] of [one, two].entries()) {
        await store.commit({
          appends: [append(key(mine), round, "own"), append(key(2), 2 * round + mine, "shared")],
          rows: [put(task(key(100 * mine + round + 10), { status: "completed" }))],
        });
      }
      const stale = one.commit({ appends: [append(key(2), 2 * round + 1, "too late")] });
      await expect(stale).rejects.toMatchObject({ code: "stale_append", actual: 2 * round + 2 });
    }
    for (const store of [one, two]) {
      expect(entriesOf(await store.read(key(0)))).toHaveLength(6);
      expect(entriesOf(await store.read(key(1)))).toHaveLength(6);
      expect(entriesOf(await store.read(key(2)))).toHaveLength(12);
      expect((await store.tasks.list({ instance: ANN, limit: 100 })).tasks).toHaveLength(12);
    }
    expect(await one.readAll(0, 100)).toEqual(scan("data"));
  });

  it("fail for good when an index row already exists", async () => {
    const store = await open("data", { indexBatch: 1 });
    await store.commit({ appends: [append(key(1), 0, "a")] });
    const other = openDatabase(join(root, "data", "mailroom.db"), { busyTimeout: 0 });
    other.exec("INSERT INTO journal_rows SELECT id, 1, 999 FROM journals");
    other.close();
    await expect(store.commit({ appends: [append(key(2), 0, "b")] })).rejects.toMatchObject({
      code: "store_failed",
    });
  });
});

describe("removing a long task", () => {
  /** Finished tasks with a number of rows each. */
  async function fill(store: SqliteStore, loop: ManualLoop, tasks: number, rows: number): Promise<void> {
    for (let number = 0; number < tasks; number += 1) {
      const appends = Array.from({ length: rows }, (_, expected) => append(key(number), expected, "x"));
      const ended = put(task(key(number), { status: "completed" }));
      const filled = store.commit({ appends, rows: [ended] });
      loop.run();
      await filled;
    }
  }
  const limits = { rowCharacters: 0 };

  it("removes at most 2,000 rows per transaction and hides the task at once", async () => {
    const loop = new ManualLoop();
    const store = await open("data", { loop, writerLimits: limits });
    await fill(store, loop, 10, 450);
    const removed = Array.from({ length: 10 }, (_, number) =>
      store.commit({ appends: [], rows: [remove(key(number), 450)] }),
    );
    loop.run();
    await Promise.all(removed);
    expect((await store.tasks.list({ limit: 100 })).tasks).toEqual([]);
    expect(await store.readAll(0, 10)).toEqual([]);
    const again = store.commit({ appends: [append(key(0), 0, "again")] });
    const left: number[] = [];
    for (;;) {
      left.push(count("data", "journal"));
      // The rows are removed in later turns, behind batches that already wait.
      await new Promise((resume) => setImmediate(resume));
      if (!loop.run()) break;
    }
    await again;
    for (const [index, rows] of left.entries()) {
      expect((left[index - 1] ?? 4_500) - rows).toBeLessThanOrEqual(2_000);
    }
    expect(scan("data").map(({ journal }) => journal)).toEqual([key(0)]);
    expect(count("data", "journal")).toBe(1);
    expect(count("data", "removals")).toBe(0);
  });

  it("continues after a kill in the middle", async () => {
    const loop = new ManualLoop();
    const store = await open("data", { loop, indexBatch: 1_000, writerLimits: limits });
    await fill(store, loop, 2, 5_000);
    const removed = store.commit({ appends: [], rows: [remove(key(1), 5_000)] });
    loop.run();
    await removed;
    const again = await open(killed("data", "killed"));
    expect(count("killed", "journal")).toBe(8_000);
    expect(await again.lastNumber(key(1))).toBe(0);
    await again.commit({ appends: [append(key(1), 0, "a new one")] });
    await again.reclaim();
    expect(entriesOf(await again.read(key(1)))).toEqual(["a new one"]);
    expect(await again.lastNumber(key(0))).toBe(5_000);
    expect(count("killed", "journal")).toBe(5_001);
    expect(count("killed", "removals")).toBe(0);
    expect(await again.readAll(0, 100_000)).toEqual(scan("killed"));
    // Let the first process finish as well.
    while (loop.run()) await new Promise((resume) => setImmediate(resume));
  });
});

it("reads a bounded number of rows for a page of one status and returns a cursor", async () => {
  const store = await open("data", { indexBatch: 700 });
  const row = (number: number) =>
    put(task(key(number), { status: number % 1_500 === 0 ? "failed" : "completed" }));
  for (let from = 0; from < 4_500; from += 500) {
    await store.commit({ appends: [], rows: Array.from({ length: 500 }, (_, index) => row(from + index)) });
  }
  for (const scope of [{ instance: ANN }, {}]) {
    const found: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined; ; pages += 1) {
      const page = await store.tasks.list({
        ...scope,
        status: "failed",
        limit: 10,
        ...(cursor !== undefined && { cursor }),
      });
      found.push(...page.tasks.map((found) => found.key));
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
    expect(found).toEqual([key(3_000), key(1_500), key(0)]);
    expect(pages).toBe(2);
  }
  const counts = { running: 0, paused: 0, completed: 4_497, failed: 3, cancelled: 0 };
  expect(await store.tasks.counts(ANN)).toEqual(counts);
  expect(await store.tasks.counts()).toEqual(counts);
});
