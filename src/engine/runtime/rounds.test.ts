import { describe, expect, it } from "vitest";
import { act, ask, complete, respond, wait, withId } from "../../../test/kit/answers.js";
import { FakeAgents } from "../../../test/kit/fake-agents.js";
import { OTTO, openWorld, ULLA } from "../../../test/kit/simulated-world.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import type { Action } from "../agent.js";

function officeOfFakes(options: { actions?: readonly Action[]; breakpoints?: readonly string[] } = {}) {
  const fakeAgents = new FakeAgents();
  const actions = (options.actions ?? []).map(({ name }) => name);
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions,
        run: fakeAgents.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], actions, run: fakeAgents.mind("ann") }),
    ],
    options,
  );
  return { fakeAgents, definition };
}

describe("rounds", () => {
  it("[MAIL-TASK-03, MAIL-TASK-04] a posted message is durable when it is acknowledged, and its outcome is the end of the task", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "how many?" });
    expect(posted).toMatchObject({ opened: true, number: 2 });
    expect(await world.store.lastNumber(posted.key)).toBe(2);
    (await fakeAgents.next("boss")).answer(ask("ann", "how many?"), wait());
    (await fakeAgents.next("ann")).answer(respond("boss", "three"));
    (await fakeAgents.next("boss")).answer(complete("three"));
    const outcome = await posted.outcome;
    expect(outcome).toMatchObject({ status: "completed", message: { message: { body: "three" } } });
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("[MAIL-MULTI-01, MAIL-MULTI-02, MAIL-MULTI-03, MAIL-RUN-01] a message to a completed task resumes it, and the agents remember", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("1"));
    await first.outcome;
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    expect(second).toMatchObject({ key: first.key, opened: false });
    const turn = await fakeAgents.next("boss");
    expect(turn.turn.history.map((item) => item.kind)).toEqual(["message", "answer", "result", "message"]);
    turn.answer(complete("2"));
    expect((await second.outcome).message.message.body).toBe("2");
  });

  it("[AGENTS-T-17] the usage of a failed turn is journaled, with that of its interrupted attempts", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime, store } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "one", taskId: "t" });
    const first = await fakeAgents.next("boss");
    first.turn.reportUsage({ model: "m", inputTokens: 10, outputTokens: 1, cost: 0.5 });
    await runtime.post(ULLA, { body: "stop", taskId: "t", type: "interrupt" });
    const second = await fakeAgents.next("boss");
    second.turn.reportUsage({ model: "m", inputTokens: 20, outputTokens: 2, cost: 1 });
    second.fail(new Error("it broke"));
    await posted.outcome;
    expect(store.entriesOf(posted.key).find(({ t }) => t === "turn_failed")).toMatchObject({
      usage: { model: "m", inputTokens: 30, outputTokens: 3, cost: 1.5 },
    });
  });

  it("a completion does not release a waiter whose message no agent has taken", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    turn.answer(complete("1"));
    expect((await first.outcome).message.message.body).toBe("1");
    (await fakeAgents.next("boss")).answer(complete("2"));
    expect((await second.outcome).message.message.body).toBe("2");
  });

  it("several waiters whose messages were taken are all released by one completion", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const posted = [await runtime.post(ULLA, { body: "one", taskId: "t" })];
    (await fakeAgents.next("boss")).answer(ask("ann", "wait"), wait());
    posted.push(await runtime.post(ULLA, { body: "two", taskId: "t" }));
    (await fakeAgents.next("boss")).answer(complete("both"));
    const outcomes = await Promise.all(posted.map(({ outcome }) => outcome));
    expect(outcomes.map(({ message }) => message.message.body)).toEqual(["both", "both"]);
  });

  it("[MAIL-TASK-01, MAIL-INST-01, MAIL-RUN-02] two instances use the same task id independently", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const ulla = await runtime.post(ULLA, { body: "from ulla", taskId: "t" });
    const otto = await runtime.post(OTTO, { body: "from otto", taskId: "t" });
    expect(otto.key).not.toBe(ulla.key);
    for (let turn = 0; turn < 2; turn++) {
      const { turn: view, answer } = await fakeAgents.next("boss");
      expect(view.history).toHaveLength(1);
      answer(complete(`for ${view.instance.id}`));
    }
    expect((await ulla.outcome).message.message.body).toBe("for ulla");
    expect((await otto.outcome).message.message.body).toBe("for otto");
    expect(await runtime.find(ULLA, "t")).toBe(ulla.key);
    expect(await runtime.find({ role: "admin", id: "ulla" }, "t")).toBeUndefined();
  });

  it("two concurrent calls with the same new task id open one task", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const [one, two] = await Promise.all([
      runtime.post(ULLA, { body: "one", taskId: "t" }),
      runtime.post(ULLA, { body: "two", taskId: "t" }),
    ]);
    expect(one.key).toBe(two.key);
    expect([one.opened, two.opened].sort()).toEqual([false, true]);
    (await fakeAgents.next("boss")).answer(complete("1"));
    (await fakeAgents.next("boss")).answer(complete("2"));
    await Promise.all([one.outcome, two.outcome]);
  });

  it("when the agent that a user wrote to fails, the user gets the real error", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "one" });
    (await fakeAgents.next("boss")).fail(new Error("no coffee"));
    expect(await posted.outcome).toMatchObject({
      status: "failed",
      error: { code: "agent_error", message: "agent 'boss' failed: no coffee" },
    });
  });

  it("an invalid answer fails the agent's turn", async () => {
    const garbage: unknown[] = [
      undefined,
      null,
      "text",
      { calls: [{}] },
      { calls: [], text: 7 },
      { calls: "x" },
    ];
    for (const value of garbage) {
      const run = () => JSON.parse(JSON.stringify(value ?? null));
      const definition = swarm([agent("boss", { supervisor: true, entrypoint: true, run })]);
      const { runtime } = await openWorld(definition);
      const outcome = await (await runtime.post(ULLA, { body: "one" })).outcome;
      expect(outcome.error?.message).toContain("not an answer");
    }
  });

  it("unknown tasks, ids and entrypoints are refused and change nothing", async () => {
    const { definition } = officeOfFakes();
    const world = await openWorld(definition);
    const { runtime } = world;
    await expect(runtime.post(ULLA, { body: "x", taskId: "a\u0000b" })).rejects.toMatchObject({
      code: "bad_input",
    });
    await expect(runtime.post(ULLA, { body: "x", entrypoint: "ann" })).rejects.toMatchObject({
      code: "not_entrypoint",
      details: { entrypoints: ["boss"] },
    });
    await expect(runtime.cancel("nothing", "ulla")).rejects.toMatchObject({ code: "unknown_task" });
    await expect(
      runtime.answerBreakpoint(ULLA, "nothing", { results: { content: "x" } }),
    ).rejects.toMatchObject({ code: "unknown_task" });
    expect(world.store.journals.size).toBe(0);
  });

  it("resuming a task that does not exist is refused", async () => {
    const { definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    await expect(
      runtime.post(ULLA, { body: "x", taskId: "t", resumeFrom: "user_response" }),
    ).rejects.toMatchObject({ code: "unknown_task" });
  });

  it("a refused opening leaves its task id free", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    await expect(runtime.post(ULLA, { body: "x", taskId: "t", entrypoint: "zoe" })).rejects.toThrow("zoe");
    const posted = await runtime.post(ULLA, { body: "x", taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("1"));
    expect((await posted.outcome).status).toBe("completed");
  });
});

describe("breakpoints", () => {
  it("the waiter gets the calls, and the answers lead to the next outcome", async () => {
    const { fakeAgents, definition } = officeOfFakes({ actions: [action("sign")], breakpoints: ["sign"] });
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "sign it", taskId: "t" });
    (await fakeAgents.next("boss")).answer(withId("c1", act("sign")), withId("c2", act("sign")));
    const paused = await posted.outcome;
    expect(paused.status).toBe("paused");
    expect(paused.message.message.subject).toBe("::breakpoint_tool_call::");
    const results = [
      { callId: "c1", content: "yes" },
      { callId: "c2", content: "no" },
    ];
    await expect(runtime.answerBreakpoint(ULLA, "t", { results: results.slice(1) })).rejects.toMatchObject({
      code: "missing_results",
      details: { missing: ["c1"] },
    });
    const answered = await runtime.answerBreakpoint(ULLA, "t", { results });
    const turn = await fakeAgents.next("boss");
    expect(turn.turn.results.map(({ content }) => content)).toEqual(["yes", "no"]);
    turn.answer(complete("half"));
    expect(await answered.outcome).toMatchObject({ status: "completed" });
  });
});

describe("interrupts", () => {
  it("a running turn is aborted and runs again with the interrupt appended", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "slow", taskId: "t" });
    const first = await fakeAgents.next("boss");
    const { signal } = first.turn;
    await world.runtime.post(ULLA, { body: "quick", taskId: "t", type: "interrupt" });
    const second = await fakeAgents.next("boss");
    expect(signal.aborted).toBe(true);
    expect(second.turn.attempt).toBe(2);
    expect(second.turn.messages.map(({ message }) => message.body)).toEqual(["slow", "quick"]);
    first.answer(complete("too late"));
    second.answer(complete("done"));
    expect((await posted.outcome).message.message.body).toBe("done");
    expect(world.kinds(posted.key).filter((kind) => kind === "turn")).toHaveLength(1);
  });

  it("streamed text of an interrupted turn has a lower attempt than what follows", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "slow", taskId: "t" });
    const attempts: number[] = [];
    world.runtime.watchText(posted.key, ({ attempt }) => attempts.push(attempt));
    const { turn } = await fakeAgents.next("boss");
    await world.settle();
    for (const text of ["one", "two", "three"]) {
      turn.emitDelta(text);
      turn.resetDeltas();
    }
    await world.runtime.post(ULLA, { body: "quick", taskId: "t", type: "interrupt" });
    const second = await fakeAgents.next("boss");
    await world.settle();
    second.turn.emitDelta("four");
    second.answer(complete("done"));
    await posted.outcome;
    expect(attempts).toEqual([1, 2, 2, 3, 3, 4, 4]);
  });

  it("a running action finishes, the calls after it do not start, and the interrupt comes next", async () => {
    let finish: (value: string) => void = () => {};
    const wait = () => new Promise<string>((resolve) => (finish = resolve));
    const dig = action("dig", wait, { parallel: false });
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("dig"), act("dig"));
    await world.settle();
    await world.runtime.post(ULLA, { body: "stop", taskId: "t", type: "interrupt" });
    finish("half a hole");
    const next = await fakeAgents.next("boss");
    expect(next.turn.results.map(({ content }) => content)).toEqual(["half a hole", "interrupted"]);
    expect(next.turn.messages[0].message.body).toBe("stop");
    next.answer(complete("stopped"));
    await posted.outcome;
  });

  it("an interrupted turn does not run again if its task was cancelled meanwhile", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { speculation: false } });
    const posted = await world.runtime.post(ULLA, { body: "slow", taskId: "t" });
    await fakeAgents.next("boss");
    const interrupted = world.runtime.post(ULLA, { body: "quick", taskId: "t", type: "interrupt" });
    await Promise.resolve();
    // Both become durable in one group.
    await Promise.all([interrupted, world.runtime.cancel(posted.key, "user:ulla@desk")]);
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss"]);
    expect((await posted.outcome).status).toBe("cancelled");
  });
});

describe("parallel actions", () => {
  it("[AGT-ACT-10] six actions of one answer run at once, and their results are in call order", async () => {
    const finish: ((value: string) => void)[] = [];
    const dig = action("dig", () => new Promise<string>((resolve) => finish.push(resolve)));
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(...Array.from({ length: 6 }, () => act("dig")));
    await world.settle();
    expect(finish).toHaveLength(6);
    for (const index of [3, 0, 5, 1, 4, 2]) {
      finish[index]?.(`hole ${index}`);
      await world.settle();
    }
    const next = await fakeAgents.next("boss");
    expect(next.turn.results.map(({ content }) => content)).toEqual(
      [0, 1, 2, 3, 4, 5].map((index) => `hole ${index}`),
    );
    next.answer(complete("done"));
    await posted.outcome;
    const kinds = world.kinds(posted.key).filter((kind) => kind.startsWith("action"));
    expect(kinds).toEqual([...Array(6).fill("action_started"), ...Array(6).fill("action_finished")]);
  });

  it("[AGT-ACT-10] a cancellation stops the running ones, and those that have not begun never begin", async () => {
    const begun: AbortSignal[] = [];
    const dig = action("dig", (_, { signal }) => {
      begun.push(signal);
      return new Promise(() => {});
    });
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition, { limits: { actionsPerTask: 2 } });
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(act("dig"), act("dig"), act("dig"));
    await world.settle();
    await world.runtime.cancel(posted.key, "user:ulla@desk");
    await world.settle();
    expect(begun.map(({ aborted }) => aborted)).toEqual([true, true]);
    const started = world.kinds(posted.key).filter((kind) => kind === "action_started");
    expect(started).toHaveLength(2);
  });
});

describe("cancellation", () => {
  it("aborts running turns and actions, releases the waiters, and records the action's outcome as unknown", async () => {
    const signals: AbortSignal[] = [];
    const dig = action("dig", (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "dig"), wait());
    (await fakeAgents.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "and?", taskId: "t" });
    const boss = await fakeAgents.next("boss");
    signals.push(boss.turn.signal);
    await world.settle();
    await world.runtime.cancel(posted.key, "user:ulla@desk");
    expect((await posted.outcome).status).toBe("cancelled");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    await world.settle();
    expect(world.kinds(posted.key).at(-1)).toBe("action_finished");
    boss.answer(complete("too late"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("cancelled");
    expect(world.runtime.stats).toMatchObject({ turns: 0, runningTasks: 0 });
    await expect(world.runtime.cancel(posted.key, "user:ulla@desk")).rejects.toMatchObject({
      code: "already_ended",
    });
  });

  it("a later message resumes a cancelled task", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    await fakeAgents.next("boss");
    await runtime.cancel(first.key, "user:ulla@desk");
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    const turn = await fakeAgents.next("boss");
    expect(turn.turn.messages.map(({ message }) => message.body)).toEqual(["two"]);
    turn.answer(complete("2"));
    expect((await second.outcome).status).toBe("completed");
  });
});

describe("time limits", () => {
  it("a turn that exceeds its time limit fails, its signal fires, and its late answer is ignored", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { turnTimeout: 1_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one" });
    const turn = await fakeAgents.next("boss");
    const { signal } = turn.turn;
    await world.pass(999);
    expect(signal.aborted).toBe(false);
    await world.pass(1);
    expect(signal.aborted).toBe(true);
    expect((await posted.outcome).error).toMatchObject({ code: "turn_timeout" });
    turn.answer(complete("too late"));
    await world.settle();
    expect(await world.status(posted.key)).toBe("failed");
  });

  it("an action that exceeds its time limit has an unknown outcome, and the agent continues", async () => {
    const dig = action("dig", () => new Promise(() => {}), { timeLimit: 500 });
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig" });
    (await fakeAgents.next("boss")).answer(act("dig"));
    await world.pass(500);
    const next = await fakeAgents.next("boss");
    expect(next.turn.results[0]).toMatchObject({
      ok: false,
      content: "outcome unknown: action 'dig' did not finish within 500 ms",
    });
    next.answer(complete("gave up"));
    await posted.outcome;
  });

  it("a task that exceeds its time limit fails while an agent hangs, and its running turn is aborted", async () => {
    const signals: AbortSignal[] = [];
    const dig = action("dig", (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const { fakeAgents, definition } = officeOfFakes({ actions: [dig] });
    const world = await openWorld(definition, { limits: { taskTimeout: 5_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(ask("ann", "dig"), wait());
    (await fakeAgents.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "well?", taskId: "t" });
    signals.push((await fakeAgents.next("boss")).turn.signal);
    await world.pass(5_000);
    expect((await posted.outcome).error?.code).toBe("task_timeout");
    expect(await world.status(posted.key)).toBe("failed");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(world.runtime.stats.turns).toBe(0);
  });

  it("the time limit of a task restarts when it is resumed", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition, { limits: { taskTimeout: 5_000 } });
    const first = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await fakeAgents.next("boss")).answer(complete("1"));
    await first.outcome;
    await world.pass(60_000);
    const second = await world.runtime.post(ULLA, { body: "two", taskId: "t" });
    await world.pass(4_999);
    (await fakeAgents.next("boss")).answer(complete("2"));
    expect((await second.outcome).status).toBe("completed");
  });
});

describe("the step limit", () => {
  it("the last turn is offered only `task_complete`", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "one", maxSteps: 1 });
    const first = await fakeAgents.next("boss");
    expect(first.turn.toolChoice).toBe("required");
    first.answer(ask("ann", "how many?"), wait());
    const last = await fakeAgents.next("boss");
    expect(last.turn.tools.map(({ name }) => name)).toEqual(["task_complete"]);
    expect(last.turn.toolChoice).toEqual({ name: "task_complete" });
    last.answer(complete("no idea"));
    expect((await posted.outcome).status).toBe("completed");
    expect(fakeAgents.begunTurns("ann")).toBe(0);
  });
});

describe("manual mode", () => {
  it("agents run only on request, and a step takes all waiting mail", async () => {
    const { fakeAgents, definition } = officeOfFakes();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "play", taskId: "t", manual: true });
    await world.runtime.post(ULLA, { body: "fair", taskId: "t" });
    await world.settle();
    expect(fakeAgents.began).toEqual([]);
    await world.runtime.manualStep(ULLA, "t", "boss", "your move", { type: "request", targets: ["ann"] });
    const step = await fakeAgents.next("boss");
    expect(step.turn.messages.map(({ message }) => message.body)).toEqual(["play", "fair", "your move"]);
    expect(step.turn.toolChoice).toBe("auto");
    step.say("e4");
    await world.settle();
    expect(fakeAgents.began).toEqual(["boss"]);
    await world.runtime.read(posted.key, (state) => {
      expect(state.agents.get("ann")?.mailbox.map((mail) => mail.message.message.body)).toEqual(["e4"]);
    });
    await expect(world.runtime.post(ULLA, { body: "x", taskId: "t", manual: true })).resolves.toMatchObject({
      opened: false,
    });
  });
});
