import { describe, expect, it } from "vitest";
import type { Carrier } from "../../src/engine/carrier.js";
import type { Store } from "../../src/engine/ports.js";
import { openSqliteStore } from "../../src/store/index.js";
import { replacing } from "../kit/replacing.js";
import { folder, openRoom, storedEntries } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { loopTurns, turnsDuring, until } from "../kit/waiting.js";

const SWEEP_BY_HAND = { maxTasks: 0, interval: 1_000_000 };

function echo() {
  return swarm([
    agent("echo", {
      supervisor: true,
      entrypoint: true,
      run: ({ messages: [{ id, message }] }) => ({
        calls: [{ id, name: "task_complete", args: { finish_message: message.body } }],
      }),
    }),
  ]);
}

/** The same store, but every read takes a number of event loop turns. */
function slowReads(store: Store, turns: number): Store {
  const slowly = async <T>(read: Promise<T>): Promise<T> => {
    const result = await read;
    await loopTurns(turns);
    return result;
  };
  const tasks = replacing(store.tasks, {
    find: (...args) => slowly(store.tasks.find(...args)),
    byKey: (...args) => slowly(store.tasks.byKey(...args)),
    finished: (...args) => slowly(store.tasks.finished(...args)),
  });
  return replacing(store, {
    tasks,
    read: (...args) => slowly(store.read(...args)),
    readMany: (...args) => slowly(store.readMany(...args)),
    readSnapshot: (...args) => slowly(store.readSnapshot(...args)),
    lastNumber: (...args) => slowly(store.lastNumber(...args)),
  });
}

describe("removing a task", () => {
  for (const cachedTasks of [8, 1]) {
    it(`a task is not removed before its mail to other swarms is delivered, ${cachedTasks > 1 ? "in memory" : "even if it has left memory"}`, async () => {
      const desk = agent("desk", {
        supervisor: true,
        entrypoint: true,
        interswarm: true,
        targets: ["x@north"],
        run: ({ messages: [{ id, message }] }) => ({
          calls: [
            ...(message.body === "far"
              ? [
                  {
                    id: `${id}-1`,
                    name: "send_request",
                    args: { target: "x@north", subject: "?", body: "?" },
                  },
                ]
              : []),
            { id, name: "task_complete", args: { finish_message: "done" } },
          ],
        }),
      });
      const carrier: Carrier = { owns: () => true, rows: () => [], find: async () => "waiting" };
      const { room } = await openRoom({
        swarm: swarm([desk]),
        limits: { cachedTasks },
        retention: SWEEP_BY_HAND,
        carriers: [carrier],
      });
      const ann = room.user("ann");
      const { key, outcome: ended } = await ann.post("far", { taskId: "t" });
      await ended;
      for (let other = 0; other < 3; other++) await ann.ask("near");
      await room.sweep();
      expect(await room.store.tasks.byKey(key)).toMatchObject({ status: "completed", openWork: true });
      // The mail is delivered, and so is the notice that the task has ended.
      const outbound = await room.runtime.read(key, (state) =>
        state.outbound.map(({ message }) => message.id),
      );
      for (const messageId of outbound ?? []) {
        await room.runtime.command(key, { type: "carried", messageId, swarm: "north", ok: true });
      }
      await room.sweep();
      expect(await room.store.tasks.byKey(key)).toBeUndefined();
    });
  }

  it("[ENGINE-A-9] removing a task loses no acknowledged message, for any timing and any speed of the store", async () => {
    const store = await openSqliteStore({ path: ":memory:" });
    for (const slowness of [0, 1, 3, 8]) {
      for (let delay = 0; delay <= 12; delay += 2) {
        const { room } = await openRoom({
          swarm: echo(),
          store: slowReads(store, slowness),
          limits: { cachedTasks: 1 },
          retention: SWEEP_BY_HAND,
        });
        const ann = room.user(`ann ${slowness} ${delay}`);
        await ann.ask("one", { taskId: "t" });
        for (let other = 0; other < 2; other++) await ann.ask("x");
        const sweeping = room.sweep();
        await loopTurns(delay);
        const posted = await ann.post("important", { taskId: "t" });
        expect((await posted.outcome).message.message.body).toBe("important");
        await sweeping;
        const bodies = (await storedEntries(store, posted.key)).flatMap((entry) =>
          entry.t === "sent" ? [entry.message.message.body] : [],
        );
        // In the old task, or in a new one with that id, which is removed only after it ended.
        const gone = (await ann.task("t")) === undefined;
        expect(gone ? ["important"] : bodies, `${slowness} turns a read, posted after ${delay}`).toContain(
          "important",
        );
        await room.close();
      }
    }
    await store.close();
  });
});

describe("a sweep", () => {
  it("[ENGINE-C-7] a sweep skips tasks with running work and removes the ones after them", async () => {
    let begun = 0;
    const forever = action("wait_for_ever", () => {
      begun++;
      return new Promise(() => {});
    });
    const definition = swarm(
      [
        agent("desk", {
          targets: ["worker"],
          supervisor: true,
          entrypoint: true,
          run: ({ messages: [{ id, message }] }) => ({
            calls:
              message.body === "busy"
                ? [
                    {
                      id: `${id} 1`,
                      name: "send_request",
                      args: { target: "worker", subject: "go", body: "go" },
                    },
                    { id: `${id} 2`, name: "await_message", args: {} },
                  ]
                : [{ id, name: "task_complete", args: { finish_message: "done" } }],
          }),
        }),
        agent("worker", {
          targets: ["desk"],
          actions: ["wait_for_ever"],
          run: () => ({ calls: [{ id: "1", name: "wait_for_ever", args: {} }] }),
        }),
      ],
      { actions: [forever] },
    );
    const { room } = await openRoom({ swarm: definition, retention: SWEEP_BY_HAND });
    const busy = Array.from({ length: 230 }, (_, index) => room.user(`ann ${index}`));
    for (const ann of busy) await ann.post("busy", { taskId: "t" });
    await until(() => begun === busy.length);
    // Each of the tasks ends while its worker is still running.
    for (const ann of busy) await ann.ask("enough", { taskId: "t" });
    for (let task = 0; task < 40; task++) await room.user("bob").ask("hello");
    expect(await room.sweep()).toBe(40);
    expect((await room.store.tasks.counts()).completed).toBe(busy.length);
  });

  it("[ENGINE-C-7] a sweep yields to the event loop between tasks", async () => {
    const { room } = await openRoom({ swarm: echo(), data: folder(), retention: SWEEP_BY_HAND });
    for (let task = 0; task < 150; task++) await room.user(`u${task % 10}`).ask("hello");
    let removed = 0;
    const turns = await turnsDuring(async () => {
      removed = await room.sweep();
    });
    expect(removed).toBe(150);
    expect(turns).toBeGreaterThan(75);
  });
});
