import assert from "node:assert/strict";
import { type InstanceId, type Store, TASK_STATUSES, type TaskRow } from "../../engine/index.js";
import { RowConflictError } from "../../journal/index.js";
import { type Checks, type ContractCase, toCases } from "./cases.js";
import { ANN, BOB, key, put, task } from "./fixtures.js";
import type { OpenStore, StoreHarness } from "./store.js";

/** The same id under another role is another instance. */
const ADMIN_ANN: InstanceId = { role: "admin", id: "ann" };
const INSTANCES = [ANN, BOB, ADMIN_ANN];

/**
 * Everything that {@link TaskReads} promises, as cases for any test runner.
 * @param open Opens an empty store for one case.
 * @example
 * for (const { name, run } of taskReadsContract(openMyStore)) it(name, run);
 */
export function taskReadsContract(open: OpenStore): readonly ContractCase[] {
  return toCases(TASK_READS, open, (harness) => harness.destroy());
}

async function write(store: Store, ...rows: readonly TaskRow[]): Promise<void> {
  await store.commit({ appends: [], rows: rows.map(put) });
}

const keys = (rows: readonly TaskRow[]): string[] => rows.map((row) => row.key);

const TASK_READS: Checks<StoreHarness> = {
  async "task.put: changes only status, title, time and flags of an existing task"({ store }) {
    const opened = task(key(1), { title: "first", createdAt: 1, updatedAt: 1 });
    await write(store, opened);
    await write(store, {
      ...opened,
      status: "completed",
      title: "second",
      updatedAt: 5,
      owner: "eve",
      createdAt: 4,
    });
    assert.deepEqual(await store.tasks.byKey(key(1)), {
      ...opened,
      status: "completed",
      title: "second",
      updatedAt: 5,
    });
    const { title: _, ...untitled } = opened;
    await write(store, { ...untitled, updatedAt: 6 });
    assert.deepEqual(await store.tasks.byKey(key(1)), { ...untitled, title: "second", updatedAt: 6 });
  },

  async "tasks with the same id are separate by role and id of the instance"({ store }) {
    const taskId = "shared";
    await write(store, ...INSTANCES.map((instance, index) => task(key(index), { instance, taskId })));
    for (const [index, instance] of INSTANCES.entries()) {
      assert.equal((await store.tasks.find(instance, taskId))?.key, key(index));
      assert.deepEqual(keys((await store.tasks.list({ instance, limit: 10 })).tasks), [key(index)]);
      assert.deepEqual(keys((await store.tasks.list({ instance, status: "running", limit: 10 })).tasks), [
        key(index),
      ]);
      assert.equal((await store.tasks.counts(instance)).running, 1);
    }
    assert.equal(await store.tasks.find({ role: "user", id: "eve" }, taskId), undefined);
    assert.deepEqual((await store.tasks.list({ instance: { role: "user", id: "an" }, limit: 10 })).tasks, []);
  },

  async "task.put: rejects a task id in use and a key that belongs to another task"({ store }) {
    await write(store, task(key(1), { taskId: "mine" }));
    const intruders = [
      task(key(2), { taskId: "mine", status: "failed" }),
      task(key(1), { taskId: "mine", instance: BOB, status: "failed" }),
      task(key(1), { taskId: "renamed", status: "failed" }),
    ];
    for (const intruder of intruders) {
      await assert.rejects(write(store, intruder), RowConflictError);
      await assert.rejects(write(store, intruder), { code: "row_conflict", kind: "task.put" });
    }
    assert.deepEqual((await store.tasks.list({ limit: 10 })).tasks, [task(key(1), { taskId: "mine" })]);
  },

  async "list: newest first, in pages that stay stable while tasks are opened and change"({ store }) {
    await write(store, ...[1, 2, 3, 4, 5, 6, 7].map((number) => task(key(number))));
    await write(store, task(key(20), { instance: BOB }));
    const first = await store.tasks.list({ instance: ANN, limit: 3 });
    assert.deepEqual(keys(first.tasks), [key(7), key(6), key(5)]);
    await write(
      store,
      task(key(8)),
      task(key(6), { status: "completed" }),
      task(key(3), { status: "paused" }),
    );
    const second = await store.tasks.list({ instance: ANN, limit: 3, ...cursorOf(first) });
    assert.deepEqual(keys(second.tasks), [key(4), key(3), key(2)]);
    const third = await store.tasks.list({ instance: ANN, limit: 3, ...cursorOf(second) });
    assert.deepEqual(keys(third.tasks), [key(1)]);
    assert.equal(third.nextCursor, undefined);
  },

  async "list: no cursor when a page ends with the last task"({ store }) {
    await write(store, task(key(1)), task(key(2)));
    assert.equal((await store.tasks.list({ instance: ANN, limit: 2 })).nextCursor, undefined);
    assert.equal((await store.tasks.list({ limit: 2 })).nextCursor, undefined);
    assert.notEqual((await store.tasks.list({ status: "running", limit: 1 })).nextCursor, undefined);
  },

  async "list: a cursor of one instance does not reach into another"({ store }) {
    await write(
      store,
      task(key(1)),
      task(key(2), { instance: BOB }),
      task(key(3)),
      task(key(4), { instance: BOB }),
    );
    const page = await store.tasks.list({ instance: BOB, limit: 1 });
    assert.deepEqual(keys((await store.tasks.list({ instance: ANN, limit: 9, ...cursorOf(page) })).tasks), [
      key(3),
      key(1),
    ]);
  },

  async "list: by status, within an instance and over all"({ store }) {
    await write(
      store,
      task(key(1), { status: "completed" }),
      task(key(2), { status: "completed", instance: BOB }),
      task(key(3)),
      task(key(4), { status: "completed" }),
    );
    const { tasks } = store;
    const status = "completed";
    assert.deepEqual(keys((await tasks.list({ instance: ANN, status, limit: 9 })).tasks), [key(4), key(1)]);
    assert.deepEqual(keys((await tasks.list({ status, limit: 9 })).tasks), [key(4), key(2), key(1)]);
    assert.deepEqual(keys((await tasks.list({ limit: 9 })).tasks), [key(4), key(3), key(2), key(1)]);
  },

  async "withStatus: tasks of one status in the order of their keys"({ store }) {
    await write(
      store,
      task(key(3)),
      task(key(1)),
      task(key(2), { status: "paused" }),
      task(key(4), { instance: BOB }),
    );
    const { tasks } = store;
    assert.deepEqual(keys(await tasks.withStatus("running", undefined, 2)), [key(1), key(3)]);
    assert.deepEqual(keys(await tasks.withStatus("running", key(3), 2)), [key(4)]);
    assert.deepEqual(keys(await tasks.withStatus("failed", undefined, 2)), []);
  },

  async "withWork: tasks that do not run and still have work, until it is done"({ store }) {
    await write(
      store,
      task(key(1), { status: "paused", held: true }),
      task(key(2), { status: "completed", openWork: true }),
      task(key(3), { status: "paused" }),
      task(key(4), { status: "paused", held: true, instance: BOB }),
      task(key(5), { status: "failed", openWork: true }),
    );
    const { tasks } = store;
    assert.deepEqual(keys(await tasks.withWork("held", undefined, 9)), [key(1), key(4)]);
    assert.deepEqual(keys(await tasks.withWork("held", key(1), 9)), [key(4)]);
    assert.deepEqual(await tasks.withWork("openWork", undefined, 1), [
      task(key(2), { status: "completed", openWork: true }),
    ]);
    await write(store, task(key(2), { status: "completed" }), task(key(1), { status: "running" }));
    assert.deepEqual(keys(await tasks.withWork("held", undefined, 9)), [key(4)]);
    assert.deepEqual(keys(await tasks.withWork("openWork", undefined, 9)), [key(5)]);
  },

  async "inOrder: in the order of creation, for one instance or for all"({ store }) {
    await write(
      store,
      task(key(1)),
      task(key(2), { status: "completed" }),
      task(key(3), { instance: BOB }),
      task(key(4), { status: "failed" }),
    );
    const { tasks } = store;
    const instance = task(key(1)).instance;
    assert.deepEqual(keys(await tasks.inOrder({ limit: 3 })), [key(1), key(2), key(3)]);
    assert.deepEqual(keys(await tasks.inOrder({ after: key(3), limit: 3 })), [key(4)]);
    assert.deepEqual(keys(await tasks.inOrder({ instance, limit: 2 })), [key(1), key(2)]);
    assert.deepEqual(keys(await tasks.inOrder({ instance, after: key(2), limit: 2 })), [key(4)]);
  },

  async "finished: tasks too old or beyond the newest, and never one that has not ended"({ store }) {
    await write(
      store,
      task(key(1), { status: "completed", updatedAt: 10 }),
      task(key(2), { status: "running", updatedAt: 1 }),
      task(key(3), { status: "failed", updatedAt: 30 }),
      task(key(4), { status: "cancelled", updatedAt: 20, instance: BOB }),
      task(key(5), { status: "paused", updatedAt: 1 }),
      task(key(6), { status: "completed", updatedAt: 30 }),
    );
    const finished = async (options: { updatedBefore?: number; beyondNewest?: number }, limit = 9) =>
      keys(await store.tasks.finished({ ...options, limit }));
    assert.deepEqual(await finished({ updatedBefore: 20 }), [key(1)]);
    assert.deepEqual(await finished({ updatedBefore: 21 }), [key(1), key(4)]);
    assert.deepEqual(await finished({ beyondNewest: 1 }), [key(1), key(4), key(3)]);
    assert.deepEqual(await finished({ beyondNewest: 2 }), [key(1), key(4)]);
    assert.deepEqual(await finished({ beyondNewest: 4 }), []);
    assert.deepEqual(await finished({ beyondNewest: 0 }), [key(1), key(4), key(3), key(6)]);
    assert.deepEqual(await finished({ beyondNewest: 3, updatedBefore: 25 }), [key(1), key(4)]);
    assert.deepEqual(await finished({ beyondNewest: 2, updatedBefore: 5 }), [key(1), key(4)]);
    assert.deepEqual(await finished({ beyondNewest: 0 }, 2), [key(1), key(4)]);
    assert.deepEqual(await finished({}), []);
    const [, second] = await store.tasks.finished({ beyondNewest: 0, limit: 2 });
    const rest = await store.tasks.finished({
      beyondNewest: 0,
      limit: 9,
      ...(second !== undefined && { after: second }),
    });
    assert.deepEqual(keys(rest), [key(3), key(6)]);
  },

  async "counts: by status, of one instance and of all"({ store }) {
    await write(store, ...TASK_STATUSES.map((status, index) => task(key(index), { status })));
    await write(store, task(key(10), { instance: BOB }));
    const each = { running: 1, paused: 1, completed: 1, failed: 1, cancelled: 1 };
    assert.deepEqual(await store.tasks.counts(ANN), each);
    assert.deepEqual(await store.tasks.counts(), { ...each, running: 2 });
    assert.deepEqual(await store.tasks.counts({ role: "swarm", id: "x" }), {
      running: 0,
      paused: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
    });
  },
};

function cursorOf({ nextCursor }: { nextCursor?: string }): { cursor?: string } {
  assert.notEqual(nextCursor, undefined);
  return nextCursor === undefined ? {} : { cursor: nextCursor };
}
