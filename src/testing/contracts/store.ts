import assert from "node:assert/strict";
import type { Store } from "../../engine/index.js";
import { type Committed, RowConflictError, StaleAppendError } from "../../journal/index.js";
import { type Checks, type ContractCase, toCases } from "./cases.js";
import { ANN, append, BOB, entriesOf, key, put, remove, snapshot, task } from "./fixtures.js";

/** An empty store for one case. */
export interface StoreHarness {
  readonly store: Store;
  /** Closes the store and opens it again on the same data. Absent for a store in memory. */
  readonly reopen?: () => Promise<Store>;
  /** Closes the store and removes its data. */
  destroy(): Promise<void>;
}

/** Opens a store for a contract; called once per case. */
export type OpenStore = () => Promise<StoreHarness>;

/**
 * Everything that a {@link Store} promises, as cases for any test runner. {@link taskReadsContract} has the promises of
 * its property `tasks`.
 * @param open Opens an empty store for one case.
 * @example
 * for (const { name, run } of storeContract(openMyStore)) it(name, run);
 */
export function storeContract(open: OpenStore): readonly ContractCase[] {
  const checks = { ...COMMIT, ...READ, ...SNAPSHOTS, ...REMOVAL, ...CLOSING };
  return toCases(checks, open, (harness) => harness.destroy());
}

const COMMIT: Checks<StoreHarness> = {
  async "commit: appends and rows are readable once it has resolved"({ store }) {
    const { position } = await store.commit({
      appends: [append(key(1), 0, "opened", "queued")],
      rows: [put(task(key(1)))],
    });
    assert.deepEqual(await store.read(key(1)), [
      { journal: key(1), first: 1, last: 2, position, data: '["opened","queued"]' },
    ]);
    assert.deepEqual(await store.tasks.byKey(key(1)), task(key(1)));
  },

  async "commit: text is stored unchanged, whatever characters it has"({ store }) {
    const text = "null \u0000, quote \" and ', emoji 😀, lone surrogate as an escape \\ud800, \u2028";
    await store.commit({
      appends: [append(key(1), 0, text)],
      rows: [put(task(key(1), { title: text, taskId: "ünïcode; DROP TABLE tasks" }))],
    });
    const [row] = await store.read(key(1));
    assert.deepEqual(JSON.parse(row?.data ?? ""), [text]);
    assert.equal((await store.tasks.find(ANN, "ünïcode; DROP TABLE tasks"))?.title, text);
  },

  async "commit: rejects an append whose expected number is too low, too high or inside a row"({ store }) {
    await store.commit({ appends: [append(key(1), 0, "a", "b", "c")] });
    for (const expected of [0, 1, 2, 4]) {
      const refused = store.commit({ appends: [append(key(1), expected, "x")] });
      await assert.rejects(refused, StaleAppendError);
      await assert.rejects(refused, { code: "stale_append", expected, actual: 3 });
    }
    assert.equal(await store.lastNumber(key(1)), 3);
    assert.equal((await store.readAll(0, 10)).length, 1);
  },

  async "commit: rejects a new journal that does not begin at its first number"({ store }) {
    await assert.rejects(store.commit({ appends: [append(key(1), 1, "x")] }), {
      actual: 0,
    });
    assert.deepEqual(await store.read(key(1)), []);
  },

  async "commit: writes nothing of a rejected batch"({ store }) {
    await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(task(key(1)))] });
    const stale = store.commit({
      appends: [append(key(2), 0, "b"), append(key(1), 0, "stale")],
      rows: [put(task(key(2)))],
    });
    await assert.rejects(stale, StaleAppendError);
    const conflicting = store.commit({
      appends: [append(key(3), 0, "c"), append(key(1), 1, "c")],
      rows: [put(task(key(3))), put(task(key(4), { taskId: task(key(1)).taskId }))],
    });
    await assert.rejects(conflicting, RowConflictError);
    assert.deepEqual(
      (await store.readAll(0, 10)).map(({ data }) => data),
      ['["a"]'],
    );
    assert.deepEqual(
      (await store.tasks.list({ limit: 10 })).tasks.map((row) => row.key),
      [key(1)],
    );
    assert.equal(await store.lastNumber(key(1)), 1);
    assert.equal(await store.lastNumber(key(2)), 0);
  },

  async "commit: a rejected batch does not affect the others"({ store }) {
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
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"],
    );
    assert.deepEqual(entriesOf(await store.read(key(1))), ["one", "two", "three", "four"]);
  },

  async "commit: batches take effect in the order of the calls"({ store }) {
    const commits: Promise<Committed>[] = [];
    for (let number = 0; number < 2000; number += 1) {
      commits.push(store.commit({ appends: [append(key(number % 7), Math.floor(number / 7), `${number}`)] }));
    }
    const committed = await Promise.all(commits);
    const rows = await store.readAll(0, 2000);
    const at = new Map(rows.map((row) => [row.position, entriesOf([row])]));
    for (const [number, { position }] of committed.entries()) {
      assert.ok(at.get(position)?.includes(`${number}`));
    }
    for (let journal = 0; journal < 7; journal += 1) {
      const own = entriesOf(rows.filter((row) => row.journal === key(journal))).map(Number);
      assert.deepEqual(
        own,
        committed.flatMap((_, number) => (number % 7 === journal ? [number] : [])),
      );
    }
  },

  async "commit: one batch can append to several journals, and several times to one"({ store }) {
    await store.commit({
      appends: [append(key(1), 0, "a"), append(key(2), 0, "b"), append(key(1), 1, "c", "d")],
    });
    assert.deepEqual(entriesOf(await store.read(key(1))), ["a", "c", "d"]);
    assert.equal(await store.lastNumber(key(1)), 3);
    assert.equal(await store.lastNumber(key(2)), 1);
  },

  async "commit: a batch without appends resolves with the newest position"({ store }) {
    assert.deepEqual(await store.commit({ appends: [] }), { position: 0 });
    const { position } = await store.commit({ appends: [append(key(1), 0, "a")] });
    assert.deepEqual(await store.commit({ appends: [], rows: [put(task(key(1)))] }), { position });
  },

  async "commit: rejects an append without entries"({ store }) {
    await assert.rejects(store.commit({ appends: [append(key(1), 0)] }), {
      code: "invalid_batch",
    });
  },
};

async function seed(store: Store): Promise<void> {
  await store.commit({ appends: [append(key(1), 0, "1", "2", "3")] });
  await store.commit({ appends: [append(key(2), 0, "other")] });
  await store.commit({ appends: [append(key(1), 3, "4")] });
  await store.commit({ appends: [append(key(1), 4, "5", "6")] });
}

const numbers = (rows: readonly { first: number; last: number }[]) =>
  rows.map(({ first, last }) => [first, last]);

const READ: Checks<StoreHarness> = {
  async "read: begins with the row that contains the next number"({ store }) {
    await seed(store);
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
      assert.deepEqual(numbers(await store.read(key(1), { after })), all.slice(from), `after ${after}`);
    }
  },

  async "read: returns a journal in pages"({ store }) {
    await seed(store);
    assert.deepEqual(numbers(await store.read(key(1), { limit: 2 })), [
      [1, 3],
      [4, 4],
    ]);
    assert.deepEqual(numbers(await store.read(key(1), { after: 4, limit: 2 })), [[5, 6]]);
    // At least one row, and no further one once the size is reached.
    assert.deepEqual(numbers(await store.read(key(1), { characters: 1 })), [[1, 3]]);
    assert.equal((await store.read(key(1), { characters: 1_000_000 })).length, 3);
    assert.equal((await store.readAll(0, 10, 1)).length, 1);
  },

  async "read: a journal that does not exist has no rows, number or snapshot"({ store }) {
    await seed(store);
    assert.deepEqual(await store.read(key(3)), []);
    assert.equal(await store.lastNumber(key(3)), 0);
    assert.equal(await store.readSnapshot(key(3)), undefined);
  },

  async "readMany: returns journals in the requested order, each from its snapshot on"({ store }) {
    await seed(store);
    await store.commit({ appends: [], rows: [snapshot(key(1), 4, { head: "state" })] });
    const many = await store.readMany([key(2), key(1), key(3)]);
    assert.deepEqual(many, [
      { journal: key(2), snapshot: undefined, rows: await store.read(key(2)) },
      {
        journal: key(1),
        snapshot: { number: 4, parts: [{ name: "head", data: "state" }] },
        rows: await store.read(key(1), { after: 4 }),
      },
      { journal: key(3), snapshot: undefined, rows: [] },
    ]);
  },

  async "position: every row up to it can be read"({ store }) {
    await seed(store);
    const all = await store.readAll(0, 10);
    assert.equal(await store.position(), all.at(-1)?.position);
  },

  async "readAll: returns all journals in commit order, in pages"({ store }) {
    await seed(store);
    const all = await store.readAll(0, 10);
    assert.deepEqual(
      all.map(({ journal, first }) => [journal, first]),
      [
        [key(1), 1],
        [key(2), 1],
        [key(1), 4],
        [key(1), 5],
      ],
    );
    const second = all[1]?.position ?? 0;
    assert.deepEqual(await store.readAll(second, 1), all.slice(2, 3));
    assert.deepEqual(await store.readAll(all[3]?.position ?? 0, 10), []);
  },

  async "readAll: never inserts a row before rows that were returned"({ store }) {
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
    assert.deepEqual(
      [...seen, ...rest.map(({ position }) => position)],
      all.map(({ position }) => position),
    );
    assert.equal(entriesOf(all).length, 400);
  },
};

const parts = (named: Readonly<Record<string, string>>) =>
  Object.entries(named).map(([name, data]) => ({ name, data }));

const SNAPSHOTS: Checks<StoreHarness> = {
  async "snapshots: parts are replaced one by one and returned in the order of their names"({ store }) {
    await store.commit({ appends: [append(key(1), 0, "a", "b")] });
    await store.commit({ appends: [], rows: [snapshot(key(1), 1, { b: "2", a: "1", c: "3" })] });
    assert.deepEqual(await store.readSnapshot(key(1)), {
      number: 1,
      parts: parts({ a: "1", b: "2", c: "3" }),
    });
    await store.commit({
      appends: [append(key(1), 2, "c")],
      rows: [snapshot(key(1), 3, { d: "4", c: "new" }, ["a"])],
    });
    assert.deepEqual(await store.readSnapshot(key(1)), {
      number: 3,
      parts: parts({ a: "1", c: "new", d: "4" }),
    });
  },

  async "snapshots: rejects keeping a part that does not exist"({ store }) {
    await store.commit({
      appends: [append(key(1), 0, "a")],
      rows: [snapshot(key(1), 1, { head: "1" })],
    });
    const refused = store.commit({ appends: [], rows: [snapshot(key(1), 1, { head: "2" }, ["body"])] });
    await assert.rejects(refused, RowConflictError);
    assert.deepEqual(await store.readSnapshot(key(1)), { number: 1, parts: parts({ head: "1" }) });
  },

  async "snapshots: rejects a snapshot older than the stored one, whose kept parts may have changed"({
    store,
  }) {
    await store.commit({
      appends: [append(key(1), 0, "a", "b")],
      rows: [snapshot(key(1), 2, { head: "at 2", tail: "at 2" })],
    });
    const late = store.commit({ appends: [], rows: [snapshot(key(1), 1, { head: "at 1" }, ["tail"])] });
    await assert.rejects(late, RowConflictError);
    assert.deepEqual(await store.readSnapshot(key(1)), {
      number: 2,
      parts: parts({ head: "at 2", tail: "at 2" }),
    });
  },

  async "snapshots: rejects one of a missing journal and one ahead of its journal"({ store }) {
    await store.commit({ appends: [append(key(1), 0, "a")] });
    for (const row of [snapshot(key(2), 0, { a: "gone" }), snapshot(key(1), 2, { a: "ahead" })]) {
      await assert.rejects(store.commit({ appends: [], rows: [row] }), RowConflictError);
    }
    assert.equal(await store.readSnapshot(key(1)), undefined);
  },
};

const ended = (number: number) => task(key(number), { status: "completed" });

const REMOVAL: Checks<StoreHarness> = {
  async "task removal: rejected while the task has open work"({ store }) {
    const busy = { ...ended(1), openWork: true };
    await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(busy)] });
    await assert.rejects(store.commit({ appends: [], rows: [remove(key(1), 1)] }), RowConflictError);
    await store.commit({ appends: [append(key(1), 1, "b")], rows: [put(ended(1))] });
    await store.commit({ appends: [], rows: [remove(key(1), 2)] });
    assert.equal(await store.tasks.byKey(key(1)), undefined);
  },

  async "task removal: rejected while the task runs and when its journal is past the expected number"({
    store,
  }) {
    await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(task(key(1)))] });
    await assert.rejects(store.commit({ appends: [], rows: [remove(key(1), 1)] }), RowConflictError);
    await store.commit({ appends: [append(key(1), 1, "b")], rows: [put(ended(1))] });
    await assert.rejects(store.commit({ appends: [], rows: [remove(key(1), 1)] }), RowConflictError);
    assert.deepEqual(entriesOf(await store.read(key(1))), ["a", "b"]);
    assert.deepEqual(await store.tasks.byKey(key(1)), ended(1));
  },

  async "task removal: removes its row, journal and snapshot, and leaves other tasks alone"({ store }) {
    for (const number of [1, 2]) {
      await store.commit({
        appends: [append(key(number), 0, "a")],
        rows: [put(ended(number)), snapshot(key(number), 1, { head: "state" })],
      });
    }
    await store.commit({ appends: [], rows: [remove(key(1), 1)] });
    assert.equal(await store.tasks.byKey(key(1)), undefined);
    assert.deepEqual(await store.read(key(1)), []);
    assert.equal(await store.lastNumber(key(1)), 0);
    assert.equal(await store.readSnapshot(key(1)), undefined);
    assert.deepEqual(
      (await store.readAll(0, 10)).map(({ journal }) => journal),
      [key(2)],
    );
    assert.deepEqual(await store.readSnapshot(key(2)), {
      number: 1,
      parts: [{ name: "head", data: "state" }],
    });
    assert.notEqual(await store.tasks.byKey(key(2)), undefined);
  },

  async "task removal: frees the task id"({ store }) {
    const taskId = "again";
    await store.commit({ appends: [append(key(1), 0, "a")], rows: [put({ ...ended(1), taskId })] });
    await store.commit({
      appends: [append(key(2), 0, "a")],
      rows: [remove(key(1), 1), put(task(key(2), { taskId }))],
    });
    assert.equal((await store.tasks.find(ANN, taskId))?.key, key(2));
  },

  async "task removal: rejects later appends to the old journal"({ store }) {
    await store.commit({ appends: [append(key(1), 0, "a")], rows: [put(ended(1))] });
    const [, late] = await Promise.allSettled([
      store.commit({ appends: [], rows: [remove(key(1), 1)] }),
      store.commit({ appends: [append(key(1), 1, "b")] }),
    ]);
    assert.equal(late.status, "rejected");
    assert.deepEqual([late.reason.code, late.reason.actual], ["stale_append", 0]);
  },

  async "task removal: succeeds for a task that does not exist"({ store }) {
    assert.notEqual(await store.commit({ appends: [], rows: [remove(key(1), 0)] }), undefined);
  },

  async "task removal: its positions are never reused"({ store, reopen }) {
    await store.commit({ appends: [append(key(1), 0, "a")] });
    const newest = await store.commit({ appends: [append(key(2), 0, "a")], rows: [put(ended(2))] });
    await store.commit({ appends: [], rows: [remove(key(2), 1)] });
    const reopened = (await reopen?.()) ?? store;
    assert.equal(await reopened.position(), newest.position);
    assert.deepEqual(await reopened.commit({ appends: [] }), newest);
    const next = await reopened.commit({ appends: [append(key(3), 0, "a")] });
    assert.ok(next.position > newest.position);
  },
};

const CLOSING: Checks<StoreHarness> = {
  async "close: waits for queued batches, then rejects every call"({ store, reopen }) {
    const queued = [0, 1, 2].map((expected) =>
      store.commit({ appends: [append(key(1), expected, "a")], rows: [put(task(key(1)))] }),
    );
    await store.close();
    assert.deepEqual(
      (await Promise.allSettled(queued)).map(({ status }) => status),
      queued.map(() => "fulfilled"),
    );
    const closed = { code: "store_closed" };
    await assert.rejects(store.commit({ appends: [] }), closed);
    await assert.rejects(store.read(key(1)), closed);
    await assert.rejects(store.readAll(0, 1), closed);
    await assert.rejects(store.lastNumber(key(1)), closed);
    await assert.rejects(store.readSnapshot(key(1)), closed);
    await assert.rejects(store.tasks.find(BOB, "x"), closed);
    await assert.rejects(store.tasks.list({ limit: 1 }), closed);
    await store.close();
    if (reopen !== undefined) {
      const reopened = await reopen();
      assert.equal(await reopened.lastNumber(key(1)), 3);
      assert.notEqual(await reopened.tasks.byKey(key(1)), undefined);
    }
  },
};
