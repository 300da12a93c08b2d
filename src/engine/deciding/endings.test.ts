import { describe, expect, it } from "vitest";
import { act, ask, broadcast, complete, respond, withId } from "../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { historyOf } from "../state.js";

const withActions = () => office({ actions: [action("dig"), action("fill")] });

describe("completion", () => {
  it("[MAIL-TOOL-05, MAIL-ADDR-03] the finish message goes to agent `all` and is what the waiters get", () => {
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

  it("it is in the memory of every other agent", () => {
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

  it("what was queued from agents stands still, and comes back behind the person's message", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("bob", "two"));
    task.turn("ann", respond("boss", "1"));
    task.turn("boss", complete("done"));
    task.post("again", { to: ["bob"] });
    expect(task.waiting("bob")).toEqual(["task: again", "question: two"]);
    expect(task.state.status).toBe("running");
  });

  it("a notice of the system that was put aside comes behind the person's message too", () => {
    const task = new TestTask(withActions());
    task.turn("boss", ask("ann", "dig"));
    task.turn("ann", act("dig"));
    task.post("stop");
    task.turn("boss", complete("stopped"));
    task.finish("ann");
    task.post("go on", { to: ["ann"] });
    expect(task.waiting("ann")[0]).toBe("task: go on");
    expect(task.waiting("ann")[1]).toMatch(/^::action_complete::/);
  });

  it("a turn under way finishes, and what it sends is put aside", () => {
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

  it("completing it a second time says so and changes nothing", () => {
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

  it("a message that a person wrote and no agent has taken keeps the task running", () => {
    const task = new TestTask(office());
    task.post("one more thing");
    const entries = task.turn("boss", complete("42"));
    expect(task.kinds(entries)).toEqual(["turn", "completed", "resumed"]);
    expect(task.state.status).toBe("running");
    expect(task.waiting("boss")).toEqual(["task: one more thing"]);
  });

  it("a broadcast of a person counts as taken when one agent has taken it: the completion stands", () => {
    const task = new TestTask(office(), { type: "broadcast" });
    task.turn("boss", complete("42"));
    expect(task.state.status).toBe("completed");
    expect(task.waiting("ann")).toEqual(["task: do it"]);
  });

  it("open breakpoint calls of other agents are answered: no call is left without a result", () => {
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
  it("a message to a completed task resumes it without being asked to, and the memory is kept", () => {
    const task = new TestTask(office());
    task.turn("boss", complete("42"));
    expect(task.kinds(task.post("why?"))).toEqual(["sent", "resumed"]);
    expect(task.state.ending).toBeUndefined();
    task.turn("boss", complete("because"));
    expect(task.state.ending?.message.message.body).toBe("because");
    expect(historyOf(task.state, "boss").filter((item) => item.kind === "message")).toHaveLength(2);
    expect(historyOf(task.state, "ann").filter((item) => item.kind === "message")).toHaveLength(2);
  });

  it.each(["failed", "cancelled"] as const)("a message to a %s task resumes it as well", (status) => {
    const task = new TestTask(office());
    if (status === "failed") task.failTurn("boss");
    else task.cancel();
    expect(task.state.status).toBe(status);
    task.post("again");
    expect(task.state).toMatchObject({ status: "running" });
    expect(task.state.error).toBeUndefined();
  });

  it("resume_from is for tasks that have something to resume", () => {
    const task = new TestTask(office());
    expect(task.refusalCode(task.postCommand("again", { resumeFrom: "user_response" }))).toBe("wrong_state");
    task.turn("boss", complete("42"));
    task.post("again", { resumeFrom: "user_response" });
    expect(task.state.status).toBe("running");
  });

  it("a message to a running task is one more message", () => {
    const task = new TestTask(office());
    expect(task.kinds(task.post("and this"))).toEqual(["sent"]);
    expect(task.waiting("boss")).toEqual(["task: do it", "task: and this"]);
  });
});

describe("cancellation", () => {
  it("empties the mailboxes, answers every call, and is told to all by the system", () => {
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
    expect(task.results("ann").at(-1)).toBe("ok dig: a hole");
    expect(task.waiting("ann")).toEqual([]);
  });

  it("the answer of a turn under way is discarded", () => {
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

  it("mail on its way to other swarms is let go; they are told of the cancellation instead", () => {
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
  it("is counted from opening and from each resumption", () => {
    const task = new TestTask(office(), { limits: { taskTime: 1000 } });
    expect(task.state.deadline).toBe(task.at + 1000);
    task.turn("boss", complete("42"));
    expect(task.state.deadline).toBeUndefined();
    task.at += 5000;
    task.post("again");
    expect(task.state.deadline).toBe(task.at + 1000);
  });

  it("fails the task even while an agent still has the person's message in hand", () => {
    const task = new TestTask(office(), { limits: { taskTime: 1000 } });
    const took = [task.head("boss")];
    task.do({ type: "time_limit" });
    expect(task.state.status).toBe("failed");
    expect(task.state.error?.code).toBe("task_timeout");
    expect(
      task.refusalCode({ type: "answer", agent: "boss", took, answer: { text: "late", calls: [] } }),
    ).toBe("stale_turn");
  });

  it("leaves a task alone that has ended or waits for a person", () => {
    const task = new TestTask(office({ actions: [action("dig")], breakpoints: ["dig"] }), {
      limits: { taskTime: 1000 },
    });
    task.turn("boss", act("dig"));
    expect(task.do({ type: "time_limit" })).toEqual([]);
    expect(task.state.status).toBe("paused");
  });
});

describe("a task that cannot go on", () => {
  it("ends, whoever waits in it", () => {
    const task = new TestTask(office());
    task.post("and this?");
    task.do({ type: "fail", code: "too_large", reason: "it is too large" });
    expect(task.state.status).toBe("failed");
    expect(task.waiting("boss")).toEqual([]);
  });
});
