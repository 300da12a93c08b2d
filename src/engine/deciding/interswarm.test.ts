import { describe, expect, it } from "vitest";
import { ask, complete } from "../../../test/kit/answers.js";
import { agent, swarm } from "../../../test/kit/swarms.js";
import { TestTask } from "../../../test/kit/test-task.js";
import { buildComplete } from "../../mail/build.js";
import { nextReplyDue } from "./interswarm.js";

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

describe("a request that another swarm accepted and does not answer", () => {
  const REPLY_TIME = 60_000;
  /** Two swarms were asked; the second accepted a second later. */
  function asked() {
    const task = new TestTask(swarm([boss]), { limits: { replyTime: REPLY_TIME } });
    task.turn("boss", ask("x@north", "how cold?"), ask("y@south", "how warm?"));
    const start = task.at;
    for (const { message, swarm: to } of [...task.state.outbound]) {
      task.do({ type: "carried", messageId: message.id, swarm: to, ok: true });
      task.at += 1_000;
    }
    return { task, start };
  }
  const notices = (task: TestTask) =>
    task.waiting("boss").filter((text) => text.includes("no answer came within 60 s"));

  it("is told to who asked, once, when the time is up and not before", () => {
    const { task, start } = asked();
    expect(nextReplyDue(task.state, REPLY_TIME)).toBe(start + REPLY_TIME);
    task.at = start + REPLY_TIME - 1;
    expect(task.do({ type: "reply_time" })).toEqual([]);
    task.at = start + REPLY_TIME;
    task.do({ type: "reply_time" });
    expect(notices(task)).toEqual([expect.stringContaining("'x@north'")]);
    // The other one has a second more.
    expect(nextReplyDue(task.state, REPLY_TIME)).toBe(start + REPLY_TIME + 1_000);
    expect(task.do({ type: "reply_time" })).toEqual([]);
    task.at = start + 2 * REPLY_TIME;
    task.do({ type: "reply_time" });
    expect(notices(task)).toHaveLength(2);
    expect(nextReplyDue(task.state, REPLY_TIME)).toBeUndefined();
  });

  it("is waited for without end where no time is set, and not by a task that has ended", () => {
    const { task } = asked();
    expect(nextReplyDue(task.state, undefined)).toBeUndefined();
    task.cancel();
    task.at += 10 * REPLY_TIME;
    expect(task.do({ type: "reply_time" })).toEqual([]);
  });
});

describe("events of another swarm", () => {
  it("are copied once each, in that swarm's order, whatever is offered again", () => {
    const task = new TestTask(swarm([boss]));
    const copy = (from: string, ...ids: string[]) =>
      task
        .do({ type: "copy_events", swarm: from, events: ids.map((id) => ({ id, event: "news", data: {} })) })
        .map((entry) => (entry.t === "remote_event" ? `${entry.swarm} ${entry.id}` : entry.t));
    expect(copy("north", "1", "3.1", "3.2")).toEqual(["north 1", "north 3.1", "north 3.2"]);
    expect(copy("north", "1", "2", "3.2", "4")).toEqual(["north 4"]);
    expect(copy("south", "1")).toEqual(["south 1"]);
    expect(copy("north", "nonsense", "-1", "")).toEqual([]);
  });
});
