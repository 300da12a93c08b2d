import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Committed, RowConflictError, StaleAppendError, type Store } from "../../engine/ports.js";
import { ANN, append, BOB, entriesOf, key, put, remove, snapshot, task } from "./fixtures.js";
import { modelContract } from "./model-contract.js";
import { taskIndexContract } from "./task-index-contract.js";

/** A fresh, empty store. */
export interface StoreHarness {
  readonly store: Store;
  /** Closes the store and opens it again on the same data. Absent for a store that keeps nothing. */
  readonly reopen?: () => Promise<Store>;
  destroy(): Promise<void>;
}

export type OpenStore = () => Promise<StoreHarness>;

/** What every Store promises, whatever it is made of. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`store contract: ${name}`, () => {
    let harness: StoreHarness;
    let store: Store;
    beforeEach(async () => {
      harness = await open();
      store = harness.store;
    });
    afterEach(() => harness.destroy());

    describe("commit", () => {
      it("makes appends and rows readable once it has resolved", async () => {
        const { position } = await store.commit({
          appends: [append(key(1), 0, "opened", "queued")],
          rows: [put(task(key(1)))],
        });
        expect(await store.read(key(1))).toEqual([
          { journal: key(1), first: 1, last: 2, position, data: '["opened","queued"]' },
        ]);
        expect(await store.tasks.byKey(key(1))).toEqual(task(key(1)));
      });

      it("keeps text as it is, whatever is in it", async () => {
        const text = "null \u0000, quote \" and ', emoji 😀, lone surrogate as an escape \\ud800, \u2028";
        await store.commit({
          appends: [append(key(1), 0, text)],
          rows: [put(task(key(1), { title: text, taskId: "ünïcode; DROP TABLE tasks" }))],
        });
        const [row] = await store.read(key(1));
        expect(JSON.parse(row?.data ?? "")).toEqual([text]);
        expect((await store.tasks.find(ANN, "ünïcode; DROP TABLE tasks"))?.title).toBe(text);
      });

      it("refuses an append whose expected number is too low, too high or inside a row", async () => {
        await store.commit({ appends: [append(key(1), 0, "a", "b", "c")] });
        for (const expected of [0, 1, 2, 4]) {
          const refused = store.commit({ appends: [append(key(1), expected, "x")] });
          await expect(refused).rejects.toThrow(StaleAppendError);
          await expect(refused).rejects.toMatchObject({ code: "stale_append", expected, actual: 3 });
        }
        expect(await store.lastNumber(key(1))).toBe(3);
        expect(await store.readAll(0, 10)).toHaveLength(1);
      });

      it("refuses to begin a journal anywhere but at its first number", async () => {
        await expect(store.commit({ appends: [append(key(1), 1, "x")] })).rejects.toMatchObject({
          actual: 0,
        });
        expect(await store.read(key(1))).toEqual([]);
      });

      it("keeps nothing of a batch that is refused half way", async () => {
        await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(task(key(1)))] });
        const stale = store.commit({
          appends: [append(key(2), 0, "b"), append(key(1), 0, "stale")],
          rows: [put(task(key(2)))],
        });
        await expect(stale).rejects.toThrow(StaleAppendError);
        const conflicting = store.commit({
          appends: [append(key(3), 0, "c"), append(key(1), 1, "c")],
          rows: [put(task(key(3))), put(task(key(4), { taskId: task(key(1)).taskId }))],
        });
        await expect(conflicting).rejects.toThrow(RowConflictError);
        expect((await store.readAll(0, 10)).map(({ data }) => data)).toEqual(['["a"]']);
        expect((await store.tasks.list({ limit: 10 })).tasks.map((row) => row.key)).toEqual([key(1)]);
        expect(await store.lastNumber(key(1))).toBe(1);
        expect(await store.lastNumber(key(2))).toBe(0);
      });

      it("lets a refused batch take no other with it", async () => {
        await store.commit({ appends: [append(key(9), 0, "a")], rows: [put(task(key(9)))] });
        const outcomes = await Promise.allSettled([
          store.commit({ appends: [append(key(1), 0, "one")] }),
          store.commit({ appends: [append(key(9), 0, "stale")] }),
          store.commit({ appends: [append(key(1), 1, "two")] }),
          store.commit({
            appends: [append(key(1), 2, "never")],
            rows: [put(task(key(2), { taskId: task(key(9)).taskId }))],
          }),
          store.commit({ appends: [append(key(1), 2, "three")], rows: [put(task(key(1)))] }),
          store.commit({ appends: [], rows: [{ kind: "no.such.kind" }] }),
          store.commit({ appends: [append(key(1), 3, "four")] }),
        ]);
        expect(outcomes.map(({ status }) => status)).toEqual([
          "fulfilled",
          "rejected",
          "fulfilled",
          "rejected",
          "fulfilled",
          "rejected",
          "fulfilled",
        ]);
        expect(entriesOf(await store.read(key(1)))).toEqual(["one", "two", "three", "four"]);
      });

      it("takes batches in the order of the calls", async () => {
        const commits: Promise<Committed>[] = [];
        for (let number = 0; number < 2000; number += 1) {
          commits.push(
            store.commit({ appends: [append(key(number % 7), Math.floor(number / 7), `${number}`)] }),
          );
        }
        const committed = await Promise.all(commits);
        const rows = await store.readAll(0, 2000);
        const at = new Map(rows.map((row) => [row.position, entriesOf([row])]));
        for (const [number, { position }] of committed.entries()) {
          expect(at.get(position)).toContain(`${number}`);
        }
        for (let journal = 0; journal < 7; journal += 1) {
          const own = entriesOf(rows.filter((row) => row.journal === key(journal))).map(Number);
          expect(own).toEqual(committed.flatMap((_, number) => (number % 7 === journal ? [number] : [])));
        }
      });

      it("appends to several journals, and more than once to one, in one batch", async () => {
        await store.commit({
          appends: [append(key(1), 0, "a"), append(key(2), 0, "b"), append(key(1), 1, "c", "d")],
        });
        expect(entriesOf(await store.read(key(1)))).toEqual(["a", "c", "d"]);
        expect(await store.lastNumber(key(1))).toBe(3);
        expect(await store.lastNumber(key(2))).toBe(1);
      });

      it("answers a batch without appends with the newest position", async () => {
        expect(await store.commit({ appends: [] })).toEqual({ position: 0 });
        const { position } = await store.commit({ appends: [append(key(1), 0, "a")] });
        expect(await store.commit({ appends: [], rows: [put(task(key(1)))] })).toEqual({ position });
      });

      it("refuses an append without entries", async () => {
        await expect(store.commit({ appends: [append(key(1), 0)] })).rejects.toMatchObject({
          code: "invalid_batch",
        });
      });
    });

    describe("read", () => {
      beforeEach(async () => {
        await store.commit({ appends: [append(key(1), 0, "1", "2", "3")] });
        await store.commit({ appends: [append(key(2), 0, "other")] });
        await store.commit({ appends: [append(key(1), 3, "4")] });
        await store.commit({ appends: [append(key(1), 4, "5", "6")] });
      });
      const numbers = (rows: readonly { first: number; last: number }[]) =>
        rows.map(({ first, last }) => [first, last]);

      it("begins with the row that contains the next number", async () => {
        const all = [
          [1, 3],
          [4, 4],
          [5, 6],
        ];
        for (const [after, from] of [
          [0, 0],
          [1, 0],
          [2, 0],
          [3, 1],
          [4, 2],
          [5, 2],
          [6, 3],
          [99, 3],
        ] as const) {
          expect(numbers(await store.read(key(1), { after })), `after ${after}`).toEqual(all.slice(from));
        }
      });

      it("pages through a journal", async () => {
        expect(numbers(await store.read(key(1), { limit: 2 }))).toEqual([
          [1, 3],
          [4, 4],
        ]);
        expect(numbers(await store.read(key(1), { after: 4, limit: 2 }))).toEqual([[5, 6]]);
      });

      it("knows nothing of a journal that does not exist", async () => {
        expect(await store.read(key(3))).toEqual([]);
        expect(await store.lastNumber(key(3))).toBe(0);
        expect(await store.readSnapshot(key(3))).toBeUndefined();
      });

      it("gives many journals at once, each from its snapshot on, in the order asked for", async () => {
        await store.commit({ appends: [], rows: [snapshot(key(1), 4, { head: "state" })] });
        const many = await store.readMany([key(2), key(1), key(3)]);
        expect(many).toEqual([
          { journal: key(2), snapshot: undefined, rows: await store.read(key(2)) },
          {
            journal: key(1),
            snapshot: { number: 4, parts: [{ name: "head", data: "state" }] },
            rows: await store.read(key(1), { after: 4 }),
          },
          { journal: key(3), snapshot: undefined, rows: [] },
        ]);
      });

      it("knows the position up to which all can be read", async () => {
        const all = await store.readAll(0, 10);
        expect(await store.position()).toBe(all.at(-1)?.position);
      });

      it("pages through all journals in commit order", async () => {
        const all = await store.readAll(0, 10);
        expect(all.map(({ journal, first }) => [journal, first])).toEqual([
          [key(1), 1],
          [key(2), 1],
          [key(1), 4],
          [key(1), 5],
        ]);
        const second = all[1]?.position ?? 0;
        expect(await store.readAll(second, 1)).toEqual(all.slice(2, 3));
        expect(await store.readAll(all[3]?.position ?? 0, 10)).toEqual([]);
      });
    });

    it("never shows a reader of all journals something late", async () => {
      const seen: number[] = [];
      const writers: Promise<unknown>[] = [];
      for (let round = 0; round < 40; round += 1) {
        for (let writer = 0; writer < 5; writer += 1) {
          const appends = [append(key(writer), round * 2, "a"), append(key(writer), round * 2 + 1, "b")];
          writers.push(store.commit({ appends }));
        }
        await new Promise((resume) => setImmediate(resume));
        const rows = await store.readAll(seen.at(-1) ?? 0, 7);
        seen.push(...rows.map(({ position }) => position));
      }
      await Promise.all(writers);
      const rest = await store.readAll(seen.at(-1) ?? 0, 1000);
      const all = await store.readAll(0, 1000);
      expect([...seen, ...rest.map(({ position }) => position)]).toEqual(all.map(({ position }) => position));
      expect(entriesOf(all)).toHaveLength(400);
    });

    describe("snapshots", () => {
      const parts = (named: Readonly<Record<string, string>>) =>
        Object.entries(named).map(([name, data]) => ({ name, data }));

      it("are replaced part by part, and given back in the order of their names", async () => {
        await store.commit({ appends: [append(key(1), 0, "a", "b")] });
        await store.commit({ appends: [], rows: [snapshot(key(1), 1, { b: "2", a: "1", c: "3" })] });
        expect(await store.readSnapshot(key(1))).toEqual({
          number: 1,
          parts: parts({ a: "1", b: "2", c: "3" }),
        });
        await store.commit({
          appends: [append(key(1), 2, "c")],
          rows: [snapshot(key(1), 3, { d: "4", c: "new" }, ["a"])],
        });
        expect(await store.readSnapshot(key(1))).toEqual({
          number: 3,
          parts: parts({ a: "1", c: "new", d: "4" }),
        });
      });

      it("do not claim to keep a part that is not there", async () => {
        await store.commit({
          appends: [append(key(1), 0, "a")],
          rows: [snapshot(key(1), 1, { head: "1" })],
        });
        const refused = store.commit({ appends: [], rows: [snapshot(key(1), 1, { head: "2" }, ["body"])] });
        await expect(refused).rejects.toThrow(RowConflictError);
        expect(await store.readSnapshot(key(1))).toEqual({ number: 1, parts: parts({ head: "1" }) });
      });

      it("do not replace newer ones: parts that an old one would keep are not the same any more", async () => {
        await store.commit({
          appends: [append(key(1), 0, "a", "b")],
          rows: [snapshot(key(1), 2, { head: "at 2", tail: "at 2" })],
        });
        const late = store.commit({ appends: [], rows: [snapshot(key(1), 1, { head: "at 1" }, ["tail"])] });
        await expect(late).rejects.toThrow(RowConflictError);
        expect(await store.readSnapshot(key(1))).toEqual({
          number: 2,
          parts: parts({ head: "at 2", tail: "at 2" }),
        });
      });

      it("cannot be of a journal that does not exist or be ahead of it", async () => {
        await store.commit({ appends: [append(key(1), 0, "a")] });
        for (const row of [snapshot(key(2), 0, { a: "gone" }), snapshot(key(1), 2, { a: "ahead" })]) {
          await expect(store.commit({ appends: [], rows: [row] })).rejects.toThrow(RowConflictError);
        }
        expect(await store.readSnapshot(key(1))).toBeUndefined();
      });
    });

    describe("removing a task", () => {
      const ended = (number: number) => task(key(number), { status: "completed" });

      it("is refused while work of it is under way", async () => {
        const busy = { ...ended(1), openWork: true };
        await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(busy)] });
        await expect(store.commit({ appends: [], rows: [remove(key(1), 1)] })).rejects.toThrow(
          RowConflictError,
        );
        await store.commit({ appends: [append(key(1), 1, "b")], rows: [put(ended(1))] });
        await store.commit({ appends: [], rows: [remove(key(1), 2)] });
        expect(await store.tasks.byKey(key(1))).toBeUndefined();
      });

      it("is refused while it runs, and when its journal has moved on", async () => {
        await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(task(key(1)))] });
        await expect(store.commit({ appends: [], rows: [remove(key(1), 1)] })).rejects.toThrow(
          RowConflictError,
        );
        await store.commit({ appends: [append(key(1), 1, "b")], rows: [put(ended(1))] });
        await expect(store.commit({ appends: [], rows: [remove(key(1), 1)] })).rejects.toThrow(
          RowConflictError,
        );
        expect(entriesOf(await store.read(key(1)))).toEqual(["a", "b"]);
        expect(await store.tasks.byKey(key(1))).toEqual(ended(1));
      });

      it("removes its row, journal and snapshot, and no other's", async () => {
        for (const number of [1, 2]) {
          await store.commit({
            appends: [append(key(number), 0, "a")],
            rows: [put(ended(number)), snapshot(key(number), 1, { head: "state" })],
          });
        }
        await store.commit({ appends: [], rows: [remove(key(1), 1)] });
        expect(await store.tasks.byKey(key(1))).toBeUndefined();
        expect(await store.read(key(1))).toEqual([]);
        expect(await store.lastNumber(key(1))).toBe(0);
        expect(await store.readSnapshot(key(1))).toBeUndefined();
        expect((await store.readAll(0, 10)).map(({ journal }) => journal)).toEqual([key(2)]);
        expect(await store.readSnapshot(key(2))).toMatchObject({ number: 1, parts: [{ data: "state" }] });
        expect(await store.tasks.byKey(key(2))).toBeDefined();
      });

      it("makes its task id unused again", async () => {
        const taskId = "again";
        await store.commit({ appends: [append(key(1), 0, "a")], rows: [put({ ...ended(1), taskId })] });
        await store.commit({
          appends: [append(key(2), 0, "a")],
          rows: [remove(key(1), 1), put(task(key(2), { taskId }))],
        });
        expect((await store.tasks.find(ANN, taskId))?.key).toBe(key(2));
      });

      it("refuses later appends that know the old journal", async () => {
        await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(ended(1))] });
        const [, late] = await Promise.allSettled([
          store.commit({ appends: [], rows: [remove(key(1), 1)] }),
          store.commit({ appends: [append(key(1), 1, "b")] }),
        ]);
        expect(late).toMatchObject({ status: "rejected", reason: { code: "stale_append", actual: 0 } });
      });

      it("is no error when there is none", async () => {
        await expect(store.commit({ appends: [], rows: [remove(key(1), 0)] })).resolves.toBeDefined();
      });

      it("does not give its positions to others", async () => {
        await store.commit({ appends: [append(key(1), 0, "a")] });
        const newest = await store.commit({ appends: [append(key(2), 0, "a")], rows: [put(ended(2))] });
        await store.commit({ appends: [], rows: [remove(key(2), 1)] });
        const reopened = (await harness.reopen?.()) ?? store;
        expect(await reopened.position()).toBe(newest.position);
        expect(await reopened.commit({ appends: [] })).toEqual(newest);
        const next = await reopened.commit({ appends: [append(key(3), 0, "a")] });
        expect(next.position).toBeGreaterThan(newest.position);
      });
    });

    describe("closing", () => {
      it("waits for what was queued, and then refuses everything", async () => {
        const queued = [0, 1, 2].map((expected) =>
          store.commit({ appends: [append(key(1), expected, "a")], rows: [put(task(key(1)))] }),
        );
        await store.close();
        expect((await Promise.allSettled(queued)).map(({ status }) => status)).toEqual(
          queued.map(() => "fulfilled"),
        );
        const closed = { code: "store_closed" };
        await expect(store.commit({ appends: [] })).rejects.toMatchObject(closed);
        await expect(store.read(key(1))).rejects.toMatchObject(closed);
        await expect(store.readAll(0, 1)).rejects.toMatchObject(closed);
        await expect(store.lastNumber(key(1))).rejects.toMatchObject(closed);
        await expect(store.readSnapshot(key(1))).rejects.toMatchObject(closed);
        await expect(store.tasks.find(BOB, "x")).rejects.toMatchObject(closed);
        await expect(store.tasks.list({ limit: 1 })).rejects.toMatchObject(closed);
        await store.close();
        if (harness.reopen !== undefined) {
          const reopened = await harness.reopen();
          expect(await reopened.lastNumber(key(1))).toBe(3);
          expect(await reopened.tasks.byKey(key(1))).toBeDefined();
        }
      });
    });

    taskIndexContract(() => store);
  });

  modelContract(name, open);
}
