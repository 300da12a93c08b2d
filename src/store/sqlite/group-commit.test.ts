import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RowWrite } from "../../engine/ports.js";
import { append, key, put, task } from "../contract/fixtures.js";
import { type Database, openDatabase, SqliteError } from "./driver.js";
import type { GroupLimits } from "./group-commit.js";
import { migrate } from "./migrate.js";
import { defineRoom } from "./room.js";
import { ROOMS } from "./rooms/index.js";
import { SqliteStore } from "./store.js";

interface Note extends RowWrite {
  readonly kind: "note.add";
  readonly text: string;
}
interface Fault extends RowWrite {
  readonly kind: "fault.throw";
  readonly error: Error;
}

/** A room of the test's own, with a table and a write that fails as it is told. */
const faultRoom = defineRoom<Note | Fault>({
  room: "fault",
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

describe("group commit", () => {
  let db: Database;
  let store: SqliteStore;
  const open = (limits: Partial<GroupLimits> = {}) => {
    db = openDatabase(":memory:", { busyTimeout: 0 });
    const rooms = [...ROOMS, faultRoom];
    migrate(db, rooms, () => 0);
    store = new SqliteStore({
      db,
      rooms,
      cachedJournals: 100,
      limits: {
        maxQueuedAppends: 1000,
        maxQueuedData: 100_000,
        maxGroupAppends: 512,
        maxGroupData: 100_000,
        ...limits,
      },
      release: () => {},
    });
  };
  beforeEach(() => open());
  afterEach(() => store.close());
  const notes = () => db.prepare("SELECT text FROM notes ORDER BY rowid").pluck().all();

  it("turns a constraint of a room's table into a conflict of that batch alone", async () => {
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
    expect((await store.read(key(1))).map(({ data }) => data)).toEqual(['["a"]', '["c"]']);
  });

  it("hands a bug in a room's write to the caller of that batch alone", async () => {
    const bug = new TypeError("a bug in the room");
    const [broken, fine] = await Promise.allSettled([
      store.commit({ appends: [append(key(1), 0, "a")], rows: [note("one"), fault(bug)] }),
      store.commit({ appends: [append(key(1), 0, "b")], rows: [note("one")] }),
    ]);
    expect(broken).toEqual({ status: "rejected", reason: bug });
    expect(fine.status).toBe("fulfilled");
    expect(notes()).toEqual(["one"]);
  });

  it("commits a large crowd in several transactions without losing the order", async () => {
    await store.close();
    open({ maxGroupAppends: 10, maxGroupData: 60 });
    const commits = Array.from({ length: 200 }, (_, number) =>
      store.commit({ appends: [append(key(1), number, `${number}`)] }),
    );
    const positions = (await Promise.all(commits)).map(({ position }) => position);
    expect(positions).toEqual(Array.from({ length: 200 }, (_, number) => number + 1));
  });

  it("lets the event loop run between two transactions", async () => {
    await store.close();
    open({ maxGroupAppends: 1 });
    const order: string[] = [];
    const commits = [0, 1, 2].map((number) =>
      store.commit({ appends: [append(key(1), number, "a")] }).then(() => order.push(`commit ${number}`)),
    );
    setImmediate(() => order.push("other work"));
    await Promise.all(commits);
    expect(order).toEqual(["commit 0", "other work", "commit 1", "commit 2"]);
  });

  describe("when too much waits", () => {
    it("refuses by number, at once, and takes more when there is room again", async () => {
      await store.close();
      open({ maxQueuedAppends: 3 });
      const batch = (number: number) => ({ appends: [append(key(number), 0, "a")] });
      const waiting = [1, 2, 3].map((number) => store.commit(batch(number)));
      await expect(store.commit(batch(4))).rejects.toMatchObject({ code: "store_busy" });
      await Promise.all(waiting);
      await store.commit(batch(4));
      expect(await store.readAll(0, 10)).toHaveLength(4);
    });

    it("refuses by size, but takes a batch of any size when nothing waits", async () => {
      await store.close();
      open({ maxQueuedData: 50, maxGroupData: 20 });
      const large = (number: number) => ({ appends: [append(key(number), 0, "x".repeat(100))] });
      const first = store.commit(large(1));
      await expect(store.commit(large(2))).rejects.toMatchObject({ code: "store_busy" });
      await first;
      await store.commit(large(2));
    });
  });

  describe("when the disk is full", () => {
    it("rejects what was in the transaction, keeps what was there, and goes on when there is space", async () => {
      await store.commit({ appends: [append(key(1), 0, "kept")], rows: [put(task(key(1)))] });
      const pages = Number(db.pragma("page_count", { simple: true }));
      db.pragma(`max_page_count = ${pages + 2}`);
      const outcomes = await Promise.allSettled([
        store.commit({ appends: [append(key(1), 1, "small")] }),
        store.commit({ appends: [append(key(2), 0, "x".repeat(50_000))] }),
      ]);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({
          status: "rejected",
          reason: { code: "store_failure", outcome: "not_committed", final: false },
        });
      }
      expect((await store.readAll(0, 10)).map(({ data }) => data)).toEqual(['["kept"]']);
      db.pragma("max_page_count = 100000");
      expect(await store.commit({ appends: [append(key(1), 1, "after")] })).toEqual({ position: 2 });
      expect((await store.read(key(1))).map(({ data }) => data)).toEqual(['["kept"]', '["after"]']);
    });
  });

  describe("when the disk fails", () => {
    const broken = () => new SqliteError("disk I/O error", "SQLITE_IOERR_WRITE");

    it("rejects everything from then on, and can still be read and closed", async () => {
      await store.close();
      open({ maxGroupAppends: 3 });
      await store.commit({ appends: [append(key(1), 0, "kept")] });
      const outcomes = await Promise.allSettled([
        store.commit({ appends: [append(key(1), 1, "in the same transaction")] }),
        store.commit({ appends: [append(key(2), 0, "the unlucky one")], rows: [fault(broken())] }),
        store.commit({ appends: [append(key(3), 0, "queued behind it")] }),
      ]);
      const lost = { code: "store_failure", outcome: "not_committed", final: true };
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: "rejected", reason: lost });
      await expect(store.commit({ appends: [append(key(1), 1, "later")] })).rejects.toMatchObject(lost);
      await expect(store.reclaim()).rejects.toMatchObject(lost);
      expect((await store.readAll(0, 10)).map(({ data }) => data)).toEqual(['["kept"]']);
    });

    it("does not claim to know the outcome when the commit itself failed", async () => {
      // A deferred foreign key is checked by COMMIT: the one way to make COMMIT fail at will.
      db.exec(`
        CREATE TABLE parents (id INTEGER PRIMARY KEY);
        CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER orphan AFTER INSERT ON notes BEGIN INSERT INTO children VALUES (7); END;
      `);
      db.pragma("foreign_keys = ON");
      await expect(
        store.commit({ appends: [append(key(1), 0, "a")], rows: [note("one")] }),
      ).rejects.toMatchObject({ code: "store_failure", outcome: "unknown", final: true });
    });
  });

  it("says which write a store has no room for", async () => {
    await expect(store.commit({ appends: [], rows: [{ kind: "mesh.put" }] })).rejects.toThrow(/"mesh.put"/);
  });
});
