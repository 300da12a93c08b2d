import { describe, expect, it } from "vitest";
import {
  type InstanceId,
  RowConflictError,
  type Store,
  TASK_STATUSES,
  type TaskRow,
} from "../../engine/ports.js";
import { ANN, BOB, key, put, task } from "./fixtures.js";

/** The same id under another role is another instance. */
const ADMIN_ANN: InstanceId = { role: "admin", id: "ann" };
const INSTANCES = [ANN, BOB, ADMIN_ANN];

export function taskIndexContract(current: () => Store): void {
  const write = async (...rows: TaskRow[]) => {
    await current().commit({ appends: [], rows: rows.map(put) });
  };
  const keys = (rows: readonly TaskRow[]) => rows.map((row) => row.key);

  describe("task index", () => {
    it("changes status, title and time of a task that exists, and nothing else", async () => {
      const opened = task(key(1), { title: "first", createdAt: 1, updatedAt: 1 });
      await write(opened);
      await write({
        ...opened,
        status: "completed",
        title: "second",
        updatedAt: 5,
        owner: "eve",
        createdAt: 4,
      });
      expect(await current().tasks.byKey(key(1))).toEqual({
        ...opened,
        status: "completed",
        title: "second",
        updatedAt: 5,
      });
      const { title: _, ...untitled } = opened;
      await write({ ...untitled, updatedAt: 6 });
      expect(await current().tasks.byKey(key(1))).toEqual({ ...untitled, title: "second", updatedAt: 6 });
    });

    it("keeps tasks of the same id apart by role and id of the instance", async () => {
      const taskId = "shared";
      await write(...INSTANCES.map((instance, index) => task(key(index), { instance, taskId })));
      for (const [index, instance] of INSTANCES.entries()) {
        expect((await current().tasks.find(instance, taskId))?.key).toBe(key(index));
        expect(keys((await current().tasks.list({ instance, limit: 10 })).tasks)).toEqual([key(index)]);
        expect(keys((await current().tasks.list({ instance, status: "running", limit: 10 })).tasks)).toEqual([
          key(index),
        ]);
        expect((await current().tasks.counts(instance)).running).toBe(1);
      }
      expect(await current().tasks.find({ role: "user", id: "eve" }, taskId)).toBeUndefined();
      expect((await current().tasks.list({ instance: { role: "user", id: "an" }, limit: 10 })).tasks).toEqual(
        [],
      );
    });

    it("refuses a task id that is taken, and a key that belongs to another task", async () => {
      await write(task(key(1), { taskId: "mine" }));
      const intruders = [
        task(key(2), { taskId: "mine", status: "failed" }),
        task(key(1), { taskId: "mine", instance: BOB, status: "failed" }),
        task(key(1), { taskId: "renamed", status: "failed" }),
      ];
      for (const intruder of intruders) {
        await expect(write(intruder)).rejects.toThrow(RowConflictError);
        await expect(write(intruder)).rejects.toMatchObject({ code: "row_conflict", kind: "task.put" });
      }
      expect((await current().tasks.list({ limit: 10 })).tasks).toEqual([task(key(1), { taskId: "mine" })]);
    });

    it("lists the newest first, in pages that stay put while tasks are opened and change", async () => {
      await write(...[1, 2, 3, 4, 5, 6, 7].map((number) => task(key(number))));
      await write(task(key(20), { instance: BOB }));
      const first = await current().tasks.list({ instance: ANN, limit: 3 });
      expect(keys(first.tasks)).toEqual([key(7), key(6), key(5)]);
      await write(task(key(8)), task(key(6), { status: "completed" }), task(key(3), { status: "paused" }));
      const second = await current().tasks.list({ instance: ANN, limit: 3, ...cursorOf(first) });
      expect(keys(second.tasks)).toEqual([key(4), key(3), key(2)]);
      const third = await current().tasks.list({ instance: ANN, limit: 3, ...cursorOf(second) });
      expect(keys(third.tasks)).toEqual([key(1)]);
      expect(third.nextCursor).toBeUndefined();
    });

    it("gives no cursor when a page ends exactly with the last task", async () => {
      await write(task(key(1)), task(key(2)));
      expect((await current().tasks.list({ instance: ANN, limit: 2 })).nextCursor).toBeUndefined();
      expect((await current().tasks.list({ limit: 2 })).nextCursor).toBeUndefined();
      expect((await current().tasks.list({ status: "running", limit: 1 })).nextCursor).toBeDefined();
    });

    it("does not let a cursor carry anybody into another instance", async () => {
      await write(
        task(key(1)),
        task(key(2), { instance: BOB }),
        task(key(3)),
        task(key(4), { instance: BOB }),
      );
      const page = await current().tasks.list({ instance: BOB, limit: 1 });
      expect(
        keys((await current().tasks.list({ instance: ANN, limit: 9, ...cursorOf(page) })).tasks),
      ).toEqual([key(3), key(1)]);
    });

    it("lists by status, within an instance and without one", async () => {
      await write(
        task(key(1), { status: "completed" }),
        task(key(2), { status: "completed", instance: BOB }),
        task(key(3)),
        task(key(4), { status: "completed" }),
      );
      const { tasks } = current();
      const status = "completed";
      expect(keys((await tasks.list({ instance: ANN, status, limit: 9 })).tasks)).toEqual([key(4), key(1)]);
      expect(keys((await tasks.list({ status, limit: 9 })).tasks)).toEqual([key(4), key(2), key(1)]);
      expect(keys((await tasks.list({ limit: 9 })).tasks)).toEqual([key(4), key(3), key(2), key(1)]);
    });

    it("walks through the tasks of one status in the order of their keys", async () => {
      await write(
        task(key(3)),
        task(key(1)),
        task(key(2), { status: "paused" }),
        task(key(4), { instance: BOB }),
      );
      const { tasks } = current();
      expect(keys(await tasks.withStatus("running", undefined, 2))).toEqual([key(1), key(3)]);
      expect(keys(await tasks.withStatus("running", key(3), 2))).toEqual([key(4)]);
      expect(keys(await tasks.withStatus("failed", undefined, 2))).toEqual([]);
    });

    it("finds the tasks that do not run and still have work, until that is done", async () => {
      await write(
        task(key(1), { status: "paused", held: true }),
        task(key(2), { status: "completed", openWork: true }),
        task(key(3), { status: "paused" }),
        task(key(4), { status: "paused", held: true, instance: BOB }),
        task(key(5), { status: "failed", openWork: true }),
      );
      const { tasks } = current();
      expect(keys(await tasks.withWork("held", undefined, 9))).toEqual([key(1), key(4)]);
      expect(keys(await tasks.withWork("held", key(1), 9))).toEqual([key(4)]);
      expect(await tasks.withWork("openWork", undefined, 1)).toEqual([
        task(key(2), { status: "completed", openWork: true }),
      ]);
      await write(task(key(2), { status: "completed" }), task(key(1), { status: "running" }));
      expect(keys(await tasks.withWork("held", undefined, 9))).toEqual([key(4)]);
      expect(keys(await tasks.withWork("openWork", undefined, 9))).toEqual([key(5)]);
    });

    it("lists in the order of creation, for one caller or for all", async () => {
      await write(
        task(key(1)),
        task(key(2), { status: "completed" }),
        task(key(3), { instance: BOB }),
        task(key(4), { status: "failed" }),
      );
      const { tasks } = current();
      const instance = task(key(1)).instance;
      expect(keys(await tasks.inOrder({ limit: 3 }))).toEqual([key(1), key(2), key(3)]);
      expect(keys(await tasks.inOrder({ after: key(3), limit: 3 }))).toEqual([key(4)]);
      expect(keys(await tasks.inOrder({ instance, limit: 2 }))).toEqual([key(1), key(2)]);
      expect(keys(await tasks.inOrder({ instance, after: key(2), limit: 2 }))).toEqual([key(4)]);
    });

    it("offers for removal what is too old or beyond the newest, and never a task that has not ended", async () => {
      await write(
        task(key(1), { status: "completed", updatedAt: 10 }),
        task(key(2), { status: "running", updatedAt: 1 }),
        task(key(3), { status: "failed", updatedAt: 30 }),
        task(key(4), { status: "cancelled", updatedAt: 20, instance: BOB }),
        task(key(5), { status: "paused", updatedAt: 1 }),
        task(key(6), { status: "completed", updatedAt: 30 }),
      );
      const finished = async (options: { updatedBefore?: number; beyondNewest?: number }, limit = 9) =>
        keys(await current().tasks.finished({ ...options, limit }));
      expect(await finished({ updatedBefore: 20 })).toEqual([key(1)]);
      expect(await finished({ updatedBefore: 21 })).toEqual([key(1), key(4)]);
      expect(await finished({ beyondNewest: 1 })).toEqual([key(1), key(4), key(3)]);
      expect(await finished({ beyondNewest: 2 })).toEqual([key(1), key(4)]);
      expect(await finished({ beyondNewest: 4 })).toEqual([]);
      expect(await finished({ beyondNewest: 0 })).toEqual([key(1), key(4), key(3), key(6)]);
      expect(await finished({ beyondNewest: 3, updatedBefore: 25 })).toEqual([key(1), key(4)]);
      expect(await finished({ beyondNewest: 2, updatedBefore: 5 })).toEqual([key(1), key(4)]);
      expect(await finished({ beyondNewest: 0 }, 2)).toEqual([key(1), key(4)]);
      expect(await finished({})).toEqual([]);
      const [, second] = await current().tasks.finished({ beyondNewest: 0, limit: 2 });
      const rest = await current().tasks.finished({
        beyondNewest: 0,
        limit: 9,
        ...(second !== undefined && { after: second }),
      });
      expect(keys(rest)).toEqual([key(3), key(6)]);
    });

    it("counts by status, of one instance and of all", async () => {
      await write(...TASK_STATUSES.map((status, index) => task(key(index), { status })));
      await write(task(key(10), { instance: BOB }));
      const each = { running: 1, paused: 1, completed: 1, failed: 1, cancelled: 1 };
      expect(await current().tasks.counts(ANN)).toEqual(each);
      expect(await current().tasks.counts()).toEqual({ ...each, running: 2 });
      expect(await current().tasks.counts({ role: "swarm", id: "x" })).toEqual({
        running: 0,
        paused: 0,
        completed: 0,
        failed: 0,
        cancelled: 0,
      });
    });
  });
}

function cursorOf({ nextCursor }: { nextCursor?: string }): { cursor?: string } {
  expect(nextCursor).toBeDefined();
  return nextCursor === undefined ? {} : { cursor: nextCursor };
}
