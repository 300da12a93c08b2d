import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RowWrite, WriterLimits } from "../../journal/index.js";
import { systemLoop } from "../../journal/index.js";
import { append, entriesOf, key, put, task } from "../../testing/contracts/fixtures.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { defineTableSet } from "../table-set.js";
import { TABLE_SETS } from "../tables/all.js";
import { type Database, openDatabase, SqliteError } from "./driver.js";
import { migrate } from "./migrate.js";
import { SqliteStore } from "./store.js";

interface Note extends RowWrite {
  readonly kind: "note.add";
  readonly text: string;
}
interface Fault extends RowWrite {
  readonly kind: "fault.throw";
  readonly error: Error;
}

/** Tables of this test, with a write that fails on demand. */
const faultTables = defineTableSet<Note | Fault>({
  name: "fault",
  migrations: [{ number: 1, name: "notes", sql: "CREATE TABLE notes (text TEXT UNIQUE CHECK (text <> ''))" }],
  writes: {
    "note.add": ({ db }) => {
      const insert = db.prepare("INSERT INTO notes VALUES (?)");
      return ({ text }) => {
        insert.run(text);
      };
    },
    "fault.throw": () => {
      return ({ error }) => {
        throw error;
      };
    },
  },
});

const note = (text: string): Note => ({ kind: "note.add", text });
const fault = (error: Error): Fault => ({ kind: "fault.throw", error });

describe("groups", () => {
  let directory: string;
  let db: Database;
  let clock: VirtualClock;
  let store: SqliteStore;
  const open = (writerLimits: Partial<WriterLimits> = {}) => {
    directory = mkdtempSync(join(tmpdir(), "mailroom-groups-"));
    db = openDatabase(join(directory, "mailroom.db"), { busyTimeout: 0 });
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = OFF");
    const tableSets = [...TABLE_SETS, faultTables];
    migrate(db, tableSets, () => 0);
    clock = new VirtualClock();
    store = new SqliteStore({
      db,
      tableSets,
      clock,
      loop: systemLoop,
      writerLimits,
      cachedJournals: 100,
      indexBatch: 1_024,
      checkFile: () => {},
      release: () => {},
    });
  };
  const reopen = async (writerLimits: Partial<WriterLimits>) => {
    await close();
    open(writerLimits);
  };
  const close = async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  };
  beforeEach(() => open());
  afterEach(() => close());
  const notes = () => db.prepare("SELECT text FROM notes ORDER BY rowid").pluck().all();
  /** Enough turns of the event loop for everything that is due. */
  const turns = async (count = 5) => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resume) => setImmediate(resume));
  };

  it("turns a violated constraint into a conflict of that batch alone", async () => {
    const outcomes = await Promise.allSettled([
      store.commit({ appends: [append(key(1), 0, "a")], rows: [note("one")] }),
      store.commit({ appends: [append(key(1), 1, "b")], rows: [note("two"), note("one")] }),
      store.commit({ appends: [append(key(1), 1, "c")], rows: [note("three")] }),
      store.commit({ appends: [], rows: [note("")] }),
    ]);
    expect(outcomes).toMatchObject([
      { status: "fulfilled", value: { position: 1 } },
      { status: "rejected", reason: { code: "row_conflict", kind: "note.add" } },
      { status: "fulfilled", value: { position: 2 } },
      { status: "rejected", reason: { code: "row_conflict" } },
    ]);
    expect(notes()).toEqual(["one", "three"]);
    expect(entriesOf(await store.read(key(1)))).toEqual(["a", "c"]);
  });

  it("rejects only the batch whose write handler has a bug", async () => {
    const bug = new TypeError("a bug in the write handler");
    const [broken, fine] = await Promise.allSettled([
      store.commit({ appends: [append(key(1), 0, "a")], rows: [note("one"), fault(bug)] }),
      store.commit({ appends: [append(key(1), 0, "b")], rows: [note("one")] }),
    ]);
    expect(broken).toEqual({ status: "rejected", reason: bug });
    expect(fine.status).toBe("fulfilled");
    expect(notes()).toEqual(["one"]);
  });

  it("names the unknown kind of a write, also to callers that bypass commit", async () => {
    await expect(store.commit({ appends: [], rows: [{ kind: "mesh.put" }] })).rejects.toThrow(/"mesh.put"/);
    const pushed = new Promise((durable, refused) => {
      store.writer.push({ appends: [], rows: [{ kind: "mesh.put" }], durable, refused });
    });
    const [refused, kept] = await Promise.allSettled([
      pushed,
      store.commit({ appends: [], rows: [note("x")] }),
    ]);
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "invalid_batch" } });
    expect(kept.status).toBe("fulfilled");
  });

  it("merges appends of one journal in a group into one row, up to the limit of a row", async () => {
    await reopen({ rowCharacters: 20 });
    const commits = ["one", "two", "three", "four"].map((text, expected) =>
      store.commit({ appends: [append(key(1), expected, text)] }),
    );
    const positions = (await Promise.all(commits)).map(({ position }) => position);
    expect((await store.read(key(1))).map(({ first, last, data }) => [first, last, data])).toEqual([
      [1, 2, '["one","two"]'],
      [3, 4, '["three","four"]'],
    ]);
    expect(positions).toEqual([1, 1, 2, 2]);
  });

  it("commits many batches in several transactions without losing the order", async () => {
    await reopen({ groupWrites: 10, groupCharacters: 60, rowCharacters: 0 });
    const commits = Array.from({ length: 200 }, (_, number) =>
      store.commit({ appends: [append(key(1), number, `${number}`)] }),
    );
    const positions = (await Promise.all(commits)).map(({ position }) => position);
    expect(positions).toEqual(Array.from({ length: 200 }, (_, number) => number + 1));
  });

  it("lets the event loop run between two transactions", async () => {
    await reopen({ groupWrites: 1 });
    const order: string[] = [];
    const commits = [0, 1, 2].map((number) =>
      store.commit({ appends: [append(key(1), number, "a")] }).then(() => order.push(`commit ${number}`)),
    );
    setImmediate(() => order.push("other work"));
    await Promise.all(commits);
    expect(order).toEqual(["commit 0", "other work", "commit 1", "commit 2"]);
  });

  describe("a full write queue", () => {
    it("rejects posts at once by number, still accepts results, and accepts posts again when there is capacity", async () => {
      await reopen({ units: 4 });
      const batch = (number: number) => ({ appends: [append(key(number), 0, "a")] });
      const waiting = [1, 2, 3].map((number) => store.commit(batch(number)));
      await expect(store.commit(batch(4))).rejects.toMatchObject({ code: "store_busy" });
      waiting.push(store.commit(batch(5), "result"), store.commit(batch(6), "result"));
      await Promise.all(waiting);
      await store.commit(batch(4));
      expect(await store.readAll(0, 10)).toHaveLength(6);
    });

    it("rejects posts by size, but accepts a batch of any size when nothing waits", async () => {
      await reopen({ characters: 50, groupCharacters: 20 });
      const large = (number: number) => ({ appends: [append(key(number), 0, "x".repeat(100))] });
      const first = store.commit(large(1));
      await expect(store.commit(large(2))).rejects.toMatchObject({ code: "store_busy" });
      await first;
      await store.commit(large(2));
    });
  });

  describe("a store that cannot be written for a while", () => {
    /** Blocks every writer until it is called. */
    const lockOut = (): (() => void) => {
      const other = openDatabase(join(directory, "mailroom.db"), { busyTimeout: 0 });
      other.exec("BEGIN IMMEDIATE");
      return () => other.close();
    };

    it("retries until it succeeds, with everything in order", async () => {
      await store.commit({ appends: [append(key(1), 0, "a")] });
      const letGo = lockOut();
      const commits = [1, 2, 3].map((expected) =>
        store.commit({
          appends: [append(key(1), expected, `${expected}`)],
          rows: [note(`note ${expected}`)],
        }),
      );
      await turns();
      commits.push(store.commit({ appends: [append(key(2), 0, "later")] }));
      clock.advance(200);
      expect(store.writer.health).toMatchObject({ state: "open", waiting: 4 });
      letGo();
      clock.advance(1_000);
      await Promise.all(commits);
      expect(entriesOf(await store.readAll(0, 10))).toEqual(["a", "1", "2", "3", "later"]);
      expect(notes()).toEqual(["note 1", "note 2", "note 3"]);
      expect(store.writer.health).toMatchObject({ state: "open", waiting: 0 });
    });

    it("is degraded after a quarter of a second: rejects posts and lets results wait", async () => {
      const states: string[] = [];
      store.writer.onState(() => states.push(store.writer.health.state));
      const letGo = lockOut();
      const first = store.commit({ appends: [append(key(1), 0, "first")] });
      await turns();
      clock.advance(400);
      expect(store.writer.health).toMatchObject({ state: "degraded", waiting: 1 });
      await expect(store.commit({ appends: [append(key(2), 0, "post")] })).rejects.toMatchObject({
        code: "store_busy",
      });
      const result = store.commit({ appends: [append(key(1), 1, "result")] }, "result");
      letGo();
      clock.advance(1_000);
      await Promise.all([first, result]);
      expect(states).toEqual(["degraded", "open"]);
      expect(entriesOf(await store.readAll(0, 10))).toEqual(["first", "result"]);
    });

    it("treats a full disk the same way", async () => {
      await store.commit({ appends: [append(key(1), 0, "kept")], rows: [put(task(key(1)))] });
      const pages = Number(db.pragma("page_count", { simple: true }));
      db.pragma(`max_page_count = ${pages + 2}`);
      const commits = [
        store.commit({ appends: [append(key(1), 1, "small")] }),
        store.commit({ appends: [append(key(2), 0, "x".repeat(50_000))] }),
      ];
      await turns();
      expect(entriesOf(await store.readAll(0, 10))).toEqual(["kept"]);
      expect(await store.lastNumber(key(1))).toBe(1);
      expect(await store.position()).toBe(1);
      db.pragma("max_page_count = 100000");
      clock.advance(1_000);
      await Promise.all(commits);
      expect(entriesOf(await store.read(key(1)))).toEqual(["kept", "small"]);
    });

    it("closes after a few seconds and rejects what was not written", async () => {
      const letGo = lockOut();
      const lost = store.commit({ appends: [append(key(1), 0, "lost")] });
      await turns();
      clock.advance(300);
      const closing = store.close();
      expect(store.close()).toBe(closing);
      await expect(store.commit({ appends: [] })).rejects.toMatchObject({ code: "store_closed" });
      clock.advance(5_000);
      await expect(lost).rejects.toMatchObject({ code: "store_closed" });
      await closing;
      letGo();
    });
  });

  describe("a failed disk", () => {
    const broken = () => new SqliteError("disk I/O error", "SQLITE_IOERR_WRITE");

    it("rejects every later write, and can still be read and closed", async () => {
      await reopen({ groupWrites: 3 });
      await store.commit({ appends: [append(key(1), 0, "kept")] });
      const outcomes = await Promise.allSettled([
        store.commit({ appends: [append(key(1), 1, "in the same transaction")] }),
        store.commit({ appends: [append(key(2), 0, "the unlucky one")], rows: [fault(broken())] }),
        store.commit({ appends: [append(key(3), 0, "queued behind it")] }),
      ]);
      const lost = { code: "store_failed" };
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: "rejected", reason: lost });
      await expect(store.commit({ appends: [append(key(1), 1, "later")] })).rejects.toMatchObject(lost);
      await expect(store.reclaim()).rejects.toMatchObject(lost);
      expect(entriesOf(await store.readAll(0, 10))).toEqual(["kept"]);
      expect(store.writer.health.state).toBe("failed");
    });

    it("does not retry when COMMIT itself failed", async () => {
      // A deferred foreign key is checked by COMMIT: the one way to make COMMIT fail at will.
      db.exec(`
        CREATE TABLE parents (id INTEGER PRIMARY KEY);
        CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER orphan AFTER INSERT ON notes BEGIN INSERT INTO children VALUES (7); END;
      `);
      db.pragma("foreign_keys = ON");
      await expect(
        store.commit({ appends: [append(key(1), 0, "a")], rows: [note("one")] }),
      ).rejects.toMatchObject({ code: "store_failed" });
    });
  });
});
