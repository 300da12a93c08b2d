import { describe, expect, it } from "vitest";
import { TurnHeldError } from "../../src/engine/agent.js";
import { act, complete } from "../kit/answers.js";
import { FaultyDisk, openStoreOn } from "../kit/faulty-driver.js";
import { Puppets } from "../kit/puppets.js";
import { folder, openRoom, storedEntries, unknownResults } from "../kit/rooms.js";
import { action, agent, swarm } from "../kit/swarms.js";
import { VirtualClock } from "../kit/virtual-clock.js";
import { gate, loopTurns, until } from "../kit/waiting.js";

function payingOffice(idempotent: boolean) {
  const puppets = new Puppets();
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
    run: puppets.mind("boss"),
  });
  return { puppets, paying, payments, definition: swarm([boss], { actions: [pay] }) };
}

describe("closing", () => {
  it("waits for what is written, and no longer, also if the last of it belongs to no task", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { puppets, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const { room } = await openRoom({ swarm: definition, store, clock });
    const { key } = await room.user("ann").post("go");
    const turn = await puppets.next("boss");
    const closing = room.close({ grace: 60_000 });
    await loopTurns(4);
    disk.hold();
    turn.answer(complete("done"));
    await until(() => disk.attempts === 2);
    // Waits for the next group.
    const other = store.commit(
      { appends: [{ journal: "other", expected: 0, count: 1, data: "[1]" }] },
      "result",
    );
    disk.release();
    await other;
    // The clock stands still: no grace ends.
    await closing;
    expect(await store.tasks.byKey(key)).toMatchObject({ status: "completed" });
  });

  it("ends although a round of retention waits for a store that cannot be written", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { puppets, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const retention = { maxTasks: 0, interval: 1_000_000 };
    const { room } = await openRoom({ swarm: definition, store, clock, retention });
    const { outcome } = await room.user("ann").post("go");
    (await puppets.next("boss")).answer(complete("done"));
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

  it("an action whose start is written while the mailroom closes is known not to have begun", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { puppets, payments, definition } = payingOffice(false);
    const clock = new VirtualClock();
    const { room, problems } = await openRoom({ swarm: definition, store, clock });
    const { key } = await room.user("ann").post("go", { taskId: "t" });
    const turn = await puppets.next("boss");
    disk.hold();
    turn.answer(act("pay"));
    await until(() => disk.attempts === 2);
    const closing = room.close({ grace: 0 });
    await loopTurns(4);
    // Its grace is over, and what is known is waited for.
    clock.advance(0);
    await loopTurns(4);
    disk.release();
    await closing;

    const after = payingOffice(false);
    await openRoom({ swarm: after.definition, store });
    const again = await after.puppets.next("boss");
    expect(again.turn.results).toMatchObject([
      { ok: false, content: "not started: the process was about to end" },
    ]);
    expect(unknownResults(await storedEntries(store, key))).toEqual([]);
    expect([...payments, ...after.payments]).toEqual([]);
    expect(problems).toEqual([]);
  });

  for (const idempotent of [false, true]) {
    it(`[ENGINE-A-5] twice is closing once: an action that ${idempotent ? "may" : "may not"} be repeated ends within its grace, and its result is kept`, async () => {
      const data = folder();
      const before = payingOffice(idempotent);
      const { room, problems } = await openRoom({ swarm: before.definition, data });
      const { key } = await room.user("ann").post("go", { taskId: "t" });
      (await before.puppets.next("boss")).answer(act("pay"));
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
      const turn = await after.puppets.next("boss");
      expect(turn.turn.results).toMatchObject([{ ok: true, content: "receipt" }]);
      turn.answer(complete("paid"));
      await until(async () => (await again.room.store.tasks.byKey(key))?.status === "completed");
      expect(unknownResults(await storedEntries(again.room.store, key))).toEqual([]);
      expect([...before.payments, ...after.payments]).toEqual([1]);
    });
  }

  it("[ENGINE-A-6, ENGINE-D-6] in the middle of a turn, and opening again, is not held against its message however often it happens", async () => {
    const data = folder();
    for (let restart = 0; restart < 6; restart++) {
      const puppets = new Puppets();
      const boss = agent("boss", { supervisor: true, entrypoint: true, run: puppets.mind("boss") });
      const { room } = await openRoom({ swarm: swarm([boss]), data });
      const ann = room.user("ann");
      if (restart === 0) await ann.post("a long question", { taskId: "t" });
      const turn = await puppets.next("boss");
      if (restart === 5) turn.answer(complete("a long answer"));
      else await room.close({ grace: 0 });
      if (restart < 5) continue;
      const task = await ann.requireTask("t");
      await until(async () => (await task.status()) === "completed");
      const entries = await storedEntries(room.store, task.key);
      expect(JSON.stringify(entries)).not.toContain("the process ended");
    }
  });

  it("[ENGINE-A-6] beside other tasks counts no restart for any of them", async () => {
    const data = folder();
    for (let restart = 0; restart < 5; restart++) {
      const puppets = new Puppets();
      const boss = agent("boss", { supervisor: true, entrypoint: true, run: puppets.mind("boss") });
      // One turn at a time: the others wait for theirs when the mailroom is closed.
      const { room } = await openRoom({ swarm: swarm([boss]), data, limits: { turns: 1 } });
      const ann = room.user("ann");
      if (restart === 0) {
        for (let task = 0; task < 5; task++) await ann.post("a question", { taskId: `${task}` });
      }
      const turn = await puppets.next("boss");
      if (restart < 4) {
        await room.close({ grace: 0 });
        continue;
      }
      turn.answer(complete("an answer"));
      for (let task = 1; task < 5; task++) (await puppets.next("boss")).answer(complete("an answer"));
      await until(async () => (await room.store.tasks.counts()).completed === 5);
    }
  });

  it("[ENGINE-C-6] ends every live stream of events and entries", async () => {
    const puppets = new Puppets();
    const boss = agent("boss", { supervisor: true, entrypoint: true, run: puppets.mind("boss") });
    const { room } = await openRoom({ swarm: swarm([boss]) });
    const { task, number } = await room.user("ann").post("go", { taskId: "t" });
    await puppets.next("boss");
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

  it("[ENGINE-C-6] ends a wait for a step, for mail and for an answer", async () => {
    const puppets = new Puppets();
    const definition = swarm([
      agent("boss", { supervisor: true, entrypoint: true, run: puppets.mind("boss") }),
      agent("far", { remote: true }),
    ]);
    const { room } = await openRoom({ swarm: definition });
    const posted = await room.user("ann").post("go", { taskId: "t", manual: true });
    const step = posted.task.step("boss");
    const mail = room.remoteAgent("far").next();
    await puppets.next("boss");
    const ended = Promise.allSettled([step, mail, posted.outcome]);
    await room.close({ grace: 0 });
    const [stepped, fetched, answered] = await ended;
    if (stepped.status === "rejected") expect(stepped.reason).toMatchObject({ code: "closed" });
    expect(fetched).toEqual({ status: "fulfilled", value: undefined });
    expect(answered).toMatchObject({ status: "rejected", reason: { code: "closed" } });
  });
});

describe("a manual step", () => {
  it("[ENGINE-C-6] of an agent that is held returns when its task stands still", async () => {
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
