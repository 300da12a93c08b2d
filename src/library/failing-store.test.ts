import { rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { complete } from "../../test/kit/answers.js";
import { FakeAgents } from "../../test/kit/fake-agents.js";
import { FaultyDisk, openStoreOn } from "../../test/kit/faulty-driver.js";
import { folder, openRoom } from "../../test/kit/rooms.js";
import { agent, swarm } from "../../test/kit/swarms.js";
import { loopTurns, until } from "../../test/kit/waiting.js";
import type { SwarmDefinition } from "../engine/definition.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { Mailroom } from "./mailroom.js";

function desk() {
  const fakeAgents = new FakeAgents();
  const boss = agent("boss", { supervisor: true, entrypoint: true, run: fakeAgents.mind("boss") });
  let closed = 0;
  const definition: SwarmDefinition = {
    ...swarm([boss, agent("far", { remote: true })]),
    close: async () => {
      closed++;
    },
  };
  return { fakeAgents, definition, closed: () => closed };
}

async function read(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

describe("a mailroom whose store fails for good", () => {
  it("tells everybody who waits, reports it once, and closes itself", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const { fakeAgents, definition, closed } = desk();
    const { room, problems } = await openRoom({ swarm: definition, store });
    const ann = room.user("ann");
    const posted = await ann.post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    const manual = await ann.post("by hand", { taskId: "m", manual: true });
    const stepping = manual.task.step("boss");
    await fakeAgents.next("boss");
    const streaming = ann.stream("and this", { taskId: "s" });
    const asking = ann.ask("one more", { taskId: "a" });
    const waiting = [
      posted.outcome,
      asking,
      stepping,
      read(streaming),
      read(posted.task.events({ live: true })),
    ];
    const told = Promise.allSettled(waiting);
    const remote = room.remoteAgent("far").next();
    await fakeAgents.next("boss");
    await fakeAgents.next("boss");
    await loopTurns(4);
    disk.fate = () => "final";
    turn.answer(complete("done"));

    for (const answer of await told) expect(answer).toMatchObject({ reason: { code: "store_failed" } });
    expect(await room.failed).toMatchObject({ code: "store_failed" });
    expect(await remote).toBeUndefined();
    await until(() => closed() === 1);
    await room.close();
    expect(closed()).toBe(1);
    expect(problems.map(({ code }) => code)).toEqual(["store_failed"]);
    await expect(ann.post("later")).rejects.toMatchObject({ code: "store_failed" });
    await expect(posted.task.cancel()).rejects.toMatchObject({ code: "store_failed" });
  });

  it("lets go of its data directory, so that it can be opened again", async () => {
    const data = folder();
    const first = desk();
    const { room } = await openRoom({ swarm: first.definition, data });
    await room.user("ann").post("go", { taskId: "t" });
    const turn = await first.fakeAgents.next("boss");
    rmSync(data, { recursive: true });
    turn.answer(complete("done"));
    // It looks at the directory once in a while, so it may take another write to notice.
    const writing = setInterval(
      () =>
        void room
          .user("bob")
          .post("more")
          .catch(() => {}),
      50,
    );
    await room.failed;
    clearInterval(writing);
    await room.close();
    const second = desk();
    const again = await Mailroom.open({ swarm: second.definition, data });
    await again.close();
  });
});

describe("closing", () => {
  it("while nothing can be written says how much is lost, and says the same to everybody who closes", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const clock = new VirtualClock();
    const { fakeAgents, definition } = desk();
    const { room } = await openRoom({ swarm: definition, store, clock });
    await room.user("ann").post("go", { taskId: "t" });
    const turn = await fakeAgents.next("boss");
    await loopTurns(4);
    disk.fate = () => "transient";
    turn.answer(complete("done"));
    await until(() => disk.attempts > 3);
    const first = room.close({ grace: 0 });
    const second = room.close();
    expect(second).toBe(first);
    let ended = false;
    void first.then(() => {
      ended = true;
    });
    await until(() => {
      clock.advance(1_000);
      return ended;
    });
    expect((await first).unwritten).toBeGreaterThan(0);
  });

  it("stops a sweep that waits for a store that cannot be written", async () => {
    const disk = new FaultyDisk();
    const store = await openStoreOn(disk);
    const clock = new VirtualClock();
    const { fakeAgents, definition } = desk();
    const { room, problems } = await openRoom({
      swarm: definition,
      store,
      clock,
      retention: { maxTasks: 0 },
    });
    const { outcome } = await room.user("ann").post("go", { taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("done"));
    await outcome;
    disk.fate = () => "transient";
    const attempts = disk.attempts;
    clock.advance(60_000);
    await until(() => disk.attempts > attempts);
    let ended = false;
    void room.close({ grace: 0 }).then(() => {
      ended = true;
    });
    await until(() => {
      clock.advance(1_000);
      return ended;
    });
    expect(problems).toEqual([]);
  });
});

describe("opening", () => {
  it("without taking up leaves the tasks of the life before until it is asked to", async () => {
    const data = folder();
    const first = desk();
    const before = await openRoom({ swarm: first.definition, data });
    await before.room.user("ann").post("go", { taskId: "t" });
    await first.fakeAgents.next("boss");
    await before.room.close({ grace: 0 });

    const second = desk();
    const told: [number, number][] = [];
    const { room } = await openRoom({
      swarm: second.definition,
      data,
      recover: false,
      onRecovery: (done, of) => told.push([done, of]),
    });
    await loopTurns(20);
    expect({ recovered: room.recovered, began: second.fakeAgents.began }).toEqual({
      recovered: 0,
      began: [],
    });
    // A caller that asks for it meanwhile finds it.
    expect(await (await room.user("ann").requireTask("t")).status()).toBe("running");
    expect(await room.recover()).toBe(1);
    expect(room.recovered).toBe(1);
    expect(told).toEqual([
      [0, 1],
      [1, 1],
    ]);
    (await second.fakeAgents.next("boss")).answer(complete("done"));
    const task = await room.user("ann").requireTask("t");
    await until(async () => (await task.status()) === "completed");
  });
});
