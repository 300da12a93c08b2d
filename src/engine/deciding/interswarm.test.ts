import { describe, expect, it } from "vitest";
import { ask, complete } from "../../../test/kit/answers.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { buildComplete } from "../../mail/build.js";

const boss = agent("boss", {
  targets: ["x@north", "y@south"],
  supervisor: true,
  entrypoint: true,
  interswarm: true,
});

const outgoing = (task: TestTask) =>
  task.state.outbound.map(({ swarm: to, message }) => {
    const { subject, body } = message.message;
    const recipient = "recipient" in message.message ? message.message.recipient.address : undefined;
    return { to, type: message.msg_type, recipient, subject, body };
  });

describe("the end of a task", () => {
  it("is told to every swarm that was asked, addressed to the agent that was involved", () => {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", ask("x@north", "how cold?"), ask("y@south", "how warm?"));
    for (const { message, swarm: to } of [...task.state.outbound]) {
      task.do({ type: "carried", messageId: message.id, swarm: to, ok: true });
    }
    task.do({ type: "notify", agent: "boss", subject: "::task_idle::", body: "go on" });
    task.turn("boss", complete("enough"));
    const common = { type: "response", subject: "::task_complete::", body: "enough" };
    expect(outgoing(task)).toEqual([
      { to: "north", recipient: "x@north", ...common },
      { to: "south", recipient: "y@south", ...common },
    ]);
  });

  it("that a remote swarm could not be told of disturbs nobody", () => {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", ask("x@north", "how cold?"), complete("never mind"));
    const [question, notice] = task.state.outbound;
    expect(notice?.message.message.subject).toBe("::task_complete::");
    const failed = { type: "carried", swarm: "north", ok: false, reason: "gone" } as const;
    const entries = task.do({ ...failed, messageId: notice?.message.id ?? "" });
    expect(entries.map((entry) => entry.t)).toEqual(["carried"]);
    const told = task.do({ ...failed, messageId: question?.message.id ?? "" });
    expect(told.map((entry) => entry.t)).toEqual(["carried", "sent"]);
  });

  it("of the owner ends an adopted task without a prompt, and nothing is told back", () => {
    const task = new TestTask(swarm([boss]));
    const message = buildComplete({
      id: "0a4f1f0a-5a5e-4b76-9a6c-3a39c5f0d933",
      timestamp: "2026-03-02T08:15:30.120Z",
      taskId: task.state.taskId,
      sender: { address_type: "agent", address: "owner@north" },
      swarm: "north",
      finishMessage: "all done",
    });
    const entries = task.do({ type: "conclude", message, status: "completed" });
    expect(entries.map((entry) => entry.t)).toContain("completed");
    expect(task.state.endings.map((ending) => ending.message.message.body)).toEqual(["all done"]);
    expect(task.state.outbound).toEqual([]);
  });
});
