import { describe, expect, it } from "vitest";
import { act, ask, complete, respond, withId } from "../../../../test/kit/answers.js";
import { type ActionOptions, action, office } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import type { ApprovalDecision } from "../commands.js";

const shop = (pay: ActionOptions = {}) =>
  office({
    actions: [action("pay", undefined, { approval: true, ...pay }), action("look"), action("sign")],
    breakpoints: ["sign"],
  });
const approve = (callId: string, args?: Record<string, unknown>): ApprovalDecision => ({
  callId,
  decision: "approve",
  ...(args !== undefined && { args }),
});
const reject = (callId: string, reason?: string): ApprovalDecision => ({
  callId,
  decision: "reject",
  ...(reason !== undefined && { reason }),
});
const decide = (task: TestTask, ...decisions: ApprovalDecision[]) =>
  task.do({ type: "answer_approvals", decisions });

describe("a call that needs approval", () => {
  it("pauses the task with its arguments, runs when it is approved, and later calls wait for it", () => {
    const task = new TestTask(shop());
    const entries = task.turn("boss", withId("p", act("pay", { euros: 9 })), act("look"), complete("paid"));
    expect(task.kinds(entries)).toEqual(["turn", "approval_asked", "action_started", "paused"]);
    expect(entries[1]).toMatchObject({ call: "p", name: "pay", args: { euros: 9 } });
    expect(task.state.ending?.message.message).toMatchObject({
      subject: "::approval_requested::",
      body: expect.stringContaining("euros"),
    });
    task.finish("boss", "seen", true, "look");
    expect(task.state.status).toBe("paused");
    const after = decide(task, approve("p"));
    expect(task.kinds(after)).toEqual(["approval_answered", "resumed", "action_started"]);
    task.finish("boss", "paid 9");
    expect(task.results("boss")).toEqual([
      "ok pay: paid 9",
      "ok look: seen",
      "ok task_complete: task completed",
    ]);
    expect(task.state.status).toBe("completed");
  });

  it("runs with changed arguments, which its agent sees with the result", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay", { euros: 9 })));
    decide(task, approve("p", { euros: 5 }));
    expect(task.agent("boss").turn?.running[0]?.call.args).toEqual({ euros: 5 });
    task.finish("boss", "paid 5");
    expect(task.results("boss")).toEqual(['ok pay: approved with changed arguments: {"euros":5}\n\npaid 5']);
  });

  it("does not run when it is rejected: its agent gets the reason, and the calls after it are not carried out", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay")), withId("q", act("pay")), ask("ann", "I paid"));
    const entries = decide(task, reject("p", "too much"), approve("q"));
    expect(entries.filter(({ t }) => t === "action_started")).toHaveLength(1);
    task.finish("boss", "paid");
    expect(task.results("boss")).toEqual([
      "error pay: rejected: too much",
      "ok pay: paid",
      "error send_request: not carried out: an earlier call of the answer was rejected",
    ]);
    expect(task.waiting("boss")).toHaveLength(1);
    expect(task.waiting("ann")).toEqual([]);
  });

  it("may be decided one by one; the task continues after the last one", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay")), withId("q", act("pay")));
    expect(task.kinds(decide(task, approve("q")))).toEqual(["approval_answered", "action_started", "paused"]);
    expect(task.state.status).toBe("paused");
    task.finish("boss", "second");
    expect(task.kinds(decide(task, approve("p")))).toContain("resumed");
    task.finish("boss", "first");
    expect(task.results("boss")).toEqual(["ok pay: first", "ok pay: second"]);
    task.turn("boss", complete("done"));
    expect(task.state.status).toBe("completed");
  });

  it("expires", () => {
    const task = new TestTask(shop({ approvalTimeout: 1_000 }));
    task.turn("boss", withId("p", act("pay")));
    task.at += 999;
    expect(task.do({ type: "approval_time" })).toEqual([]);
    task.at += 1;
    // Also while its timer has not fired.
    for (const decision of [approve("p"), reject("p")])
      expect(task.refusalCode({ type: "answer_approvals", decisions: [decision] })).toBe("unknown_calls");
    expect(task.kinds(task.do({ type: "approval_time" }))).toEqual([
      "approval_answered",
      "result",
      "resumed",
      "sent",
    ]);
    expect(task.results("boss")).toEqual(["error pay: not approved in time"]);
    expect(task.refusalCode({ type: "answer_approvals", decisions: [approve("p")] })).toBe("not_paused");
  });

  it("is never approved by text, and another message of its owner leaves it undone", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay")), ask("ann", "I paid"));
    const refused = task.refused({ type: "answer_breakpoint", results: { content: "yes, approve" } });
    expect(refused).toMatchObject({ code: "approval_needed", details: { calls: [{ call_id: "p" }] } });
    expect(task.refusalCode({ ...task.postCommand("yes"), refuseInApproval: true })).toBe("approval_needed");
    task.post("rather wait", { to: ["ann"] });
    expect(task.results("boss")).toEqual(["error pay: not answered", "error send_request: not answered"]);
    expect(task.waiting("boss")).toHaveLength(1);
    expect(task.entries.some(({ t }) => t === "action_started")).toBe(false);
  });

  it("is decided only by those that may answer, and only as it waits", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay")));
    const decided = (decisions: ApprovalDecision[], id = "ulla") =>
      task.refusalCode({ type: "answer_approvals", decisions, by: { role: "user", id } });
    expect(decided([approve("p")], "eve")).toBe("forbidden");
    expect(decided([approve("x")])).toBe("unknown_calls");
    expect(decided([approve("p"), reject("p")])).toBe("bad_answer");
    expect(decided([])).toBe("approval_needed");
    task.do({ type: "name_approvers", approvers: ["user:bo"], by: { role: "user", id: "ulla" } });
    const by = { role: "user", id: "bo" } as const;
    const [answered] = task.do({ type: "answer_approvals", decisions: [approve("p")], by });
    expect(answered).toMatchObject({ t: "approval_answered", decision: "approved", by: "user:bo" });
  });

  it("is dropped when the task is cancelled", () => {
    const task = new TestTask(shop());
    task.turn("boss", withId("p", act("pay")), ask("ann", "I paid"));
    task.cancel();
    expect(task.results("boss")[0]).toBe("error pay: not answered: the task was cancelled");
    expect(task.agent("boss").turn).toBeUndefined();
    expect(task.refusalCode({ type: "answer_approvals", decisions: [approve("p")] })).toBe("not_paused");
  });

  it("waits beside breakpoint calls, and the task continues when both are answered", () => {
    const task = new TestTask(shop());
    task.turn("boss", ask("ann", "sign"), withId("p", act("pay")));
    expect(task.state.status).toBe("paused");
    // The turn of another agent was already running.
    task.turn("ann", withId("s", act("sign")));
    task.do({ type: "answer_breakpoint", results: { content: "signed" } });
    expect(task.state.status).toBe("paused");
    decide(task, approve("p"));
    expect(task.state.status).toBe("running");
    task.turn("ann", respond("boss", "signed"));
  });

  it("depends on what its action says about the arguments; a call that was not asked about needs approval", () => {
    const task = new TestTask(shop());
    const calls = ["a", "b", "c", "d"].map((id) => ({ id, name: "pay", args: {} }));
    const vetted = [
      { index: 0, approval: false },
      { index: 1, approval: true },
      { index: 2, problem: "invalid arguments: euros is missing" },
    ];
    task.do({ type: "answer", agent: "boss", took: [task.head("boss")], answer: { calls }, vetted });
    expect(task.agent("boss").turn?.running.map(({ call }) => call.id)).toEqual(["a"]);
    expect(task.agent("boss").turn?.asked.map(({ call }) => call.id)).toEqual(["b", "d"]);
    expect(task.results("boss")).toEqual(["error pay: invalid arguments: euros is missing"]);
  });

  it("is not asked about in a task that has ended", () => {
    const task = new TestTask(shop({ parallel: false }), { type: "broadcast" });
    task.turn("boss", act("look"), act("pay"));
    task.post("more", { to: ["boss"] });
    task.cancel();
    task.finish("boss");
    expect(task.results("boss").at(-1)).toMatch(/^error pay: not carried out/);
  });
});
