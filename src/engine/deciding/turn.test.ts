import { describe, expect, it } from "vitest";
import { act, ask, interrupt, respond, wait, withId } from "../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";

const withActions = () => office({ actions: [action("dig"), action("fill")] });

describe("a turn", () => {
  it("taking the message, the answer and what was sent are one append", () => {
    const task = new TestTask(office());
    const entries = task.turn("boss", ask("ann", "one"), ask("bob", "two"));
    expect(task.kinds(entries)).toEqual(["turn", "sent", "sent"]);
  });

  it("an answer to a message that is gone is refused and changes nothing", () => {
    const task = new TestTask(office());
    const took = [task.head("boss")];
    task.turn("boss", ask("ann", "one"));
    expect(
      task.refusalCode({ type: "answer", agent: "boss", took, answer: { text: "late", calls: [] } }),
    ).toBe("stale_turn");
  });

  it("a second turn of an agent whose calls are still being carried out is refused", () => {
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

  it("calls that share an id are told apart, so that each gets its own result", () => {
    const task = new TestTask(office());
    task.turn("boss", withId("1", ask("ann", "one")), withId("1", ask("ann", "two")));
    expect(task.results("boss")).toHaveLength(2);
    const ids = task.agent("boss").history.flatMap((item) => (item.kind === "result" ? [item.callId] : []));
    expect(new Set(ids).size).toBe(2);
  });

  it("calls of two agents that share an id are told apart while both are under way", () => {
    const task = new TestTask(withActions());
    task.turn("boss", ask("ann", "dig"), ask("bob", "dig"));
    task.turn("ann", withId("1", act("dig")));
    task.turn("bob", withId("1", act("dig")));
    expect(task.agent("ann").turn?.running?.call.id).not.toBe(task.agent("bob").turn?.running?.call.id);
  });

  it("neither text nor calls is a failure of the agent", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "well?"));
    task.say("ann", "  ");
    expect(task.waiting("boss")).toEqual([
      "::agent_error::: Agent 'ann' failed while it handled your message: it returned neither text nor a tool call",
    ]);
  });
});

describe("text without a tool call", () => {
  it("answers the agent that asked, and nobody else", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    task.say("ann", "three");
    expect(task.waiting("boss")).toEqual([": three"]);
    expect(task.waiting("bob")).toEqual([]);
    expect(task.state.outstanding).toEqual([]);
  });

  it("to a person's message it is an error: a person is answered by completing the task", () => {
    const task = new TestTask(office());
    task.say("boss", "three");
    expect(task.waiting("boss")[0]).toMatch(/^::tool_call_error::.*`task_complete`.*three$/);
  });

  it("does not get past the comm targets", () => {
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

  it("does not get into a full mailbox", () => {
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

  it("actions of one turn run one after the other, and one notice follows the last", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("dig"), act("fill"), ask("ann", "look"));
    expect(task.agent("boss").turn?.running?.call.name).toBe("dig");
    expect(task.waiting("ann")).toEqual([]);
    task.finish("boss");
    expect(task.agent("boss").turn?.running?.call.name).toBe("fill");
    task.finish("boss");
    expect(task.results("boss").map((result) => result.split(":")[0])).toEqual([
      "ok dig",
      "ok fill",
      "ok send_request",
    ]);
    expect(task.waiting("boss")).toHaveLength(1);
  });

  it("a failed action is a result like any other", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("dig"));
    task.finish("boss", "rock", false);
    expect(task.results("boss")).toEqual(["error dig: rock"]);
    expect(task.waiting("boss")[0]).toMatch(/^::action_complete::/);
  });

  it("an unknown action is an error that the agent is told about", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("fly"));
    expect(task.waiting("boss")).toEqual(["::action_error::: there is no tool or action named 'fly'"]);
  });

  it("an action of another agent is an error", () => {
    const task = new TestTask(office({ actions: [action("dig")], workerActions: [] }));
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    expect(task.waiting("ann")).toEqual(["::action_error::: action 'dig' is not available to agent 'ann'"]);
  });

  it("a second end of an action is refused", () => {
    const task = new TestTask(withActions());
    task.turn("boss", withId("c", act("dig")));
    task.finish("boss");
    expect(
      task.refusalCode({ type: "finish_action", agent: "boss", callId: "c", ok: true, content: "again" }),
    ).toBe("stale_turn");
  });

  it("an action that is started again keeps its call and counts the attempt", () => {
    const task = new TestTask(withActions());
    task.turn("boss", withId("c", act("dig")));
    task.do({ type: "restart_action", agent: "boss", callId: "c" });
    expect(task.agent("boss").turn?.running).toMatchObject({ call: { id: "c" }, attempt: 2 });
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

  it("an interrupt lets the action under way finish and drops the calls behind it", () => {
    const task = new TestTask(withActions());
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

  it("an agent interrupts another one the same way", () => {
    const task = new TestTask(withActions());
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"), act("fill"));
    task.post("and?");
    task.turn("boss", interrupt("ann", "never mind"));
    task.finish("ann");
    expect(task.results("ann")[1]).toBe("error fill: interrupted");
  });
});

describe("a failing agent", () => {
  it("[MAIL-ERR-01] the agent that waits for it is told what went wrong", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait());
    task.failTurn("ann", "no abacus");
    expect(task.waiting("boss")).toEqual([
      "::agent_error::: Agent 'ann' failed while it handled your message: no abacus",
    ]);
    expect(task.state.outstanding).toEqual([]);
    expect(task.state.status).toBe("running");
  });

  it("[MAIL-ERR-01] when a person waits for it, the task fails with the real error", () => {
    const task = new TestTask(office());
    task.failTurn("boss", "no coffee");
    expect(task.state.status).toBe("failed");
    expect(task.state.error).toEqual({ code: "agent_error", message: "agent 'boss' failed: no coffee" });
    expect(task.state.ending?.message.message.subject).toBe("::task_error::");
  });

  it("the person is meant even when the message at hand was a notice of the system", () => {
    const task = new TestTask(withActions());
    task.turn("boss", act("dig"));
    task.finish("boss");
    task.failTurn("boss", "no coffee");
    expect(task.state.error?.code).toBe("agent_error");
  });

  it("a user id with an @ is a person all the same", () => {
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

  it("progress begins the count of recoveries anew", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("ann", "two"));
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    task.turn("ann", respond("boss", "1"));
    task.do({ type: "recover", agent: "ann", took: [task.head("ann")] });
    expect(task.agent("ann").recoveries).toBe(1);
  });
});

describe("memory", () => {
  it("a compaction replaces what is old and never touches the answer being carried out", () => {
    const task = new TestTask(withActions());
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
