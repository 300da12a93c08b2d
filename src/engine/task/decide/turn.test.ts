import { describe, expect, it } from "vitest";
import { act, ask, complete, interrupt, respond, wait, withId } from "../../../../test/kit/answers.js";
import { type ActionOptions, action, agent, office, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";

const withActions = (fill: ActionOptions = {}) =>
  office({ actions: [action("dig"), action("fill", undefined, fill)] });

describe("a turn", () => {
  it("taking the message, the answer and the sent messages are one append", () => {
    const task = new TestTask(office());
    const entries = task.turn("boss", ask("ann", "one"), ask("bob", "two"));
    expect(task.kinds(entries)).toEqual(["turn", "sent", "sent"]);
  });

  it("an answer to a message that is no longer waiting is refused and changes nothing", () => {
    const task = new TestTask(office());
    const took = [task.head("boss")];
    task.turn("boss", ask("ann", "one"));
    expect(
      task.refusalCode({ type: "answer", agent: "boss", took, answer: { text: "late", calls: [] } }),
    ).toBe("stale_turn");
  });

  it("a second turn of an agent with unfinished calls is refused", () => {
    const task = new TestTask(withActions());
    task.post("more");
    task.turn("boss", act("dig"));
    expect(
      task.refusalCode({
        type: "answer",
        agent: "boss",
        took: [task.head("boss")],
        answer: { text: "me too", calls: [] },
      }),
    ).toBe("stale_turn");
  });

  it("calls with the same id are distinguished, so that each gets its own result", () => {
    const task = new TestTask(office());
    task.turn("boss", withId("1", ask("ann", "one")), withId("1", ask("ann", "two")));
    expect(task.results("boss")).toHaveLength(2);
    const ids = task.agent("boss").history.flatMap((item) => (item.kind === "result" ? [item.callId] : []));
    expect(new Set(ids).size).toBe(2);
  });

  it("running calls of two agents with the same id are distinguished", () => {
    const task = new TestTask(withActions());
    task.turn("boss", ask("ann", "dig"), ask("bob", "dig"));
    task.turn("ann", withId("1", act("dig")));
    task.turn("bob", withId("1", act("dig")));
    expect(task.agent("ann").turn?.running[0]?.call.id).not.toBe(task.agent("bob").turn?.running[0]?.call.id);
  });

  it("[AGENTS-T-23] calls after the completion of the task are not executed", () => {
    const task = new TestTask(withActions());
    const entries = task.turn("boss", act("dig"), complete("done"), act("fill"), ask("ann", "more?"));
    expect(task.kinds(entries)).toEqual(["turn", "action_started"]);
    const ended = task.finish("boss", "dug");
    expect(task.kinds(ended).slice(0, 4)).toEqual(["action_finished", "completed", "result", "result"]);
    expect(task.results("boss").slice(2)).toEqual([
      "error fill: not carried out: the task was completed",
      "error send_request: not carried out: the task was completed",
    ]);
    expect(task.agent("boss").turn).toBeUndefined();
  });

  it("an answer without text and calls fails the turn", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "well?"));
    task.say("ann", "  ");
    expect(task.waiting("boss")).toEqual([
      "::agent_error::: Agent 'ann' failed while it handled your message: it returned neither text nor a tool call",
    ]);
  });
});

describe("text without a tool call", () => {
  it("answers only the agent that asked", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    task.say("ann", "three");
    expect(task.waiting("boss")).toEqual([": three"]);
    expect(task.waiting("bob")).toEqual([]);
    expect(task.state.outstanding).toEqual([]);
  });

  it("is an error as an answer to a user, which only a completion answers", () => {
    const task = new TestTask(office());
    task.say("boss", "three");
    expect(task.waiting("boss")[0]).toMatch(/^::tool_call_error::.*`task_complete`.*three$/);
  });

  it("does not reach agents outside the comm targets", () => {
    const task = new TestTask(
      swarm([
        agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true }),
        agent("ann", { targets: ["bob"] }),
        agent("bob", { targets: ["ann"] }),
      ]),
    );
    task.turn("boss", ask("ann", "how many?"));
    task.say("ann", "three");
    expect(task.waiting("boss")).toEqual([]);
    expect(task.waiting("ann")[0]).toContain("::invalid_recipient::");
  });

  it("does not enter a full mailbox", () => {
    const task = new TestTask(office(), { limits: { mailbox: 1 } });
    task.turn("boss", ask("ann", "how many?"));
    task.post("one more thing");
    task.say("ann", "three");
    expect(task.waiting("boss")).toEqual(["task: one more thing"]);
    expect(task.waiting("ann")[0]).toContain("is full");
  });
});

describe("actions", () => {
  it("an action is journaled before it runs, and its result wakes the agent", () => {
    const task = new TestTask(withActions());
    expect(task.kinds(task.turn("boss", act("dig")))).toEqual(["turn", "action_started"]);
    expect(task.kinds(task.finish("boss", "a hole"))).toEqual(["action_finished", "sent"]);
    expect(task.results("boss")).toEqual(["ok dig: a hole"]);
    expect(task.waiting("boss")[0]).toMatch(/^::action_complete::/);
  });

  it("adjacent actions start together, later calls follow the last, and results are in call order", () => {
    const task = new TestTask(withActions());
    const entries = task.turn("boss", act("dig"), act("fly"), act("fill"), ask("ann", "look"));
    expect(task.kinds(entries)).toEqual(["turn", "action_started", "result", "action_started"]);
    expect(task.kinds(task.finish("boss", "done", true, "fill"))).toEqual(["action_finished"]);
    expect(task.waiting("ann")).toEqual([]);
    expect(task.results("boss").map((result) => result.split(":")[0])).toEqual(["error fly", "ok fill"]);
    task.finish("boss", "done", true, "dig");
    expect(task.results("boss").map((result) => result.split(":")[0])).toEqual([
      "ok dig",
      "error fly",
      "ok fill",
      "ok send_request",
    ]);
    expect(task.waiting("ann")).toHaveLength(1);
  });

  it("an action with parallel: false runs alone, and one notice follows the last", () => {
    const task = new TestTask(withActions({ parallel: false }));
    const running = () => task.agent("boss").turn?.running.map(({ call }) => call.name);
    task.turn("boss", act("dig"), act("dig"), act("fill"), act("dig"), ask("ann", "look"));
    expect(running()).toEqual(["dig", "dig"]);
    task.finish("boss");
    expect(running()).toEqual(["dig"]);
    task.finish("boss");
    expect(running()).toEqual(["fill"]);
    task.finish("boss");
    expect(running()).toEqual(["dig"]);
    expect(task.waiting("ann")).toEqual([]);
    task.finish("boss");
    expect(task.results("boss").map((result) => result.split(":")[0])).toEqual([
      "ok dig",
      "ok dig",
      "ok fill",
      "ok dig",
      "ok send_request",
    ]);
    expect(task.waiting("boss")).toHaveLength(1);
  });

  it("a task runs as many actions at once as its limit allows, whichever agents called them", () => {
    const task = new TestTask(withActions(), { limits: { actionsPerTask: 2 }, type: "broadcast" });
    const running = (name: string) => task.agent(name).turn?.running.length ?? 0;
    task.turn("boss", act("dig"), act("dig"), act("dig"));
    task.turn("ann", act("dig"));
    expect([running("boss"), running("ann")]).toEqual([2, 0]);
    task.finish("boss");
    expect([running("boss"), running("ann")]).toEqual([2, 0]);
    task.finish("boss");
    expect([running("boss"), running("ann")]).toEqual([1, 1]);
    task.finish("ann");
    task.finish("boss");
    expect(task.agent("boss").turn).toBeUndefined();
    expect(task.agent("ann").turn).toBeUndefined();
  });

  it("after an interrupt or a cancellation no further action starts", () => {
    const interrupted = new TestTask(withActions(), { limits: { actionsPerTask: 2 } });
    interrupted.turn("boss", act("dig"), act("dig"), act("fill"));
    interrupted.post("stop", { type: "interrupt" });
    interrupted.finish("boss");
    interrupted.finish("boss");
    expect(interrupted.results("boss")).toEqual(["ok dig: done", "ok dig: done", "error fill: interrupted"]);

    const cancelled = new TestTask(withActions(), { limits: { actionsPerTask: 2 } });
    cancelled.turn("boss", act("dig"), act("dig"), act("fill"));
    cancelled.cancel();
    expect(cancelled.results("boss")).toEqual(["error fill: not carried out: the task was cancelled"]);
    cancelled.finish("boss");
    cancelled.finish("boss");
    expect(cancelled.agent("boss").turn).toBeUndefined();
  });

  it("actions of one turn lead to one notice", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("dig"), act("fill"), ask("ann", "look"));
    task.finish("boss");
    task.finish("boss");
    expect(task.results("boss").map((result) => result.split(":")[0])).toEqual([
      "ok dig",
      "ok fill",
      "ok send_request",
    ]);
    expect(task.waiting("boss")).toHaveLength(1);
  });

  it("a failed action has an error result", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("dig"));
    task.finish("boss", "rock", false);
    expect(task.results("boss")).toEqual(["error dig: rock"]);
    expect(task.waiting("boss")[0]).toMatch(/^::action_complete::/);
  });

  it("an unknown action is an error that is reported to the agent", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("fly"));
    expect(task.waiting("boss")).toEqual(["::action_error::: unknown tool or action 'fly'"]);
  });

  it("an action of another agent is an error", () => {
    const task = new TestTask(office({ actions: [action("dig")], workerActions: [] }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    expect(task.waiting("ann")).toEqual(["::action_error::: action 'dig' is not available to agent 'ann'"]);
  });

  it("a second result of an action is refused", () => {
    const task = new TestTask(withActions());
    task.turn("boss", withId("c", act("dig")));
    task.finish("boss");
    expect(
      task.refusalCode({ type: "finish_action", agent: "boss", callId: "c", ok: true, content: "again" }),
    ).toBe("stale_turn");
  });

  it("a restarted action keeps its call and counts the attempt", () => {
    const task = new TestTask(withActions());
    task.turn("boss", withId("c", act("dig")));
    task.do({ type: "restart_action", agent: "boss", callId: "c" });
    expect(task.agent("boss").turn?.running).toMatchObject([{ call: { id: "c" }, attempt: 2 }]);
    task.finish("boss");
    expect(task.results("boss")).toEqual(["ok dig: done"]);
  });

  it("an unknown outcome is journaled as such", () => {
    const task = new TestTask(withActions());
    task.turn("boss", withId("c", act("dig")));
    const [entry] = task.do({
      type: "finish_action",
      agent: "boss",
      callId: "c",
      ok: false,
      content: "outcome unknown",
      unknown: true,
    });
    expect(entry).toMatchObject({ t: "action_finished", ok: false, unknown: true });
  });

  it("an interrupt lets the running action finish and drops the calls after it", () => {
    const task = new TestTask(withActions({ parallel: false }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"), act("fill"), respond("boss", "done"));
    task.post("stop that", { to: ["ann"], type: "interrupt" });
    task.finish("ann", "a hole");
    expect(task.results("ann")).toEqual([
      "ok dig: a hole",
      "error fill: interrupted",
      "error send_response: interrupted",
    ]);
    expect(task.waiting("ann")).toEqual(["task: stop that"]);
    expect(task.waiting("boss")).toEqual([]);
  });

  it("an interrupt from an agent has the same effect", () => {
    const task = new TestTask(withActions({ parallel: false }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"), act("fill"));
    task.post("and?");
    task.turn("boss", interrupt("ann", "never mind"));
    task.finish("ann");
    expect(task.results("ann")[1]).toBe("error fill: interrupted");
  });
});

describe("a failing agent", () => {
  it("[MAIL-ERR-01] the agent that waits for it receives the error", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    task.failTurn("ann", "no abacus");
    expect(task.waiting("boss")).toEqual([
      "::agent_error::: Agent 'ann' failed while it handled your message: no abacus",
    ]);
    expect(task.state.outstanding).toEqual([]);
    expect(task.state.status).toBe("running");
  });

  it("[MAIL-ERR-01] if a user waits for it, the task fails with the real error", () => {
    const task = new TestTask(office());
    task.failTurn("boss", "no coffee");
    expect(task.state.status).toBe("failed");
    expect(task.state.error).toEqual({ code: "agent_error", message: "agent 'boss' failed: no coffee" });
    expect(task.state.ending?.message.message.subject).toBe("::task_error::");
  });

  it("the user gets the error even if the current message was a system notice", () => {
    const task = new TestTask(withActions({ parallel: false }));
    task.turn("boss", act("dig"));
    task.finish("boss");
    task.failTurn("boss", "no coffee");
    expect(task.state.error?.code).toBe("agent_error");
  });

  it("a user id with an @ is still a user", () => {
    const task = new TestTask(office(), { instance: { role: "user", id: "ulla@mail.example" } });
    task.failTurn("boss", "no coffee");
    expect(task.state.error?.message).toContain("no coffee");
  });

  it("three recoveries without progress fail the message", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    const took = [task.head("ann")];
    task.do({ type: "recover", agent: "ann", took });
    task.do({ type: "recover", agent: "ann", took });
    expect(task.waiting("boss")).toEqual([]);
    task.do({ type: "recover", agent: "ann", took });
    expect(task.waiting("boss")[0]).toMatch(/^::agent_error::.*3 times/);
    expect(task.waiting("ann")).toEqual([]);
  });

  it("a message that overtakes another does not inherit its recoveries", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), wait());
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.post("stop", { to: ["ann"], type: "interrupt" });
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    expect(task.agent("ann").recoveries).toBe(1);
    expect(task.waiting("ann")).toHaveLength(2);
  });

  it("progress restarts the count of recoveries", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("ann", "two"));
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.turn("ann", respond("boss", "1"));
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    expect(task.agent("ann").recoveries).toBe(1);
  });
});

describe("the history", () => {
  it("a compaction replaces old items and keeps the answer whose calls are being executed", () => {
    const task = new TestTask(withActions({ parallel: false }));
    task.turn("boss", withId("1", act("dig")));
    task.finish("boss");
    task.answer("boss", {
      calls: [{ id: "1", name: "dig", args: {} }],
      compaction: { upTo: Number.MAX_SAFE_INTEGER, summary: "I dug" },
    });
    task.finish("boss", "deeper");
    expect(task.agent("boss").history.map((item) => item.kind)).toEqual([
      "summary",
      "message",
      "answer",
      "result",
    ]);
  });

  it("[AGENTS-T-3] a compaction keeps the messages that it names, before its summary", () => {
    const task = new TestTask(withActions({ parallel: false }));
    const request = task.agent("boss").mailbox[0]?.message.id ?? "";
    task.turn("boss", act("dig"));
    task.finish("boss", "deep");
    task.turn("boss", act("dig"));
    task.finish("boss", "deeper");
    task.answer("boss", {
      calls: [{ id: "1", name: "task_complete", args: { finish_message: "3" } }],
      compaction: { upTo: task.state.number, summary: "I dug", keep: [request] },
    });
    const { history } = task.agent("boss");
    expect(history.map((item) => item.kind).slice(0, 2)).toEqual(["message", "summary"]);
    expect(history[0]).toMatchObject({ message: { id: request } });
  });

  it("a call id that is used again keeps its result when the older call is compacted away", () => {
    const task = new TestTask(office());
    task.turn("boss", withId("1", ask("ann", "one")));
    const upTo = task.state.number;
    task.turn("ann", respond("boss", "1"));
    task.turn("boss", withId("1", ask("ann", "two")));
    task.turn("ann", respond("boss", "2"));
    task.answer("boss", {
      calls: [{ id: "1", name: "task_complete", args: { finish_message: "3" } }],
      compaction: { upTo, summary: "asked once" },
    });
    const { history } = task.agent("boss");
    const calls = history.flatMap((item) => (item.kind === "answer" ? item.calls : []));
    expect(history.filter((item) => item.kind === "result")).toHaveLength(calls.length);
  });

  it("usage, reasoning and text are kept with the answer", () => {
    const task = new TestTask(office());
    const [entry] = task.answer("boss", {
      text: "let me see",
      reasoning: "hm",
      usage: { inputTokens: 3 },
      calls: [{ id: "1", name: "task_complete", args: { finish_message: "3" } }],
    });
    expect(entry).toMatchObject({ text: "let me see", reasoning: "hm", usage: { inputTokens: 3 } });
  });
});
