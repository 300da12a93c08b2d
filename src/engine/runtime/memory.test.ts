import { describe, expect, it } from "vitest";
import { act, answerOf, ask, complete } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import type { Action } from "../agent.js";

function officeOfFakes(actions: readonly Action[] = []) {
  const fakeAgents = new FakeAgents();
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions: actions.map(({ name }) => name),
        run: fakeAgents.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], run: fakeAgents.mind("ann") }),
    ],
    { actions },
  );
  return { fakeAgents, definition };
}

describe("tasks in memory", () => {
  it("only the latest idle tasks stay in memory, and a message reloads the others with their histories", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { cachedTasks: 2, snapshotAfter: 1 } });
    for (let task = 0; task < 5; task++) {
      const posted = await world.runtime.post(ULLA, { body: `${task}`, taskId: `t${task}` });
      (await fakeAgents.next("boss")).answer(complete(`${task}`));
      await posted.outcome;
      await world.settle();
    }
    expect(world.runtime.stats.liveTasks).toBeLessThanOrEqual(2);
    const posted = await world.runtime.post(ULLA, { body: "and?", taskId: "t0" });
    const turn = await fakeAgents.next("boss");
    expect(turn.turn.history.map((item) => item.kind)).toEqual(["message", "answer", "result", "message"]);
    turn.answer(complete("again"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("tasks that end while others wait for a free slot also leave memory", async () => {
    const definition = swarm([
      agent("boss", {
        supervisor: true,
        entrypoint: true,
        run: async () => answerOf([complete("done")], () => "c"),
      }),
    ]);
    const limits = { cachedTasks: 2, turns: 2 };
    const world = await openWorld(definition, { limits });
    const posted = await Promise.all(
      Array.from({ length: 40 }, (_, task) => world.runtime.post(ULLA, { body: `${task}` })),
    );
    for (const { outcome } of posted) expect((await outcome).status).toBe("completed");
    await world.settle();
    expect(world.runtime.stats.liveTasks).toBeLessThanOrEqual(2);
  });

  it("loading from a snapshot gives the state of the journal", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { cachedTasks: 0, snapshotAfter: 1 } });
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "2"), complete("3"));
    await posted.outcome;
    await world.settle();
    expect(await world.store.readSnapshot(posted.key)).toBeDefined();
    expect(world.runtime.stats.liveTasks).toBe(0);
    await world.runtime.read(posted.key, (state) => {
      expect(state.number).toBe(world.store.entriesOf(posted.key).length);
      expect(state.agents.get("ann")?.mailbox).toHaveLength(1);
    });
  });

  it("a task stays in memory until its reader is done", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { cachedTasks: 0 } });
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("1"));
    await posted.outcome;
    expect(await world.runtime.read(posted.key, (state) => state.status)).toBe("completed");
    expect(await world.runtime.read("nothing", () => 1)).toBeUndefined();
  });

  it("a reader sees only what is durable", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("1"));
    await Promise.resolve();
    const number = await world.runtime.read(posted.key, (state) => state.number);
    expect(await world.store.lastNumber(posted.key)).toBe(number);
  });

  it("an ended task can be removed and its id used again; a running one cannot", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    expect(await world.runtime.remove(posted.key)).toBe(false);
    (await fakeAgents.next("boss")).answer(complete("1"));
    await posted.outcome;
    await world.settle();
    expect(await world.runtime.remove(posted.key)).toBe(true);
    expect(await world.runtime.find(ULLA, "t")).toBeUndefined();
    const again = await world.runtime.post(ULLA, { body: "2", taskId: "t" });
    expect(again.opened).toBe(true);
    const turn = await fakeAgents.next("boss");
    expect(turn.turn.history).toHaveLength(1);
    turn.answer(complete("2"));
    await again.outcome;
  });

  it("a running task that is not in memory yet cannot be removed", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    await world.settle();
    const stored = world.store.tasks.withStatus;
    // A process that has started and not recovered anything yet.
    world.store.tasks.withStatus = async () => [];
    await world.crash();
    world.store.tasks.withStatus = stored;
    expect(world.runtime.stats.liveTasks).toBe(0);
    expect(await world.runtime.remove(posted.key)).toBe(false);
  });

  it("too many running tasks are refused until some have ended", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { runningTasksPerInstance: 2 } });
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    await world.runtime.post(ULLA, { body: "2" });
    await expect(world.runtime.post(ULLA, { body: "3" })).rejects.toMatchObject({ code: "overloaded" });
    await expect(world.runtime.post(ULLA, { body: "more", taskId: "t" })).resolves.toBeDefined();
    await world.runtime.post({ role: "user", id: "otto" }, { body: "4" });
    await world.runtime.cancel(posted.key, "user:ulla@desk");
    await world.runtime.post(ULLA, { body: "5" });
    await expect(world.runtime.post(ULLA, { body: "more", taskId: "t" })).rejects.toMatchObject({
      code: "overloaded",
    });
    expect(fakeAgents.began.length).toBeGreaterThan(0);
  });
});

describe("the size of running tasks", () => {
  const LARGE = "x".repeat(50_000);

  it("of one caller is limited: further tasks and messages are refused and change nothing until one has ended", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { runningSizePerInstance: 100_000 } });
    const first = await world.runtime.post(ULLA, { body: LARGE, taskId: "first" });
    const second = await world.runtime.post(ULLA, { body: LARGE, taskId: "second" });
    const before = world.store.entriesOf(second.key).length;
    const refusal = {
      code: "overloaded",
      message: expect.stringContaining("the limit per caller: retry later"),
    };
    await expect(world.runtime.post(ULLA, { body: "third", taskId: "third" })).rejects.toMatchObject(refusal);
    await expect(world.runtime.post(ULLA, { body: "more", taskId: "second" })).rejects.toMatchObject(refusal);
    expect(world.store.entriesOf(second.key)).toHaveLength(before);
    // Other callers are not affected.
    await world.runtime.post({ role: "user", id: "otto" }, { body: "hello" });
    await world.runtime.cancel(first.key, "user:ulla@desk");
    await world.runtime.post(ULLA, { body: "more", taskId: "second" });
    await world.runtime.post(ULLA, { body: "third", taskId: "third" });
  });

  it("counts after a crash as before it", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { runningSizePerInstance: 100_000 } });
    await world.runtime.post(ULLA, { body: LARGE });
    await world.runtime.post(ULLA, { body: LARGE });
    await world.crash();
    await world.settle();
    await expect(world.runtime.post(ULLA, { body: "third" })).rejects.toMatchObject({ code: "overloaded" });
  });

  it("of a caller with one running task is limited by the size of a task alone", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { runningSizePerInstance: 10_000 } });
    await world.runtime.post(ULLA, { body: LARGE, taskId: "only" });
    await world.runtime.post(ULLA, { body: LARGE, taskId: "only" });
    await expect(world.runtime.post(ULLA, { body: "another" })).rejects.toMatchObject({ code: "overloaded" });
  });

  it("of all callers is limited, first for those that have more than others", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { runningSize: 120_000 } });
    await world.runtime.post({ role: "user", id: "otto" }, { body: "small" });
    for (let n = 0; n < 3; n++) await world.runtime.post(ULLA, { body: LARGE.slice(0, 40_000) });
    await expect(world.runtime.post(ULLA, { body: "x" })).rejects.toMatchObject({
      code: "overloaded",
      message: expect.stringMatching(/^the running tasks have \d+ characters, which is the limit/),
    });
    await world.runtime.post({ role: "user", id: "otto" }, { body: "another" });
    await world.runtime.post({ role: "user", id: "new" }, { body: "first" });
  });
});

describe("closing", () => {
  it("running turns and actions may finish within the grace period, including actions that start in it", async () => {
    const dig = action("dig", async () => "a hole");
    const { fakeAgents, definition } = officeOfFakes([dig]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    const closed = world.runtime.close(1_000);
    await expect(world.runtime.post(ULLA, { body: "x" })).rejects.toMatchObject({ code: "closed" });
    turn.answer(act("dig"));
    await closed;
    await expect(posted.outcome).rejects.toMatchObject({ code: "closed" });
    expect(world.store.entriesOf(posted.key)).toContainEqual(
      expect.objectContaining({ t: "action_finished", content: "a hole" }),
    );
  });

  it("unfinished turns are stopped and parked, and the next process continues them", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    const { signal } = (await fakeAgents.next("boss")).turn;
    const closed = world.runtime.close(1_000);
    await world.pass(1_000);
    await closed;
    expect(signal.aborted).toBe(true);
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "parked"]);
    await world.crash();
    (await fakeAgents.next("boss")).answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("an action that ignores its signal does not prevent closing", async () => {
    const dig = action("dig", () => new Promise(() => {}));
    const { fakeAgents, definition } = officeOfFakes([dig]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("dig"));
    await world.settle();
    const closed = world.runtime.close(1_000);
    await world.pass(1_000);
    await closed;
  });
});
