import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { act, ask, complete, respond, wait } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import { createLocalBus } from "../../bus/index.js";
import { openSqliteStore } from "../../store/index.js";
import type { Action } from "../agent.js";
import { Runtime } from "./runtime.js";

function officeOfFakes(actions: readonly Action[] = [], breakpoints: readonly string[] = [], hash = "one") {
  const fakeAgents = new FakeAgents();
  const names = actions.map(({ name }) => name);
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions: names,
        run: fakeAgents.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], actions: names, run: fakeAgents.mind("ann") }),
    ],
    { actions, breakpoints, hash },
  );
  return { fakeAgents, definition };
}

/** An action that never ends by itself, and its recorded calls. */
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
  it("all journals are recovered from a store that reads only some of them at a time", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    for (const taskId of ["a", "b", "c"]) {
      await world.runtime.post(ULLA, { body: taskId, taskId });
      await fakeAgents.next("boss");
    }
    const { readMany } = world.store;
    world.store.readMany = (journals) => readMany(journals.slice(0, 1));
    await world.crash();
    const bodies = new Set<string>();
    for (let n = 0; n < 3; n++) bodies.add((await fakeAgents.next("boss")).turn.messages[0].message.body);
    expect(bodies).toEqual(new Set(["a", "b", "c"]));
  });

  it("a large journal is read in pages, again if a page cannot be read, and delays no other task", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    for (const taskId of ["a", "b"]) {
      await world.runtime.post(ULLA, { body: taskId, taskId });
      await fakeAgents.next("boss");
    }
    const { read, readMany } = world.store;
    world.store.readMany = async (journals) => {
      const [first, ...others] = await readMany(journals);
      return first === undefined ? [] : [{ ...first, rows: [], more: true }, ...others];
    };
    let failures = 1;
    world.store.read = (...args) =>
      failures-- > 0 ? Promise.reject(new Error("the disk is busy")) : read(...args);
    await world.crash();
    const bodies = new Set<string>();
    for (let n = 0; n < 2; n++) {
      const turn = fakeAgents.next("boss");
      world.clock.advance(1_000);
      bodies.add((await turn).turn.messages[0].message.body);
    }
    expect(bodies).toEqual(new Set(["a", "b"]));
  });

  it("an interrupted turn runs again, and its answer takes effect once", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const before = await fakeAgents.next("boss");
    await world.crash();
    const after = await fakeAgents.next("boss");
    expect(after.turn.attempt).toBe(2);
    before.answer(complete("from the grave"));
    after.answer(complete("1"));
    await world.settle();
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "recovered", "turn", "completed"]);
    await expect(posted.outcome).rejects.toMatchObject({ code: "closed" });
    const outcome = await world.runtime.outcomeOf(posted);
    expect(outcome.message.message.body).toBe("1");
  });

  it("sent messages are delivered after a restart, none of them twice", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "how many?"), wait());
    await world.settle();
    fakeAgents.dropTurns();
    await world.crash();
    (await fakeAgents.next("ann")).answer(respond("boss", "three"));
    await world.settle();
    fakeAgents.dropTurns();
    await world.crash();
    (await fakeAgents.next("boss")).answer(complete("three"));
    await world.settle();
    const sent = world.store.entriesOf(posted.key).filter((entry) => entry.t === "sent");
    expect(sent.map(({ message }) => message.message.body)).toEqual(["one", "how many?", "three"]);
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("three recoveries without progress fail the message instead of crashing the process forever", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "poison", taskId: "t" });
    for (let crash = 0; crash < 3; crash++) {
      await fakeAgents.next("boss");
      await world.crash();
      await world.settle();
    }
    expect(await world.status(posted.key)).toBe("failed");
    const outcome = await world.runtime.outcomeOf(posted);
    expect(outcome.error).toMatchObject({ code: "agent_error", message: expect.stringContaining("3 times") });
    expect(fakeAgents.begunTurns("boss")).toBe(0);
  });

  it("an idempotent action runs again with the same call id, at most three times in total", async () => {
    const { made, runs } = endless("dig", true);
    const { fakeAgents, definition } = officeOfFakes([made]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("dig"));
    for (let crash = 0; crash < 3; crash++) {
      await world.settle();
      await world.crash();
    }
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(new Set(runs.map(({ callId }) => callId)).size).toBe(1);
    const next = await fakeAgents.next("boss");
    expect(next.turn.results[0]).toMatchObject({
      ok: false,
      content: expect.stringMatching(/^outcome unknown/),
    });
    next.answer(complete("gave up"));
    await world.settle();
  });

  it("an action that is not idempotent does not run again: its agent receives an unknown outcome", async () => {
    const { made, runs } = endless("pay", false);
    const { fakeAgents, definition } = officeOfFakes([made]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("pay"));
    await world.settle();
    await world.crash();
    const next = await fakeAgents.next("boss");
    expect(runs).toHaveLength(1);
    expect(next.turn.results[0]?.content).toBe("outcome unknown: the process ended while the action ran");
    const finished = world.store.entriesOf(posted.key).find((entry) => entry.t === "action_finished");
    expect(finished).toMatchObject({ unknown: true });
    next.answer(complete("asked the bank"));
    await world.settle();
  });

  it("[AGT-ACT-11] of several running actions each one is settled on its own after a crash", async () => {
    const look = endless("look", true);
    const pay = endless("pay", false);
    const { fakeAgents, definition } = officeOfFakes([look.made, pay.made]);
    const world = await openWorld(definition, { limits: { actionsPerTask: 3 } });
    await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("pay"), act("look"), act("pay"), act("look"));
    await world.settle();
    pay.finish[0]?.("paid");
    await world.settle();
    expect([look.runs.length, pay.runs.length]).toEqual([2, 2]);
    await world.crash();
    await world.settle();
    expect([look.runs.length, pay.runs.length]).toEqual([4, 2]);
    look.finish[3]?.("second");
    look.finish[2]?.("first");
    const next = await fakeAgents.next("boss");
    expect(next.turn.results.map(({ content }) => content)).toEqual([
      "paid",
      "first",
      "outcome unknown: the process ended while the action ran",
      "second",
    ]);
    next.answer(complete("asked the bank"));
    await world.settle();
  });

  it("[MAIL-OURS-02] a finished action never runs again", async () => {
    const { made, runs, finish } = endless("pay", true);
    const { fakeAgents, definition } = officeOfFakes([made]);
    const world = await openWorld(definition);
    await world.runtime.post(ULLA, { body: "pay", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("pay"));
    await world.settle();
    finish[0]?.("paid");
    await world.settle();
    fakeAgents.dropTurns();
    await world.crash();
    const next = await fakeAgents.next("boss");
    expect(next.turn.results[0]?.content).toBe("paid");
    expect(runs).toHaveLength(1);
    next.answer(complete("paid"));
    await world.settle();
  });

  it("an action that was running in a paused task does not block its agent after the restart", async () => {
    const { made } = endless("dig", false);
    const { fakeAgents, definition } = officeOfFakes([made, action("sign")], ["sign"]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "go", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "dig"), wait());
    (await fakeAgents.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "sign", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("sign"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("paused");
    await world.crash();
    await world.runtime.answerBreakpoint(ULLA, "t", { results: { content: "signed" } });
    const ann = await fakeAgents.next("ann");
    expect(ann.turn.results[0]?.content).toMatch(/^outcome unknown/);
    ann.answer(respond("boss", "who knows"));
    (await fakeAgents.next("boss")).answer(complete("done"));
    await world.settle();
  });

  it("the time limit of a task still applies after a restart", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { taskTimeout: 5_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    await world.pass(3_000);
    await world.crash();
    await world.pass(2_000);
    expect(await world.status(posted.key)).toBe("failed");
  });

  it("a changed definition is journaled when the task is recovered, and mail of removed agents is returned", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "how many?"), wait());
    await world.settle();
    const [boss] = definition.agents;
    if (boss === undefined) throw new Error("there is a boss");
    await world.crash({ ...definition, agents: [boss], hash: "two" });
    const told = await fakeAgents.next("boss");
    expect(told.turn.messages[0].message.subject).toBe("::agent_error::");
    expect(world.kinds(posted.key)).toContain("redefined");
    told.answer(complete("alone then"));
    await world.settle();
  });

  it("a new definition is journaled in a running task immediately", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "how many?"), wait());
    const ann = await fakeAgents.next("ann");
    const [boss] = definition.agents;
    if (boss === undefined) throw new Error("there is a boss");
    world.runtime.redefine({ ...definition, agents: [boss], hash: "two" });
    ann.answer(respond("boss", "I am still here"));
    const told = await fakeAgents.next("boss");
    expect(told.turn.messages[0].message.subject).toBe("::agent_error::");
    told.answer(complete("alone then"));
    expect((await posted.outcome).status).toBe("completed");
  });

  it("from a file: another runtime on the same data continues where the first one stopped", async () => {
    const directory = mkdtempSync(join(tmpdir(), "mailroom-recovery-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const { fakeAgents, definition } = officeOfFakes();
    const first = await openSqliteStore({ directory, durability: "fast" });
    const clock = (await openWorld(definition)).clock;
    const ids = { uuid: () => crypto.randomUUID(), ordered: () => crypto.randomUUID() };
    const parts = { bus: createLocalBus(), clock, ids, definition };
    const posted = await new Runtime({ ...parts, store: first }).post(ULLA, { body: "one", taskId: "t" });
    await fakeAgents.next("boss");
    await first.close();
    const second = await openSqliteStore({ directory, durability: "fast" });
    const runtime = new Runtime({ ...parts, bus: createLocalBus(), store: second });
    expect(await runtime.recover()).toBe(1);
    (await fakeAgents.next("boss")).answer(complete("1"));
    expect((await runtime.outcomeOf(posted)).message.message.body).toBe("1");
    await runtime.close();
    await second.close();
  });
});

describe("a failing store", () => {
  it("a task that cannot be read is reported and does not block the others", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const broken = await world.runtime.post(ULLA, { body: "broken" });
    const sound = await world.runtime.post(ULLA, { body: "sound" });
    await world.settle();
    fakeAgents.dropTurns();
    world.store.damage(broken.key);
    await world.crash();
    (await fakeAgents.next("boss")).answer(complete("done"));
    expect((await world.runtime.outcomeOf(sound)).status).toBe("completed");
    expect(world.reports).toContainEqual(
      expect.objectContaining({ code: "load_failed", task: broken.key, message: "bad block" }),
    );
  });

  it("a message whose commit fails is rejected, and its task id stays free", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    world.store.refuse = () => new Error("disk full");
    await expect(world.runtime.post(ULLA, { body: "one", taskId: "t" })).rejects.toThrow("disk full");
    world.store.refuse = () => undefined;
    fakeAgents.dropTurns();
    expect(world.runtime.stats).toMatchObject({ liveTasks: 0, runningTasks: 0 });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    expect(posted.opened).toBe(true);
    (await fakeAgents.next("boss")).answer(complete("1"));
    await posted.outcome;
  });

  it("a turn whose commit fails runs again from the durable state, and no reader sees the lost answer", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    world.store.refuse = () => new Error("disk full");
    turn.answer(complete("lost"));
    await world.settle();
    world.store.refuse = () => undefined;
    (await fakeAgents.next("boss")).answer(complete("1"));
    expect((await posted.outcome).message.message.body).toBe("1");
    expect((await world.runtime.outcomeOf(posted)).message.message.body).toBe("1");
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "turn", "completed"]);
    expect(world.runtime.stats).toMatchObject({ turns: 0, runningTasks: 0 });
  });

  it("a turn does not run again if its `recovered` entry cannot be written", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    await fakeAgents.next("boss");
    let failures = 1;
    world.store.refuse = (batch) =>
      batch.appends.some(({ data }) => data.includes('"recovered"')) && failures-- > 0
        ? new Error("disk full")
        : undefined;
    await world.crash();
    (await fakeAgents.next("boss")).answer(complete("1"));
    await world.settle();
    expect(world.kinds(posted.key)).toEqual(["opened", "sent", "recovered", "turn", "completed"]);
    expect(world.runtime.stats.runningTasks).toBe(0);
  });

  it("a task is reloaded after another writer has appended to its journal", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    const entry = { t: "contributed", at: world.clock.now(), contributors: ["swarm:x@north"] };
    await world.store.commit({
      appends: [{ journal: posted.key, expected: 2, count: 1, data: JSON.stringify([entry]) }],
    });
    turn.answer(complete("stale"));
    await world.pass(100);
    const again = await fakeAgents.next("boss");
    expect(again.turn.task.contributors).toContain("swarm:x@north");
    again.answer(complete("1"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("a message that arrives before the task is reloaded is processed once", async () => {
    const { made, runs, finish } = endless("dig", false);
    const { fakeAgents, definition } = officeOfFakes([made]);
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    world.store.refuse = () => new Error("disk full");
    turn.answer(complete("lost"));
    await world.settle();
    world.store.refuse = () => undefined;
    await world.runtime.post(ULLA, { body: "two", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("dig"));
    await world.settle();
    expect(runs).toHaveLength(1);
    await world.pass(100);
    finish[0]?.("a hole");
    await world.settle();
    const results = world.store.entriesOf(posted.key).filter((entry) => entry.t === "action_finished");
    expect(results).toMatchObject([{ content: "a hole" }]);
  });
});
