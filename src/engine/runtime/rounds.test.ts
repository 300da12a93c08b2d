import { describe, expect, it } from "vitest";
import { act, ask, complete, respond, wait, withId } from "../../../test/kit/answers.js";
import { Puppets } from "../../../test/kit/puppets.js";
import { action, agent, swarm } from "../../../test/kit/swarms.js";
import { OTTO, openWorld, ULLA } from "../../../test/kit/world.js";
import type { Action } from "../agent.js";

function puppetOffice(options: { actions?: readonly Action[]; breakpoints?: readonly string[] } = {}) {
  const puppets = new Puppets();
  const actions = (options.actions ?? []).map(({ name }) => name);
  const definition = swarm(
    [
      agent("boss", {
        targets: ["ann"],
        supervisor: true,
        entrypoint: true,
        actions,
        run: puppets.mind("boss"),
      }),
      agent("ann", { targets: ["boss"], actions, run: puppets.mind("ann") }),
    ],
    options,
  );
  return { puppets, definition };
}

describe("rounds", () => {
  it("[MAIL-TASK-03, MAIL-TASK-04] a posted message is durable when it is acknowledged, and its outcome is what the task ends with", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "how many?" });
    expect(posted).toMatchObject({ opened: true, number: 2 });
    expect(await world.store.lastNumber(posted.key)).toBe(2);
    (await puppets.next("boss")).answer(ask("ann", "how many?"), wait());
    (await puppets.next("ann")).answer(respond("boss", "three"));
    (await puppets.next("boss")).answer(complete("three"));
    const outcome = await posted.outcome;
    expect(outcome).toMatchObject({ status: "completed", message: { message: { body: "three" } } });
    expect(await world.status(posted.key)).toBe("completed");
  });

  it("[MAIL-MULTI-01, MAIL-MULTI-02, MAIL-MULTI-03, MAIL-RUN-01] a message to a completed task resumes it, and the agents remember", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(complete("1"));
    await first.outcome;
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    expect(second).toMatchObject({ key: first.key, opened: false });
    const turn = await puppets.next("boss");
    expect(turn.turn.history.map((item) => item.kind)).toEqual(["message", "answer", "result", "message"]);
    turn.answer(complete("2"));
    expect((await second.outcome).message.message.body).toBe("2");
  });

  it("each waiter waits for its own message: a completion does not release one whose message nobody has taken", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    const turn = await puppets.next("boss");
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    turn.answer(complete("1"));
    expect((await first.outcome).message.message.body).toBe("1");
    (await puppets.next("boss")).answer(complete("2"));
    expect((await second.outcome).message.message.body).toBe("2");
  });

  it("several waiters whose messages were taken are all released by one completion", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const posted = [await runtime.post(ULLA, { body: "one", taskId: "t" })];
    (await puppets.next("boss")).answer(ask("ann", "wait"), wait());
    posted.push(await runtime.post(ULLA, { body: "two", taskId: "t" }));
    (await puppets.next("boss")).answer(complete("both"));
    const outcomes = await Promise.all(posted.map(({ outcome }) => outcome));
    expect(outcomes.map(({ message }) => message.message.body)).toEqual(["both", "both"]);
  });

  it("[MAIL-TASK-01, MAIL-INST-01, MAIL-RUN-02] two instances use the same task id and never notice each other", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const ulla = await runtime.post(ULLA, { body: "from ulla", taskId: "t" });
    const otto = await runtime.post(OTTO, { body: "from otto", taskId: "t" });
    expect(otto.key).not.toBe(ulla.key);
    for (let turn = 0; turn < 2; turn++) {
      const { turn: view, answer } = await puppets.next("boss");
      expect(view.history).toHaveLength(1);
      answer(complete(`for ${view.instance.id}`));
    }
    expect((await ulla.outcome).message.message.body).toBe("for ulla");
    expect((await otto.outcome).message.message.body).toBe("for otto");
    expect(await runtime.find(ULLA, "t")).toBe(ulla.key);
    expect(await runtime.find({ role: "admin", id: "ulla" }, "t")).toBeUndefined();
  });

  it("two calls that open the same task id at once open one task", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const [one, two] = await Promise.all([
      runtime.post(ULLA, { body: "one", taskId: "t" }),
      runtime.post(ULLA, { body: "two", taskId: "t" }),
    ]);
    expect(one.key).toBe(two.key);
    expect([one.opened, two.opened].sort()).toEqual([false, true]);
    (await puppets.next("boss")).answer(complete("1"));
    (await puppets.next("boss")).answer(complete("2"));
    await Promise.all([one.outcome, two.outcome]);
  });

  it("when the agent that a user wrote to fails, the user gets the real error", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "one" });
    (await puppets.next("boss")).fail(new Error("no coffee"));
    expect(await posted.outcome).toMatchObject({
      status: "failed",
      error: { code: "agent_error", message: "agent 'boss' failed: no coffee" },
    });
  });

  it("an answer that is none is a failure of the agent, whatever it returned", async () => {
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
    const { definition } = puppetOffice();
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
    const { definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    await expect(
      runtime.post(ULLA, { body: "x", taskId: "t", resumeFrom: "user_response" }),
    ).rejects.toMatchObject({ code: "unknown_task" });
  });

  it("a refused opening leaves its task id free for the next one", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    await expect(runtime.post(ULLA, { body: "x", taskId: "t", entrypoint: "zoe" })).rejects.toThrow("zoe");
    const posted = await runtime.post(ULLA, { body: "x", taskId: "t" });
    (await puppets.next("boss")).answer(complete("1"));
    expect((await posted.outcome).status).toBe("completed");
  });
});

describe("breakpoints", () => {
  it("the waiter gets the calls, and the answers lead to the next outcome", async () => {
    const { puppets, definition } = puppetOffice({ actions: [action("sign")], breakpoints: ["sign"] });
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "sign it", taskId: "t" });
    (await puppets.next("boss")).answer(withId("c1", act("sign")), withId("c2", act("sign")));
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
    const turn = await puppets.next("boss");
    expect(turn.turn.results.map(({ content }) => content)).toEqual(["yes", "no"]);
    turn.answer(complete("half"));
    expect(await answered.outcome).toMatchObject({ status: "completed" });
  });
});

describe("interrupts", () => {
  it("a model call under way is aborted and asked again with the interrupt appended", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "slow", taskId: "t" });
    const first = await puppets.next("boss");
    const { signal } = first.turn;
    await world.runtime.post(ULLA, { body: "quick", taskId: "t", type: "interrupt" });
    const second = await puppets.next("boss");
    expect(signal.aborted).toBe(true);
    expect(second.turn.attempt).toBe(2);
    expect(second.turn.messages.map(({ message }) => message.body)).toEqual(["slow", "quick"]);
    first.answer(complete("too late"));
    second.answer(complete("done"));
    expect((await posted.outcome).message.message.body).toBe("done");
    expect(world.kinds(posted.key).filter((kind) => kind === "turn")).toHaveLength(1);
  });

  it("an action under way finishes, the calls behind it do not start, and the interrupt comes next", async () => {
    let finish: (value: string) => void = () => {};
    const dig = action("dig", () => new Promise<string>((resolve) => (finish = resolve)));
    const { puppets, definition } = puppetOffice({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await puppets.next("boss")).answer(act("dig"), act("dig"));
    await world.settle();
    await world.runtime.post(ULLA, { body: "stop", taskId: "t", type: "interrupt" });
    finish("half a hole");
    const next = await puppets.next("boss");
    expect(next.turn.results.map(({ content }) => content)).toEqual(["half a hole", "interrupted"]);
    expect(next.turn.messages[0].message.body).toBe("stop");
    next.answer(complete("stopped"));
    await posted.outcome;
  });

  it("an interrupted turn whose task was cancelled meanwhile is not asked again", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { speculation: false } });
    const posted = await world.runtime.post(ULLA, { body: "slow", taskId: "t" });
    await puppets.next("boss");
    const interrupted = world.runtime.post(ULLA, { body: "quick", taskId: "t", type: "interrupt" });
    await Promise.resolve();
    // Both become durable in one group.
    await Promise.all([interrupted, world.runtime.cancel(posted.key, "user:ulla@desk")]);
    await world.settle();
    expect(puppets.began).toEqual(["boss"]);
    expect((await posted.outcome).status).toBe("cancelled");
  });
});

describe("cancellation", () => {
  it("aborts what is under way, releases the waiters, and an action's end is unknown", async () => {
    const signals: AbortSignal[] = [];
    const dig = action("dig", (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const { puppets, definition } = puppetOffice({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "dig"), wait());
    (await puppets.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "and?", taskId: "t" });
    const boss = await puppets.next("boss");
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
    expect(world.runtime.figures).toMatchObject({ turns: 0, runningTasks: 0 });
    await expect(world.runtime.cancel(posted.key, "user:ulla@desk")).rejects.toMatchObject({
      code: "already_ended",
    });
  });

  it("a later message resumes a cancelled task", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const first = await runtime.post(ULLA, { body: "one", taskId: "t" });
    await puppets.next("boss");
    await runtime.cancel(first.key, "user:ulla@desk");
    const second = await runtime.post(ULLA, { body: "two", taskId: "t" });
    const turn = await puppets.next("boss");
    expect(turn.turn.messages.map(({ message }) => message.body)).toEqual(["two"]);
    turn.answer(complete("2"));
    expect((await second.outcome).status).toBe("completed");
  });
});

describe("time limits", () => {
  it("a turn that takes too long fails, its signal fires, and its late answer counts for nothing", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { turnTime: 1_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one" });
    const turn = await puppets.next("boss");
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

  it("an action that takes too long has an unknown outcome, and the agent goes on", async () => {
    const dig = action("dig", () => new Promise(() => {}), { timeLimit: 500 });
    const { puppets, definition } = puppetOffice({ actions: [dig] });
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "dig" });
    (await puppets.next("boss")).answer(act("dig"));
    await world.pass(500);
    const next = await puppets.next("boss");
    expect(next.turn.results[0]).toMatchObject({
      ok: false,
      content: "outcome unknown: action 'dig' did not finish within 500 ms",
    });
    next.answer(complete("gave up"));
    await posted.outcome;
  });

  it("a task whose time is up fails although an agent hangs, and what is under way is told to stop", async () => {
    const signals: AbortSignal[] = [];
    const dig = action("dig", (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const { puppets, definition } = puppetOffice({ actions: [dig] });
    const world = await openWorld(definition, { limits: { taskTime: 5_000 } });
    const posted = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(ask("ann", "dig"), wait());
    (await puppets.next("ann")).answer(act("dig"));
    await world.runtime.post(ULLA, { body: "well?", taskId: "t" });
    signals.push((await puppets.next("boss")).turn.signal);
    await world.pass(5_000);
    expect((await posted.outcome).error?.code).toBe("task_timeout");
    expect(await world.status(posted.key)).toBe("failed");
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(world.runtime.figures.turns).toBe(0);
  });

  it("the time of a task begins anew when it goes on", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition, { limits: { taskTime: 5_000 } });
    const first = await world.runtime.post(ULLA, { body: "one", taskId: "t" });
    (await puppets.next("boss")).answer(complete("1"));
    await first.outcome;
    await world.pass(60_000);
    const second = await world.runtime.post(ULLA, { body: "two", taskId: "t" });
    await world.pass(4_999);
    (await puppets.next("boss")).answer(complete("2"));
    expect((await second.outcome).status).toBe("completed");
  });
});

describe("the step limit", () => {
  it("the last turn is offered `task_complete` and nothing else", async () => {
    const { puppets, definition } = puppetOffice();
    const { runtime } = await openWorld(definition);
    const posted = await runtime.post(ULLA, { body: "one", maxSteps: 1 });
    const first = await puppets.next("boss");
    expect(first.turn.toolChoice).toBe("required");
    first.answer(ask("ann", "how many?"), wait());
    const last = await puppets.next("boss");
    expect(last.turn.tools.map(({ name }) => name)).toEqual(["task_complete"]);
    expect(last.turn.toolChoice).toEqual({ name: "task_complete" });
    last.answer(complete("no idea"));
    expect((await posted.outcome).status).toBe("completed");
    expect(puppets.begunTurns("ann")).toBe(0);
  });
});

describe("manual mode", () => {
  it("agents run only when told to, and a step takes everything that has gathered", async () => {
    const { puppets, definition } = puppetOffice();
    const world = await openWorld(definition);
    const posted = await world.runtime.post(ULLA, { body: "play", taskId: "t", manual: true });
    await world.runtime.post(ULLA, { body: "fair", taskId: "t" });
    await world.settle();
    expect(puppets.began).toEqual([]);
    await world.runtime.manualStep(ULLA, "t", "boss", "your move", { type: "request", targets: ["ann"] });
    const step = await puppets.next("boss");
    expect(step.turn.messages.map(({ message }) => message.body)).toEqual(["play", "fair", "your move"]);
    expect(step.turn.toolChoice).toBe("auto");
    step.say("e4");
    await world.settle();
    expect(puppets.began).toEqual(["boss"]);
    await world.runtime.read(posted.key, (state) => {
      expect(state.agents.get("ann")?.mailbox.map((mail) => mail.message.message.body)).toEqual(["e4"]);
    });
    await expect(world.runtime.post(ULLA, { body: "x", taskId: "t", manual: true })).resolves.toMatchObject({
      opened: false,
    });
  });
});
