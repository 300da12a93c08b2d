import { describe, expect, it } from "vitest";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import type { Store } from "../../src/engine/ports.js";
import { openSqliteStore } from "../../src/store/index.js";
import { act, ask, complete, wait } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { FaultyDisk, openSmallStore, openStoreOn } from "../kit/faulty-driver.js";
import { countingReads } from "../kit/replacing.js";
import { folder, leftByKill, openRoom, storedEntries } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { loopTurns, turnsDuring, until } from "../kit/waiting.js";

/** Running tasks that wait for an agent that is not connected. */
function waiting(hash = "one"): SwarmDefinition {
  return swarm([agent("far", { supervisor: true, entrypoint: true, remote: true })], { hash });
}

async function fill(store: Store, definition: SwarmDefinition, count: number): Promise<void> {
  const { room } = await openRoom({ swarm: definition, store });
  const posts = Array.from({ length: count }, (_, index) => room.user(`u${index % 50}`).post("please"));
  await Promise.all(posts);
  await room.close({ grace: 0 });
}

describe("a start", () => {
  it("opening a mailroom fails if the store fails permanently during the start", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    await fill(store, waiting("one"), 400);
    disk.fate = () => "final";
    await expect(openRoom({ swarm: waiting("two"), store })).rejects.toMatchObject({ code: "store_failed" });
  });

  it("[ENGINE-C-3] recovering many running tasks yields to the event loop", async () => {
    const store = await openSqliteStore({ path: ":memory:" });
    await fill(store, waiting(), 2_000);
    const turns = await turnsDuring(async () => {
      const { room } = await openRoom({ swarm: waiting(), store });
      await until(() => room.runtime.stats.runningTasks === 2_000);
    });
    expect(turns).toBeGreaterThan(8);
    await store.close();
  });

  it("[ENGINE-C-3] a start does not read paused tasks", async () => {
    const store = await openSqliteStore({ path: ":memory:" });
    const sign = action("sign");
    const paused = swarm(
      [
        agent("clerk", {
          supervisor: true,
          entrypoint: true,
          actions: ["sign"],
          run: () => ({ calls: [{ id: "1", name: "sign", args: {} }] }),
        }),
      ],
      { actions: [sign], breakpoints: ["sign"] },
    );
    const first = await openRoom({ swarm: paused, store });
    const asked = Array.from({ length: 300 }, (_, index) => first.room.user(`u${index}`).ask("sign?"));
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe("paused");
    await first.room.close();
    const { store: watched, reads } = countingReads(store);
    await openRoom({ swarm: paused, store: watched });
    await loopTurns(50);
    expect(reads()).toBe(0);
    await store.close();
  });

  it("[ENGINE-A-4] a start with a changed swarm recovers more running tasks than the write queue can hold, and loses none", async () => {
    const store = await openSmallStore(32);
    const first = await openRoom({ swarm: waiting("one"), store });
    const keys: string[] = [];
    for (let index = 0; index < 150; index++) {
      keys.push((await first.room.user(`u${index}`).post("please")).key);
    }
    await first.room.close({ grace: 0 });
    const { room, problems } = await openRoom({ swarm: waiting("two"), store });
    const redefined = async () => {
      for (const key of keys) {
        if (!(await storedEntries(store, key)).some(({ t }) => t === "redefined")) return false;
      }
      return true;
    };
    await until(redefined);
    expect(room.runtime.stats.runningTasks).toBe(150);
    expect(problems).toEqual([]);
  });
});

describe("a task that had ended when its process was killed", () => {
  /** A boss that completes the task while a worker's action is running. */
  function office(idempotent: boolean) {
    const fakeAgents = new FakeAgents();
    const runs: number[] = [];
    const dig = action(
      "dig",
      (_, { attempt }) => {
        runs.push(attempt);
        return new Promise(() => {});
      },
      { idempotent },
    );
    const definition = swarm(
      [
        agent("boss", {
          targets: ["worker"],
          supervisor: true,
          entrypoint: true,
          run: fakeAgents.mind("boss"),
        }),
        agent("worker", { targets: ["boss"], actions: ["dig"], run: fakeAgents.mind("worker") }),
      ],
      { actions: [dig] },
    );
    return { fakeAgents, runs, definition };
  }

  for (const idempotent of [true, false]) {
    const kind = idempotent ? "may be repeated" : "may not be repeated";
    it(`[ENGINE-B-4] the next start answers the call of an action that ${kind} in an ended task, without a reader`, async () => {
      const data = folder();
      const before = office(idempotent);
      const { room } = await openRoom({ swarm: before.definition, data });
      const posted = await room.user("ann").post("go", { taskId: "t" });
      (await before.fakeAgents.next("boss")).answer(ask("worker", "dig"), wait());
      (await before.fakeAgents.next("worker")).answer(act("dig"));
      await until(() => before.runs.length === 1);
      const enough = await room.user("ann").post("enough", { taskId: "t" });
      (await before.fakeAgents.next("boss")).answer(complete("we have enough"));
      expect((await enough.outcome).status).toBe("completed");
      await loopTurns(4);

      const after = office(idempotent);
      const next = await openRoom({ swarm: after.definition, data: leftByKill(data) });
      const finished = async () =>
        (await storedEntries(next.room.store, posted.key)).find(({ t }) => t === "action_finished");
      // The task has ended, so the action does not run again.
      expect(await until(finished)).toMatchObject({ ok: false, unknown: true });
      expect(after.runs).toEqual([]);
    });
  }
});
