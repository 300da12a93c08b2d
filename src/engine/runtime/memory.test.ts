import { describe, expect, it } from "vitest";
import { act, answerOf, ask, complete } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA } from "../../../test/kit/world.js";
import type { Action } from "../agent.js";

function puppetOffice(actions: readonly Action[] = []) {
  const puppets = new Puppets();
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions: actions.map(({ name }) => name),
        run: puppets.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], run: puppets.mind("ann") }),
    ],
    { actions },
  );
  return { puppets, definition };
}

describe("tasks in memory", () => {
  it("of tasks that rest only the latest stay, and a message brings back the others with their memory", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { restingTasks: 2, snapshotAfter: 1 } });
    for (let task = 0; task < 5; task++) {
      const posted = await world.runtime.post(ULLA, { body: `${task}`, taskId: `t${task}` });
      (await puppets.next("boss")).answer(complete(`${task}`));
      await posted.outcome;
      await world.settle();
    }
    expect(world.runtime.figures.liveTasks).toBeLessThanOrEqual(2);
    const posted = await world.runtime.post(ULLA, { body: "and?", taskId: "t0" });
    const turn = await puppets.next("boss");
    expect(turn.turn.history.map((item) => item.kind)).toEqual(["message", "answer", "result", "message"]);
    turn.answer(complete("again"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("tasks that end while others wait for a free slot leave memory too", async () => {
    const definition = swarm([
      agent("boss", {
        supervisor: true,
        entrypoint: true,
        run: async () => answerOf([complete("done")], () => "c"),
      }),
    ]);
    const limits = { restingTasks: 2, turns: 2 };
    const world = await openWorld(definition, { limits });
    const posted = await Promise.all(
      Array.from({ length: 40 }, (_, task) => world.runtime.post(ULLA, { body: `${task}` })),
    );
    for (const { outcome } of posted) expect((await outcome).status).toBe("completed");
    await world.settle();
    expect(world.runtime.figures.liveTasks).toBeLessThanOrEqual(2);
  });

  it("what is loaded from a snapshot is what the journal says", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { restingTasks: 0, snapshotAfter: 1 } });
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "2"), complete("3"));
    await posted.outcome;
    await world.settle();
    expect(await world.store.readSnapshot(posted.key)).toBeDefined();
    expect(world.runtime.figures.liveTasks).toBe(0);
    await world.runtime.read(posted.key, (state) => {
      expect(state.number).toBe(world.store.entriesOf(posted.key).length);
      expect(state.agents.get("ann")?.mailbox).toHaveLength(1);
    });
  });

  it("a task that somebody reads stays until the reader is done", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { restingTasks: 0 } });
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await puppets.next("boss")).answer(complete("1"));
    await posted.outcome;
    expect(await world.runtime.read(posted.key, (state) => state.status)).toBe("completed");
    expect(await world.runtime.read("nothing", () => 1)).toBeUndefined();
  });

  it("a reader sees only what is durable", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    (await puppets.next("boss")).answer(complete("1"));
    await Promise.resolve();
    const number = await world.runtime.read(posted.key, (state) => state.number);
    expect(await world.store.lastNumber(posted.key)).toBe(number);
  });

  it("a finished task can be removed and its id used again; a running one cannot", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    expect(await world.runtime.remove(posted.key)).toBe(false);
    (await puppets.next("boss")).answer(complete("1"));
    await posted.outcome;
    await world.settle();
    expect(await world.runtime.remove(posted.key)).toBe(true);
    expect(await world.runtime.find(ULLA, "t")).toBeUndefined();
    const again = await world.runtime.post(ULLA, { body: "2", taskId: "t" });
    expect(again.opened).toBe(true);
    const turn = await puppets.next("boss");
    expect(turn.turn.history).toHaveLength(1);
    turn.answer(complete("2"));
    await again.outcome;
  });

  it("a running task that is not in memory yet is not removed either", async () => {
    const { definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "1", taskId: "t" });
    await world.settle();
    const stored = world.store.tasks.withStatus;
    // A process that has just started and has not recovered anything.
    world.store.tasks.withStatus = async () => [];
    await world.crash();
    world.store.tasks.withStatus = stored;
    expect(world.runtime.figures.liveTasks).toBe(0);
    expect(await world.runtime.remove(posted.key)).toBe(false);
  });

  it("too many running tasks are refused until some have ended", async () => {
    const { puppets, definition } = puppetOffice();
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
    expect(puppets.began.length).toBeGreaterThan(0);
  });
});

describe("closing", () => {
  it("turns and actions under way may finish within the grace, actions that begin in it included", async () => {
    const dig = action("dig", async () => "a hole");
    const { puppets, definition } = puppetOffice([dig]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    const turn = await puppets.next("boss");
    const closed = world.runtime.close(1_000);
    await expect(world.runtime.post(ULLA, { body: "x" })).rejects.toMatchObject({ code: "closed" });
    turn.answer(act("dig"));
    await closed;
    await expect(posted.outcome).rejects.toMatchObject({ code: "closed" });
    expect(world.store.entriesOf(posted.key)).toContainEqual(
      expect.objectContaining({ t: "action_finished", content: "a hole" }),
    );
  });

  it("what does not finish is stopped and parked; the next process takes it up", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    const { signal } = (await puppets.next("boss")).turn;
    const closed = world.runtime.close(1_000);
    await world.pass(1_000);
    await closed;
    expect(signal.aborted).toBe(true);
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "parked"]);
    await world.crash();
    (await puppets.next("boss")).answer(complete("done"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("an action that ignores its signal does not keep the process from closing", async () => {
    const dig = action("dig", () => new Promise(() => {}));
    const { puppets, definition } = puppetOffice([dig]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await puppets.next("boss")).answer(act("dig"));
    await world.settle();
    const closed = world.runtime.close(1_000);
    await world.pass(1_000);
    await closed;
  });
});
