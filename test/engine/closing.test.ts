import { describe, expect, it } from "vitest";
import { TurnHeldError } from "../../src/engine/agent.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { act, complete } from "../kit/answers.js";
import { FakeAgents } from "../kit/fake-agents.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { folder, openRoom, storedEntries, unknownResults } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { gate, loopTurns, until } from "../kit/waiting.js";

function payingOffice(idempotent: boolean) {
  const fakeAgents = new FakeAgents();
  const paying = gate();
  const payments: number[] = [];
  const pay = action(
    "pay",
    async (_, { attempt }) => {
      payments.push(attempt);
      await paying.passed;
      return "receipt";
    },
    { idempotent },
  );
  const boss = agent("boss", {
    supervisor: true,
    entrypoint: true,
    actions: ["pay"],
    run: fakeAgents.mind("boss"),
  });
  return { fakeAgents, paying, payments, definition: swarm([boss], { actions: [pay] }) };
}

describe("closing", () => {
  it("closing waits for pending writes and no longer, even if the last one belongs to no task", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const { room } = await openRoom({ swarm: definition, store, clock });
    const { key } = await room.user("ann").post("go");
    const turn = await fakeAgents.next("boss");
    const closing = room.close({ grace: 60_000 });
    await loopTurns(4);
    disk.hold();
    turn.answer(complete("done"));
    await until(() => disk.attempts === 2);
    // Goes into the next group.
    const other = store.commit(
      { appends: [{ journal: "other", expected: 0, count: 1, data: "[1]" }] },
      "result",
    );
    disk.release();
    await other;
    // The clock does not advance, so no grace period ends.
    await closing;
    expect(await store.tasks.byKey(key)).toMatchObject({ status: "completed" });
  });

  it("closing ends even if retention waits for a store that cannot be written", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const retention = { maxTasks: 0, interval: 1_000_000 };
    const { room } = await openRoom({ swarm: definition, store, clock, retention });
    const { outcome } = await room.user("ann").post("go");
    (await fakeAgents.next("boss")).answer(complete("done"));
    await outcome;
    await store.writer.drained();
    disk.fate = () => "transient";
    const sweeping = room.sweep();
    await until(() => store.writer.undurable > 0);
    const closing = room.close({ grace: 0 });
    for (let pause = 0; pause < 3; pause++) {
      await loopTurns(4);
      clock.advance(5_000);
    }
    await closing;
    disk.fate = () => undefined;
    await sweeping;
  });

  it("an action whose start is written during closing is recorded as not started", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, payments, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const { room, problems } = await openRoom({ swarm: definition, store, clock });
    const { key } = await room.user("ann").post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    disk.hold();
    turn.answer(act("pay"));
    await until(() => disk.attempts === 2);
    const closing = room.close({ grace: 0 });
    await loopTurns(4);
    // The grace period has ended, and closing waits for known results.
    clock.advance(0);
    await loopTurns(4);
    disk.release();
    await closing;

    const after = payingOffice(false);
    await openRoom({ swarm: after.definition, store });
    const again = await after.fakeAgents.next("boss");
    expect(again.turn.results).toMatchObject([
      { ok: false, content: "not started: the process was shutting down" },
    ]);
    expect(unknownResults(await storedEntries(store, key))).toEqual([]);
    expect([...payments, ...after.payments]).toEqual([]);
    expect(problems).toEqual([]);
  });

  for (const idempotent of [false, true]) {
    it(`[ENGINE-A-5] closing twice is closing once: ${idempotent ? "an idempotent action" : "an action that is not idempotent"} ends within the grace period, and its result is kept`, async () => {
      const data = folder();
      const before = payingOffice(idempotent);
      const { room, problems } = await openRoom({ swarm: before.definition, data });
      const { key } = await room.user("ann").post("go", { taskId: "t" });
      (await before.fakeAgents.next("boss")).answer(act("pay"));
      await until(() => before.payments.length === 1);
      let closed = 0;
      const closing = [room.close(), room.close()].map((close) =>
        close.then(() => {
          closed++;
        }),
      );
      await loopTurns(20);
      expect(closed).toBe(0);
      before.paying.open();
      await Promise.all(closing);
      expect(problems).toEqual([]);

      const after = payingOffice(idempotent);
      const again = await openRoom({ swarm: after.definition, data });
      const turn = await after.fakeAgents.next("boss");
      expect(turn.turn.results).toMatchObject([{ ok: true, content: "receipt" }]);
      turn.answer(complete("paid"));
      await until(async () => (await again.room.store.tasks.byKey(key))?.status === "completed");
      expect(unknownResults(await storedEntries(again.room.store, key))).toEqual([]);
      expect([...before.payments, ...after.payments]).toEqual([1]);
    });
  }

  it("[ENGINE-A-6, ENGINE-D-6] closing during a turn and opening again never counts as a recovery of its message", async () => {
    const data = folder();
    for (let restart = 0; restart < 6; restart++) {
      const fakeAgents = new FakeAgents();
      const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
      const { room } = await openRoom({ swarm: swarm([boss]), data });
      const ann = room.user("ann");
      if (restart === 0) await ann.post("a long question", { taskId: "t" });
      const turn = await fakeAgents.next("boss");
      if (restart === 5) turn.answer(complete("a long answer"));
      else await room.close({ grace: 0 });
      if (restart < 5) continue;
      const task = await ann.requireTask("t");
      await until(async () => (await task.status()) === "completed");
      const entries = await storedEntries(room.store, task.key);
      expect(JSON.stringify(entries)).not.toContain("the process ended");
    }
  });

  it("[ENGINE-A-6] closing counts no recovery for waiting tasks", async () => {
    const data = folder();
    for (let restart = 0; restart < 5; restart++) {
      const fakeAgents = new FakeAgents();
      const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
      // One turn at a time: the other tasks wait when the mailroom is closed.
      const { room } = await openRoom({ swarm: swarm([boss]), data, limits: { turns: 1 } });
      const ann = room.user("ann");
      if (restart === 0) {
        for (let task = 0; task < 5; task++) await ann.post("a question", { taskId: `${task}` });
      }
      const turn = await fakeAgents.next("boss");
      if (restart < 4) {
        await room.close({ grace: 0 });
        continue;
      }
      turn.answer(complete("an answer"));
      for (let task = 1; task < 5; task++) (await fakeAgents.next("boss")).answer(complete("an answer"));
      await until(async () => (await room.store.tasks.counts()).completed === 5);
    }
  });

  it("[ENGINE-C-6] closing ends every live stream of events and entries", async () => {
    const fakeAgents = new FakeAgents();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
    const { room } = await openRoom({ swarm: swarm([boss]) });
    const { task, number } = await room.user("ann").post("go", { taskId: "t" });
    await fakeAgents.next("boss");
    const read = async (stream: AsyncIterable<unknown>) => {
      let seen = 0;
      for await (const _ of stream) seen++;
      return seen;
    };
    const reading = Promise.allSettled([
      read(task.events({ live: true })),
      read(task.events({ live: "round" })),
      read(task.journal({ live: true })),
      read(task.journal({ live: true, after: number })),
    ]);
    await loopTurns(10);
    await room.close({ grace: 0 });
    for (const result of await reading) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "closed" });
    }
  });

  it("[ENGINE-C-6] closing ends waits for a step, for mail and for an answer", async () => {
    const fakeAgents = new FakeAgents();
    const definition = swarm([
      agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") }),
      agent("far", { remote: true }),
    ]);
    const { room } = await openRoom({ swarm: definition });
    const posted = await room.user("ann").post("go", { taskId: "t", manual: true });
    const step = posted.task.step("boss");
    const mail = room.remoteAgent("far").next();
    await fakeAgents.next("boss");
    const ended = Promise.allSettled([step, mail, posted.outcome]);
    await room.close({ grace: 0 });
    const [stepped, fetched, answered] = await ended;
    if (stepped.status === "rejected") expect(stepped.reason).toMatchObject({ code: "closed" });
    expect(fetched).toEqual({ status: "fulfilled", value: undefined });
    expect(answered).toMatchObject({ status: "rejected", reason: { code: "closed" } });
  });
});

describe("a manual step", () => {
  it("[ENGINE-C-6] a manual step of a held agent returns when its task is paused", async () => {
    const boss = agent("boss", {
      supervisor: true,
      entrypoint: true,
      run: () => {
        throw new TurnHeldError("credentials", "there is no key");
      },
    });
    const { room } = await openRoom({ swarm: swarm([boss]) });
    const { task } = await room.user("ann").post("go", { taskId: "t", manual: true });
    await Promise.allSettled([task.step("boss")]);
    expect(await task.status()).toBe("paused");
  });
});
