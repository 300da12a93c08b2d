import { describe, expect, it } from "vitest";
import { act, ask, complete, respond, wait, withId } from "../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { historyOf } from "./state.js";

describe("opening a task", () => {
  it("[MAIL-TASK-02, MAIL-OWN-01, MAIL-OWN-02, MAIL-INST-02] records owner and contributors, and puts the message into the entrypoint's mailbox", () => {
    const task = new TestTask(office());
    expect(task.kinds()).toEqual(["opened", "sent"]);
    expect(task.state).toMatchObject({
      owner: "user:ulla@desk",
      contributors: ["user:ulla@desk"],
      status: "running",
      entrypoint: "boss",
    });
    expect(task.waiting("boss")).toEqual(["task: do it"]);
  });

  it("[MAIL-RCPT-02] a broadcast that opens a task goes into every agent's mailbox", () => {
    const task = new TestTask(office(), { type: "broadcast" });
    for (const name of ["boss", "ann", "bob"]) expect(task.waiting(name)).toEqual(["task: do it"]);
  });

  it("an unknown recipient is refused with its name and the existing agents", () => {
    expect(() => new TestTask(office(), { to: ["zoe"] })).toThrow(/'zoe'; the agents are: boss, ann, bob/);
  });
});

describe("posting", () => {
  it("[MAIL-PRIO-01, MAIL-PRIO-02] mail is served by tier, then in order of arrival", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "1"), ask("ann", "2"));
    task.post("p1", { to: ["ann"] });
    task.post("p2", { to: ["ann"], sender: { address_type: "admin", address: "root" } });
    task.do({ type: "notify", agent: "ann", subject: "::router_error::", body: "s" });
    expect(task.waiting("ann")).toEqual([
      "::router_error::: s",
      "task: p1",
      "task: p2",
      "question: 1",
      "question: 2",
    ]);
  });

  it("an unknown recipient and a full mailbox change nothing", () => {
    const task = new TestTask(office(), { limits: { mailbox: 1 } });
    expect(task.refusalCode(task.postCommand("hello", { to: ["zoe"] }))).toBe("unknown_agent");
    expect(task.refusalCode(task.postCommand("hello"))).toBe("mailbox_full");
  });

  it("contributors of a message are added once", () => {
    const task = new TestTask(office());
    const contributors = ["user:ulla@desk", "swarm:desk@north"];
    task.post("1", { contributors });
    expect(task.kinds(task.post("2", { contributors }))).toEqual(["sent"]);
    expect(task.state.contributors).toEqual(contributors);
  });

  it("[MAIL-ERR-01] a system message goes to the agent concerned, or to all agents if none can be named", () => {
    const task = new TestTask(office());
    task.do({ type: "notify", subject: "::runtime_error::", body: "trouble" });
    for (const name of ["boss", "ann", "bob"]) {
      expect(task.waiting(name)[0]).toBe("::runtime_error::: trouble");
    }
  });
});

describe("breakpoints", () => {
  const signing = () => office({ actions: [action("sign"), action("dig")], breakpoints: ["sign"] });

  it("the call stays open, the action does not run, and the waiters get the calls as JSON", () => {
    const task = new TestTask(signing());
    const entries = task.turn("boss", withId("c1", act("sign", { page: 3 })));
    expect(task.kinds(entries)).toEqual(["turn", "paused"]);
    expect(task.state.status).toBe("paused");
    expect(JSON.parse(task.state.ending?.message.message.body ?? "")).toEqual([
      {
        arguments: '{"page":3}',
        call_id: "c1",
        name: "sign",
        type: "function_call",
        id: "fc_c1",
        status: "completed",
      },
    ]);
    expect(task.state.ending?.message.message.subject).toBe("::breakpoint_tool_call::");
  });

  it("the other calls of the turn, including actions, are executed first and in order", () => {
    const task = new TestTask(signing());
    task.turn("boss", act("sign"), ask("ann", "look"), act("dig"));
    expect(task.state.status).toBe("running");
    task.finish("boss");
    expect(task.state.status).toBe("paused");
    expect(task.results("boss")).toEqual(["ok send_request: message sent", "ok dig: done"]);
    expect(task.waiting("boss")).toEqual([]);
  });

  it("a single result answers the only open call, and the agent continues without an extra message in its history", () => {
    const task = new TestTask(signing());
    task.turn("boss", withId("c1", act("sign")));
    task.do({ type: "answer_breakpoint", results: { content: "signed" } });
    expect(task.state.status).toBe("running");
    expect(task.results("boss")).toEqual(["ok sign: signed"]);
    expect(task.waiting("boss")).toEqual(["::action_complete_broadcast::: "]);
    task.turn("boss", complete("signed"));
    const subjects = historyOf(task.state, "boss").flatMap((item) =>
      item.kind === "message" ? [item.message.message.subject] : [],
    );
    expect(subjects).toEqual(["task"]);
  });

  it("open calls of several agents are answered by call id, and each agent is woken", () => {
    const task = new TestTask(signing());
    task.turn("boss", ask("ann", "sign"), ask("bob", "sign"));
    task.turn("ann", withId("a1", act("sign")), withId("a2", act("sign")));
    task.turn("bob", withId("b1", act("sign")));
    expect(JSON.parse(task.state.ending?.message.message.body ?? "")).toHaveLength(3);
    const results = ["b1", "a2", "a1"].map((callId) => ({ callId, content: `for ${callId}` }));
    task.do({ type: "answer_breakpoint", results });
    expect(task.results("ann")).toEqual(["ok sign: for a1", "ok sign: for a2"]);
    expect(task.results("bob")).toEqual(["ok sign: for b1"]);
    expect(task.waiting("ann")).toHaveLength(1);
    expect(task.waiting("bob")).toHaveLength(1);
  });

  it("calls of two agents with the same id are distinguished", () => {
    const task = new TestTask(signing());
    task.turn("boss", ask("ann", "sign"), ask("bob", "sign"));
    task.turn("ann", withId("1", act("sign")));
    task.turn("bob", withId("1", act("sign")));
    const open = [...task.state.agents.values()].flatMap((one) => one.open.map((call) => call.id));
    task.do({ type: "answer_breakpoint", results: open.map((callId) => ({ callId, content: "ok" })) });
    expect(task.results("ann")).toHaveLength(1);
    expect(task.results("bob")).toHaveLength(1);
  });

  it("missing and unknown calls in an answer are refused by name, and nothing changes", () => {
    const task = new TestTask(signing());
    task.turn("boss", withId("c1", act("sign")), withId("c2", act("sign")));
    const answer = (...ids: string[]) =>
      task.refused({
        type: "answer_breakpoint",
        results: ids.map((callId) => ({ callId, content: "x" })),
      });
    expect(answer("c1")).toMatchObject({ code: "missing_results", details: { missing: ["c2"] } });
    expect(answer("c1", "c2", "c3")).toMatchObject({ code: "unknown_calls", details: { unknown: ["c3"] } });
    expect(task.refused({ type: "answer_breakpoint", results: { content: "x" } })).toMatchObject({
      code: "missing_results",
      details: { missing: ["c1", "c2"] },
    });
  });

  it("several results for one call are refused", () => {
    const task = new TestTask(signing());
    task.turn("boss", withId("c1", act("sign")));
    const results = [
      { callId: "c1", content: "yes" },
      { callId: "c1", content: "no" },
    ];
    expect(task.refusalCode({ type: "answer_breakpoint", results })).toBe("bad_answer");
  });

  it("an agent without open calls is refused, and the refusal names the agents that have some", () => {
    const task = new TestTask(signing());
    task.turn("boss", act("sign"));
    expect(
      task.refused({ type: "answer_breakpoint", results: { content: "x" }, caller: "ann" }).message,
    ).toContain("these agents do: boss");
  });

  it("a task without open calls refuses breakpoint answers", () => {
    const task = new TestTask(signing());
    expect(task.refusalCode({ type: "answer_breakpoint", results: { content: "x" } })).toBe("not_paused");
  });

  it("a message instead of results answers each open call with an error, and the task continues", () => {
    const task = new TestTask(signing());
    task.turn("boss", ask("ann", "sign"), wait());
    task.turn("ann", act("sign"));
    task.post("never mind");
    expect(task.state.status).toBe("running");
    expect(task.results("ann")).toEqual(["error sign: not answered"]);
    expect(task.waiting("ann")).toEqual(["::action_complete_broadcast::: "]);
    expect(task.waiting("boss")).toEqual(["task: never mind"]);
  });

  it("mail that agents sent during the pause is placed behind the answer", () => {
    const task = new TestTask(signing());
    task.turn("boss", ask("ann", "sign"), ask("bob", "dig"));
    task.turn("ann", act("sign"));
    task.turn("bob", respond("boss", "dug"));
    expect(task.state.status).toBe("paused");
    expect(task.waiting("boss")).toEqual(["answer: dug"]);
    task.do({ type: "answer_breakpoint", results: { content: "signed" } });
    expect(task.waiting("boss")).toEqual(["answer: dug"]);
  });

  it("a completion during a pause is refused, and the agent is asked to repeat it later", () => {
    const task = new TestTask(signing());
    task.turn("boss", ask("ann", "sign"));
    task.post("hurry");
    task.turn("ann", act("sign"));
    task.turn("boss", complete("done"));
    expect(task.state.status).toBe("paused");
    expect(task.results("boss").at(-1)).toMatch(/^error task_complete: the task is paused/);
    task.do({ type: "answer_breakpoint", results: { content: "signed" } });
    expect(task.waiting("boss")[0]).toMatch(/^::tool_call_error::/);
  });

  it("a MAIL tool can be a breakpoint, and the supplied results replace its own", () => {
    const task = new TestTask(office({ breakpoints: ["send_request"] }));
    task.turn("boss", ask("ann", "hello"));
    expect(task.state.status).toBe("paused");
    expect(task.waiting("ann")).toEqual([]);
  });

  it("a breakpoint tool that the agent may not use is refused", () => {
    const task = new TestTask(
      office({ actions: [action("sign")], workerActions: [], breakpoints: ["sign"] }),
    );
    task.turn("boss", ask("ann", "sign"));
    task.turn("ann", act("sign"));
    expect(task.state.status).toBe("running");
    expect(task.waiting("ann")[0]).toContain("::action_error::");
  });
});

describe("mail to other swarms", () => {
  const reaching = () =>
    swarm([
      agent("boss", { targets: ["ann", "x@north"], supervisor: true, entrypoint: true, interswarm: true }),
      agent("ann", { targets: ["boss"] }),
    ]);

  it("an accepted message is settled, and its contributors are recorded", () => {
    const task = new TestTask(reaching());
    task.turn("boss", ask("x@north", "hello"), wait());
    const id = task.state.outbound[0]?.message.id ?? "";
    const contributors = ["swarm:desk@north"];
    task.do({ type: "carried", messageId: id, swarm: "north", ok: true, contributors });
    expect(task.state.outbound).toEqual([]);
    expect(task.state.contributors).toContain("swarm:desk@north");
  });

  it("the sender of an undeliverable message is notified and no longer waits for an answer", () => {
    const task = new TestTask(reaching());
    task.turn("boss", ask("x@north", "hello"), wait());
    const id = task.state.outbound[0]?.message.id ?? "";
    task.do({ type: "carried", messageId: id, swarm: "north", ok: false, reason: "no route" });
    expect(task.waiting("boss")).toEqual([
      "::router_error::: Your message 'question' to swarm 'north' was not delivered: no route",
    ]);
    expect(task.state.outstanding).toEqual([]);
  });

  it.each([false, true])("a user's message that cannot be delivered fails the task (paused: %s)", (held) => {
    const task = new TestTask(reaching());
    task.do({ ...task.postCommand("hello"), to: [], remote: ["north"] });
    const id = task.state.outbound[0]?.message.id ?? "";
    const took = [task.head("boss")];
    const hold = {
      type: "hold_turn",
      agent: "boss",
      took,
      reason: "credentials",
      message: "no key",
    } as const;
    if (held) task.do(hold);
    task.do({ type: "carried", messageId: id, swarm: "north", ok: false, reason: "nobody home" });
    expect(task.entries.filter((entry) => entry.t === "failed")).toMatchObject([{ code: "undeliverable" }]);
  });

  it("an answer from the other swarm ends the wait, even with an id of its own", () => {
    const task = new TestTask(reaching());
    task.turn("boss", ask("x@north", "hello"), wait());
    const id = task.state.outbound[0]?.message.id ?? "";
    task.do({ type: "carried", messageId: id, swarm: "north", ok: true });
    const sender = { address_type: "agent", address: "x@north" } as const;
    const { message } = task.postCommand("hi", { sender });
    if (message.msg_type !== "request") throw new Error("not a request");
    const answer = {
      ...message,
      msg_type: "response",
      message: { ...message.message, request_id: "r-7" },
    } as const;
    task.do({ type: "post", message: answer, to: ["boss"] });
    expect(task.state.outstanding).toEqual([]);
  });
});

describe("remote agents", () => {
  const served = () =>
    swarm([
      agent("boss", { targets: ["far"], supervisor: true, entrypoint: true }),
      agent("far", { targets: ["boss"], remote: true }),
    ]);
  const lentTo = (task: TestTask, name: string) => {
    const { lent, mailbox } = task.agent(name);
    const mail = mailbox.find((waiting) => waiting.number === lent?.number);
    return { messageId: mail?.message.id ?? "", attempt: lent?.attempt ?? 0 };
  };
  const answer = (text: string) => ({ text, calls: [] });

  it("a message is lent with an attempt number and stays in the mailbox until it is answered", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"));
    task.do({ type: "lend", agent: "far" });
    expect(task.waiting("far")).toEqual(["question: one"]);
    const lent = lentTo(task, "far");
    expect(lent.attempt).toBe(1);
    task.do({ type: "answer_lent", agent: "far", ...lent, answer: answer("1") });
    expect(task.waiting("far")).toEqual([]);
    expect(task.waiting("boss")).toEqual([": 1"]);
  });

  it("an answer is accepted once, and not for an older attempt or another message", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"), ask("far", "two"));
    task.do({ type: "lend", agent: "far" });
    const first = lentTo(task, "far");
    task.do({ type: "lend", agent: "far" });
    const second = lentTo(task, "far");
    expect(second).toEqual({ ...first, attempt: 2 });
    const refusal = (lent: { messageId: string; attempt: number }) =>
      task.refusalCode({ type: "answer_lent", agent: "far", ...lent, answer: answer("1") });
    expect(refusal(first)).toBe("stale_attempt");
    expect(refusal({ ...second, messageId: "other" })).toBe("stale_attempt");
    task.do({ type: "answer_lent", agent: "far", ...second, answer: answer("1") });
    expect(refusal(second)).toBe("stale_attempt");
  });

  it("a released message is lent again under a new attempt", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"));
    task.do({ type: "lend", agent: "far" });
    const lent = lentTo(task, "far");
    task.do({ type: "release", agent: "far", ...lent });
    expect(task.refusalCode({ type: "release", agent: "far", ...lent })).toBe("stale_attempt");
    task.do({ type: "lend", agent: "far" });
    expect(lentTo(task, "far").attempt).toBe(2);
  });

  it("later mail does not replace the lent message", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"));
    task.do({ type: "lend", agent: "far" });
    const lent = lentTo(task, "far");
    task.post("urgent", { to: ["far"] });
    expect(task.waiting("far")[0]).toBe("task: urgent");
    task.do({ type: "answer_lent", agent: "far", ...lent, answer: answer("1") });
    expect(task.waiting("far")).toEqual(["task: urgent"]);
  });

  it("an empty answer is refused; the message stays lent", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"));
    task.do({ type: "lend", agent: "far" });
    expect(
      task.refusalCode({ type: "answer_lent", agent: "far", ...lentTo(task, "far"), answer: answer(" ") }),
    ).toBe("bad_answer");
  });

  it("nothing is lent without mail, in a task that does not run, or to an agent with unfinished calls", () => {
    const task = new TestTask(served());
    expect(task.refusalCode({ type: "lend", agent: "far" })).toBe("no_mail");
    task.turn("boss", ask("far", "one"));
    task.post("stop");
    task.turn("boss", complete("stopped"));
    expect(task.refusalCode({ type: "lend", agent: "far" })).toBe("no_mail");
  });

  it("at the step limit only the entrypoint's last notice is lent", () => {
    const task = new TestTask(
      swarm([
        agent("boss", { targets: ["far"], supervisor: true, entrypoint: true, remote: true }),
        agent("far", { targets: ["boss"], remote: true }),
      ]),
      { maxSteps: 1 },
    );
    task.turn("boss", ask("far", "one"));
    expect(task.refusalCode({ type: "lend", agent: "far" })).toBe("no_mail");
    task.do({ type: "lend", agent: "boss" });
    expect(task.agent("boss").lent?.number).toBe(task.state.lastTurn);
  });

  it("a cancelled task withdraws its lent messages", () => {
    const task = new TestTask(served());
    task.turn("boss", ask("far", "one"));
    task.do({ type: "lend", agent: "far" });
    const lent = lentTo(task, "far");
    task.cancel();
    expect(task.refusalCode({ type: "answer_lent", agent: "far", ...lent, answer: answer("1") })).toBe(
      "stale_attempt",
    );
  });
});

describe("manual mode", () => {
  const step = { type: "broadcast", targets: [] } as const;

  it("the text of a step is sent as requested: to all agents, or to the named ones", () => {
    const task = new TestTask(office(), { manual: true });
    task.manualStep("ann", "your move", step);
    task.do({ type: "answer", agent: "ann", took: [task.head("ann")], answer: { text: "e4", calls: [] } });
    expect(task.waiting("bob")).toEqual([": e4"]);
    task.manualStep("bob", "your move", { type: "response", targets: ["ann"] });
    task.do({ type: "answer", agent: "bob", took: [task.head("bob")], answer: { text: "e5", calls: [] } });
    expect(task.waiting("ann")).toEqual([": e5"]);
  });

  it("a step that names an unreachable recipient is an error of the agent", () => {
    const task = new TestTask(office(), { manual: true });
    task.manualStep("ann", "your move", { type: "request", targets: ["zoe"] });
    task.do({ type: "answer", agent: "ann", took: [task.head("ann")], answer: { text: "e4", calls: [] } });
    expect(task.waiting("ann")[0]).toContain("::invalid_recipient::");
  });

  it("an agent runs one manual step at a time, and only in tasks that were opened in manual mode", () => {
    const task = new TestTask(office(), { manual: true });
    task.manualStep("ann", "your move", step);
    const command = { type: "manual_step", agent: "ann", payload: "again", reply: step } as const;
    expect(task.refusalCode(command)).toBe("busy");
    expect(task.refusalCode({ ...command, agent: "zoe" })).toBe("unknown_agent");
    expect(new TestTask(office()).refusalCode(command)).toBe("not_manual");
    task.cancel();
    expect(task.refusalCode(command)).toBe("wrong_state");
  });
});
