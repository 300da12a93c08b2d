import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { act, ask, complete, respond, wait } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import { openWorld, ULLA } from "../../../test/kit/world.js";
import { createLocalBus, openSqliteStore } from "../../store/index.js";
import type { Action } from "../agent.js";
import { Runtime } from "./runtime.js";

function puppetOffice(actions: readonly Action[] = [], breakpoints: readonly string[] = [], hash = "one") {
  const puppets = new Puppets();
  const names = actions.map(({ name }) => name);
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions: names,
        run: puppets.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], actions: names, run: puppets.mind("ann") }),
    ],
    { actions, breakpoints, hash },
  );
  return { puppets, definition };
}

/** An action that never ends by itself, and what it was called with. */
function endless(name: string, idempotent: boolean) {
  const runs: { callId: string; attempt: number }[] = [];
  const finish: ((value: string) => void)[] = [];
  const made = action(
    name,
    (_, { callId, attempt }) => {
      runs.push({ callId, attempt });
      return new Promise<string>((resolve) => finish.push(resolve));
    },
    { idempotent },
  );
  return { made, runs, finish };
}

describe("recovery", () => {
  it("a turn that was under way is asked again, and its answer takes effect once", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const before = await puppets.next("boss");
    await world.crash();
    const after = await puppets.next("boss");
    expect(after.turn.attempt).toBe(2);
    before.answer(complete("from the grave"));
    after.answer(complete("1"));
    await world.settle();
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "recovered", "turn", "completed"]);
    await expect(posted.outcome).rejects.toMatchObject({ code: "closed" });
    const outcome = await world.runtime.outcomeOf(posted);
    expect(outcome.message.message.body).toBe("1");
  });

  it("what agents had sent is delivered, and nothing twice", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "how many?"), wait());
    await world.settle();
    puppets.bury();
    await world.crash();
    (await puppets.next("ann")).answer(respond("boss", "three"));
    await world.settle();
    puppets.bury();
    await world.crash();
    (await puppets.next("boss")).answer(complete("three"));
    await world.settle();
    const sent = world.store.entriesOf(posted.key).filter((entry) => entry.t === "sent");
    expect(sent.map(({ message }) => message.message.body)).toEqual(["one", "how many?", "three"]);
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("three recoveries without progress fail the message instead of ending the process for ever", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "poison", taskId: "t" });
    for (let crash = 0; crash < 3; crash++) {
      await puppets.next("boss");
      await world.crash();
      await world.settle();
    }
    expect(await world.status(posted.key)).toBe("failed");
    const outcome = await world.runtime.outcomeOf(posted);
    expect(outcome.error).toMatchObject({ code: "agent_error", message: expect.stringContaining("3 times") });
    expect(puppets.begunTurns("boss")).toBe(0);
  });

  it("an idempotent action is run again with the same call id, three times in all", async () => {
    const { made, runs } = endless("dig", true);
    const { puppets, definition } = puppetOffice([made]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await puppets.next("boss")).answer(act("dig"));
    for (let crash = 0; crash < 3; crash++) {
      await world.settle();
      await world.crash();
    }
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(runs.map(({ callId }) => callId)).size).toBe(1);
    const next = await puppets.next("boss");
    expect(next.turn.results[0]).toMatchObject({
      ok: false,
      content: expect.stringMatching(/^outcome unknown/),
    });
    next.answer(complete("gave up"));
    await world.settle();
  });

  it("any other action is not: its outcome is unknown, and the agent decides", async () => {
    const { made, runs } = endless("pay", false);
    const { puppets, definition } = puppetOffice([made]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    (await puppets.next("boss")).answer(act("pay"));
    await world.settle();
    await world.crash();
    const next = await puppets.next("boss");
    expect(runs).toHaveLength(1);
    expect(next.turn.results[0]?.content).toBe("outcome unknown: the process ended while the action ran");
    const finished = world.store.entriesOf(posted.key).find((entry) => entry.t === "action_finished");
    expect(finished).toMatchObject({ unknown: true });
    next.answer(complete("asked the bank"));
    await world.settle();
  });

  it("[MAIL-OURS-02] an action that had finished is never run again", async () => {
    const { made, runs, finish } = endless("pay", true);
    const { puppets, definition } = puppetOffice([made]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    (await puppets.next("boss")).answer(act("pay"));
    await world.settle();
    finish[0]?.("paid");
    await world.settle();
    puppets.bury();
    await world.crash();
    const next = await puppets.next("boss");
    expect(next.turn.results[0]?.content).toBe("paid");
    expect(runs).toHaveLength(1);
    next.answer(complete("paid"));
    await world.settle();
  });

  it("an action that ran in a task that was paused does not keep its agent from working after the restart", async () => {
    const { made } = endless("dig", false);
    const { puppets, definition } = puppetOffice([made, action("sign")], ["sign"]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "dig"), wait());
    (await puppets.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "sign", taskId: "t" });
    (await puppets.next("boss")).answer(act("sign"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("paused");
    await world.crash();
    await world.runtime.answerBreakpoint(ULLA, "t", { results: { content: "signed" } });
    const ann = await puppets.next("ann");
    expect(ann.turn.results[0]?.content).toMatch(/^outcome unknown/);
    ann.answer(respond("boss", "who knows"));
    (await puppets.next("boss")).answer(complete("done"));
    await world.settle();
  });

  it("time limits of tasks go on after a restart", async () => {
    const { definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { taskTime: 5_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    await world.pass(3_000);
    await world.crash();
    await world.pass(2_000);
    expect(await world.status(posted.key)).toBe("failed");
  });

  it("a changed definition is journaled when the task is taken up, and mail of agents that are gone is returned", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "how many?"), wait());
    await world.settle();
    const [boss] = definition.agents;
    if (boss === undefined) throw new Error("there is a boss");
    await world.crash({ ...definition, agents: [boss], hash: "two" });
    const told = await puppets.next("boss");
    expect(told.turn.messages[0].message.subject).toBe("::agent_error::");
    expect(world.kinds(posted.key)).toContain("redefined");
    told.answer(complete("alone then"));
    await world.settle();
  });

  it("a running task is told at once when the swarm is redefined", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "how many?"), wait());
    const ann = await puppets.next("ann");
    const [boss] = definition.agents;
    if (boss === undefined) throw new Error("there is a boss");
    world.runtime.redefine({ ...definition, agents: [boss], hash: "two" });
    ann.answer(respond("boss", "I am still here"));
    const told = await puppets.next("boss");
    expect(told.turn.messages[0].message.subject).toBe("::agent_error::");
    told.answer(complete("alone then"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("from a file: another runtime on the same data goes on where the first one stopped", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-recovery-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const { puppets, definition } = puppetOffice();
    const first = await openSqliteStore({ directory, durability: "fast" });
    const clock = (await openWorld(definition)).clock;
    const ids = { uuid: () => crypto.randomUUID(), ordered: () => crypto.randomUUID() };
    const parts = { bus: createLocalBus(), clock, ids, definition };
    const posted = await new Runtime({ ...parts, store: first }).post(ULLA, { body: "one", taskId: "t" });
    await puppets.next("boss");
    await first.close();
    const second = await openSqliteStore({ directory, durability: "fast" });
    const runtime = new Runtime({ ...parts, bus: createLocalBus(), store: second });
    expect(await runtime.recover()).toBe(1);
    (await puppets.next("boss")).answer(complete("1"));
    expect((await runtime.outcomeOf(posted)).message.message.body).toBe("1");
    await runtime.close();
    await second.close();
  });
});

describe("a failing store", () => {
  it("a task that cannot be read is reported and keeps no other one from running", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const broken = await world.runtime.post(ULLA, { body: "broken" });
    const sound = await world.runtime.post(ULLA, { body: "sound" });
    await world.settle();
    puppets.bury();
    world.store.tear(broken.key);
    await world.crash();
    (await puppets.next("boss")).answer(complete("done"));
    expect((await world.runtime.outcomeOf(sound)).status).toBe("completed");
    expect(world.reports).toContainEqual(
      expect.objectContaining({ code: "load_failed", task: broken.key, message: "bad block" }),
    );
  });

  it("a message whose commit failed was not accepted, and the task id is free", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    world.store.refuse = () => new Error("disk full");
    await expect(world.runtime.post(ULLA, { body: "one", taskId: "t" })).rejects.toThrow("disk full");
    world.store.refuse = () => undefined;
    puppets.bury();
    expect(world.runtime.figures).toMatchObject({ liveTasks: 0, runningTasks: 0 });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    expect(posted.opened).toBe(true);
    (await puppets.next("boss")).answer(complete("1"));
    await posted.outcome;
  });

  it("a turn whose commit failed is asked again from what is on disk; nobody sees what was not written", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await puppets.next("boss");
    world.store.refuse = () => new Error("disk full");
    turn.answer(complete("lost"));
    await world.settle();
    world.store.refuse = () => undefined;
    (await puppets.next("boss")).answer(complete("1"));
    expect((await posted.outcome).message.message.body).toBe("1");
    expect((await world.runtime.outcomeOf(posted)).message.message.body).toBe("1");
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "turn", "completed"]);
    expect(world.runtime.figures).toMatchObject({ turns: 0, runningTasks: 0 });
  });

  it("a turn is not run when the entry that it is run again could not be written", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    await puppets.next("boss");
    let failures = 1;
    world.store.refuse = (batch) =>
      batch.appends.some(({ data }) => data.includes('"recovered"')) && failures-- > 0
        ? new Error("disk full")
        : undefined;
    await world.crash();
    (await puppets.next("boss")).answer(complete("1"));
    await world.settle();
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "recovered", "turn", "completed"]);
    expect(world.runtime.figures.runningTasks).toBe(0);
  });

  it("a task that someone else has written to is read again", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await puppets.next("boss");
    const entry = { t: "contributed", at: world.clock.now(), contributors: ["swarm:x@north"] };
    await world.store.commit({
      appends: [{ journal: posted.key, expected: 2, count: 1, data: JSON.stringify([entry]) }],
    });
    turn.answer(complete("stale"));
    await world.pass(100);
    const again = await puppets.next("boss");
    expect(again.turn.task.contributors).toContain("swarm:x@north");
    again.answer(complete("1"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("a message that comes before the task is read again finds it taken up, once", async () => {
    const { made, runs, finish } = endless("dig", false);
    const { puppets, definition } = puppetOffice([made]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await puppets.next("boss");
    world.store.refuse = () => new Error("disk full");
    turn.answer(complete("lost"));
    await world.settle();
    world.store.refuse = () => undefined;
    await world.runtime.post(ULLA, { body: "two", taskId: "t" });
    (await puppets.next("boss")).answer(act("dig"));
    await world.settle();
    expect(runs).toHaveLength(1);
    await world.pass(100);
    finish[0]?.("a hole");
    await world.settle();
    const results = world.store.entriesOf(posted.key).filter((entry) => entry.t === "action_finished");
    expect(results).toMatchObject([{ content: "a hole" }]);
  });
});
