import { describe, expect, it } from "vitest";
import { act, ask, broadcast, complete, respond, withId } from "../../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import { historyOf } from "../state.js";

const withActions = () => office({ actions: [action("dig"), action("fill")] });

describe("completion", () => {
  it("[MAIL-TOOL-05, MAIL-ADDR-03] the finish message goes to agent `all` and to the waiters", () => {
    const task = new TestTask(office());
    task.turn("boss", complete("42"));
    expect(task.state.status).toBe("completed");
    expect(task.state.ending?.message).toMatchObject({
      msg_type: "broadcast_complete",
      message: {
        sender: { address: "boss" },
        recipients: [{ address_type: "agent", address: "all" }],
        subject: "::task_complete::",
        body: "42",
      },
    });
    expect(task.results("boss")).toEqual(["ok task_complete: task completed"]);
  });

  it("a completion is in the history of every other agent", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "hello"));
    task.turn("ann", respond("boss", "hi"));
    task.turn("boss", complete("42"));
    for (const name of ["ann", "bob"]) {
      const last = historyOf(task.state, name).at(-1);
      expect(last?.kind === "message" && last.message.message.body).toBe("42");
    }
    expect(historyOf(task.state, "boss").at(-1)?.kind).toBe("result");
  });

  it("queued mail of agents is set aside and placed behind the user's next message", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("bob", "two"));
    task.turn("ann", respond("boss", "1"));
    task.turn("boss", complete("done"));
    task.post("again", { to: ["bob"] });
    expect(task.waiting("bob")).toEqual(["task: again", "question: two"]);
    expect(task.state.status).toBe("running");
  });

  it("a system notice that was set aside is also placed behind the user's next message", () => {
    const task = new TestTask(withActions());
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    task.post("stop");
    task.turn("boss", complete("stopped"));
    task.finish("ann");
    task.post("continue", { to: ["ann"] });
    expect(task.waiting("ann")[0]).toBe("task: continue");
    expect(task.waiting("ann")[1]).toMatch(/^::action_complete::/);
  });

  it("a running turn finishes, and the mail that it sends is set aside", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"));
    task.post("stop");
    task.turn("boss", complete("stopped"));
    task.turn("ann", respond("boss", "1"));
    expect(task.state.status).toBe("completed");
    expect(task.waiting("boss")).toEqual(["answer: 1"]);
    task.post("well?");
    expect(task.waiting("boss")).toEqual(["task: well?", "answer: 1"]);
  });

  it("a second completion reports the first and changes nothing", () => {
    const task = new TestTask(
      swarm([
        agent("boss", { targets: ["vice"], supervisor: true, entrypoint: true }),
        agent("vice", { targets: ["boss"], supervisor: true }),
      ]),
    );
    task.turn("boss", ask("vice", "hello"));
    task.post("hurry");
    task.turn("boss", complete("first"));
    task.turn("vice", complete("second"));
    expect(task.results("vice")).toEqual(["ok task_complete: task already completed"]);
    expect(task.state.ending?.message.message.body).toBe("first");
  });

  it("a user's message that no agent has taken keeps the task running", () => {
    const task = new TestTask(office());
    task.post("one more thing");
    const entries = task.turn("boss", complete("42"));
    expect(task.kinds(entries)).toEqual(["turn", "completed", "resumed"]);
    expect(task.state.status).toBe("running");
    expect(task.waiting("boss")).toEqual(["task: one more thing"]);
  });

  it("a user's broadcast that one agent has taken does not keep the task running", () => {
    const task = new TestTask(office(), { type: "broadcast" });
    task.turn("boss", complete("42"));
    expect(task.state.status).toBe("completed");
    expect(task.waiting("ann")).toEqual(["task: do it"]);
  });

  it("a completion answers the open breakpoint calls of other agents", () => {
    const task = new TestTask(office({ actions: [action("dig")], breakpoints: ["dig"] }));
    task.turn("boss", ask("ann", "dig"));
    task.post("wait for me", { to: ["bob"] });
    task.turn("ann", withId("c", act("dig")));
    expect(task.state.status).toBe("paused");
    task.post("forget it");
    expect(task.results("ann")).toEqual(["error dig: not answered"]);
  });
});

describe("several rounds", () => {
  it("a message to a completed task resumes it, and the histories are kept", () => {
    const task = new TestTask(office());
    task.turn("boss", complete("42"));
    expect(task.kinds(task.post("why?"))).toEqual(["sent", "resumed"]);
    expect(task.state.ending).toBeUndefined();
    task.turn("boss", complete("because"));
    expect(task.state.ending?.message.message.body).toBe("because");
    expect(historyOf(task.state, "boss").filter((item) => item.kind === "message")).toHaveLength(2);
    expect(historyOf(task.state, "ann").filter((item) => item.kind === "message")).toHaveLength(2);
  });

  it.each(["failed", "cancelled"] as const)("a message to a %s task resumes it", (status) => {
    const task = new TestTask(office());
    if (status === "failed") task.failTurn("boss");
    else task.cancel();
    expect(task.state.status).toBe(status);
    task.post("again");
    expect(task.state).toMatchObject({ status: "running" });
    expect(task.state.error).toBeUndefined();
  });

  it("[MAIL-G-17] resume_from on a running task is a further message", () => {
    const task = new TestTask(office());
    task.post("and this", { resumeFrom: "user_response" });
    expect(task.waiting("boss")).toEqual(["task: do it", "task: and this"]);
    task.turn("boss", complete("41"));
    task.turn("boss", complete("42"));
    task.post("again", { resumeFrom: "user_response" });
    expect(task.state.status).toBe("running");
  });

  it("a message to a running task is queued", () => {
    const task = new TestTask(office());
    expect(task.kinds(task.post("and this"))).toEqual(["sent"]);
    expect(task.waiting("boss")).toEqual(["task: do it", "task: and this"]);
  });
});

describe("cancellation", () => {
  it("empties the mailboxes, answers every call, and is announced to all agents by the system", () => {
    const task = new TestTask(office({ actions: [action("dig"), action("sign")], breakpoints: ["sign"] }));
    task.turn("boss", ask("ann", "dig"), ask("bob", "sign"), broadcast("news"));
    task.turn("ann", act("dig"), respond("boss", "dug"));
    task.turn("bob", act("sign"));
    task.cancel();
    expect(task.state.status).toBe("cancelled");
    expect([...task.state.agents.values()].every((one) => one.mailbox.length === 0)).toBe(true);
    expect(task.results("bob")).toEqual(["error sign: not answered: the task was cancelled"]);
    expect(task.results("ann")).toEqual(["error send_response: not carried out: the task was cancelled"]);
    expect(task.state.ending?.message.message).toMatchObject({
      subject: "::task_cancelled::",
      sender: { address_type: "system", address: "desk" },
    });
    task.finish("ann", "a hole");
    expect(task.results("ann")[0]).toBe("ok dig: a hole");
    expect(task.waiting("ann")).toEqual([]);
  });

  it("the answer of a running turn is discarded", () => {
    const task = new TestTask(office());
    const took = [task.head("boss")];
    task.cancel();
    expect(task.refusalCode({ type: "answer", agent: "boss", took, answer: { text: "hm", calls: [] } })).toBe(
      "stale_turn",
    );
  });

  it("an ended task cannot be cancelled, a paused one can", () => {
    const task = new TestTask(office({ actions: [action("dig")], breakpoints: ["dig"] }));
    task.turn("boss", act("dig"));
    expect(task.state.status).toBe("paused");
    task.cancel();
    expect(task.refused({ type: "cancel", by: "ulla" })).toMatchObject({
      code: "already_ended",
      message: expect.stringContaining("already cancelled"),
    });
  });

  it("pending mail to other swarms is dropped, and they are notified of the cancellation instead", () => {
    const boss = agent("boss", {
      targets: ["x@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss]));
    task.turn("boss", ask("x@north", "hello"));
    const id = task.state.outbound[0]?.message.id ?? "";
    task.cancel();
    expect(task.state.outbound.map((out) => [out.swarm, out.message.message.subject])).toEqual([
      ["north", "::task_cancelled::"],
    ]);
    expect(task.do({ type: "carried", messageId: id, swarm: "north", ok: true })).toEqual([]);
  });
});

describe("the time limit of a task", () => {
  it("starts at opening and at each resumption", () => {
    const task = new TestTask(office(), { limits: { taskTimeout: 1000 } });
    expect(task.state.deadline).toBe(task.at + 1000);
    task.turn("boss", complete("42"));
    expect(task.state.deadline).toBeUndefined();
    task.at += 5000;
    task.post("again");
    expect(task.state.deadline).toBe(task.at + 1000);
  });

  it("fails the task even while an agent is working on the user's message", () => {
    const task = new TestTask(office(), { limits: { taskTimeout: 1000 } });
    const took = [task.head("boss")];
    task.do({ type: "time_limit" });
    expect(task.state.status).toBe("failed");
    expect(task.state.error?.code).toBe("task_timeout");
    expect(
      task.refusalCode({ type: "answer", agent: "boss", took, answer: { text: "late", calls: [] } }),
    ).toBe("stale_turn");
  });

  it("does not affect a task that has ended or waits for a user", () => {
    const task = new TestTask(office({ actions: [action("dig")], breakpoints: ["dig"] }), {
      limits: { taskTimeout: 1000 },
    });
    task.turn("boss", act("dig"));
    expect(task.do({ type: "time_limit" })).toEqual([]);
    expect(task.state.status).toBe("paused");
  });
});

describe("a task that cannot continue", () => {
  it("fails, and its waiters are released", () => {
    const task = new TestTask(office());
    task.post("and this?");
    task.do({ type: "fail", code: "too_large", reason: "it is too large" });
    expect(task.state.status).toBe("failed");
    expect(task.waiting("boss")).toEqual([]);
  });
});
