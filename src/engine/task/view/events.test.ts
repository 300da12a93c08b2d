import { describe, expect, it } from "vitest";
import { act, ask, broadcast, complete, help, wait, withId } from "../../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import { EVENT_NAMES, endsRound, eventsOf, type MailEvent, parseEventId } from "./events.js";

function eventsOfTask(task: TestTask): MailEvent[] {
  return task.entries.flatMap((entry, index) => eventsOf(task.state.taskId, index + 1, entry));
}

const names = (task: TestTask) => eventsOfTask(task).map(({ event }) => event);

describe("events", () => {
  it("a message is one event for each local recipient, with the whole message", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch"));
    const events = eventsOfTask(task).filter(({ event }) => event === "new_message");
    expect(events.map(({ data }) => data.extra_data.recipient)).toEqual(["boss", "ann", "bob"]);
    expect(events.map(({ id }) => id)).toEqual(["2", "4.0", "4.1"]);
    expect(events[0]?.data).toMatchObject({
      task_id: task.state.taskId,
      timestamp: new Date(task.at).toISOString(),
      extra_data: { full_message: task.entries[1]?.t === "sent" ? task.entries[1].message : undefined },
    });
  });

  it("each call of a turn is an event that names its caller", () => {
    const task = new TestTask(office());
    task.turn("boss", withId("1", ask("ann", "one")), withId("2", wait()));
    const calls = eventsOfTask(task).filter(({ event }) => event === "tool_call");
    expect(calls.map(({ data }) => data.extra_data)).toMatchObject([
      { caller: "boss", tool_name: "send_request", tool_call_id: "1" },
      { caller: "boss", tool_name: "await_message", tool_call_id: "2" },
    ]);
    expect(names(task)).toContain("await_message");
  });

  it("start and end of an action are events", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    task.turn("boss", act("dig"));
    task.finish("boss", "a hole");
    task.turn("boss", act("dig"));
    task.finish("boss", "rock", false);
    expect(names(task).filter((name) => name.startsWith("action_"))).toEqual([
      "action_call",
      "action_complete",
      "action_call",
      "action_error",
    ]);
  });

  it("a completion ends the round with its answer", () => {
    const task = new TestTask(office());
    task.turn("boss", complete("42"));
    expect(names(task).slice(-3)).toEqual(["task_complete_call", "new_message", "task_complete"]);
    const last = eventsOfTask(task).at(-1);
    expect(last?.data).toMatchObject({ response: "42", status: "completed" });
    expect(eventsOfTask(task).filter(endsRound)).toHaveLength(1);
  });

  it("a failure and a cancellation end the round with an error", () => {
    const failed = new TestTask(office());
    failed.failTurn("boss", "no coffee");
    expect(eventsOfTask(failed).at(-1)).toMatchObject({
      event: "task_error",
      data: { status: "failed", response: expect.stringContaining("no coffee") },
    });
    const cancelled = new TestTask(office());
    cancelled.cancel();
    expect(eventsOfTask(cancelled).at(-1)).toMatchObject({
      event: "task_error",
      data: { status: "cancelled" },
    });
  });

  it("a breakpoint's calls and answer are events, and the message that only wakes the agent is not", () => {
    const task = new TestTask(office({ actions: [action("sign")], breakpoints: ["sign"] }));
    task.turn("boss", withId("c1", act("sign")));
    expect(names(task).slice(-2)).toEqual(["breakpoint_tool_call", "task_complete"]);
    expect(eventsOfTask(task).at(-1)?.data.status).toBe("paused");
    task.do({ type: "answer_breakpoint", results: { content: "signed" } });
    expect(names(task).slice(-2)).toEqual(["breakpoint_action_complete", "task_resumed"]);
  });

  it("errors that are reported to agents are events", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("zoe", "hello"));
    expect(eventsOfTask(task).at(-1)).toMatchObject({
      event: "agent_error",
      data: { extra_data: { agent: "boss", subject: "::invalid_recipient::" } },
    });
  });

  it("a delivery result of another swarm is an event", () => {
    const boss = agent("boss", {
      targets: ["x@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss]));
    task.turn("boss", ask("x@north", "one"), ask("x@north", "two"));
    for (const [index, { message }] of [...task.state.outbound].entries()) {
      task.do({ type: "carried", messageId: message.id, swarm: "north", ok: index === 0, reason: "gone" });
    }
    expect(names(task)).toEqual(
      expect.arrayContaining(["interswarm_message_sent", "interswarm_message_error"]),
    );
  });

  it("mail from another swarm has an event of its own", () => {
    const task = new TestTask(office());
    task.post("hi", { sender: { address_type: "agent", address: "x@north" } });
    expect(names(task).slice(-2)).toEqual(["interswarm_message_received", "new_message"]);
  });

  it("failed model calls have their events, in our words", () => {
    const task = new TestTask(office());
    const failures = [{ model: "a/b", problem: "status 529" }];
    const calls = [{ id: "1", name: "task_complete", args: { finish_message: "3" } }];
    task.answer("boss", { calls, usage: { failures } });
    expect(eventsOfTask(task).find(({ event }) => event === "model_call_failed")).toMatchObject({
      data: { extra_data: { agent: "boss", model: "a/b", problem: "status 529" } },
    });
  });

  it("help, ignored broadcasts and second completions have their events", () => {
    const task = new TestTask(office());
    task.turn("boss", help());
    task.turn("boss", broadcast("lunch"), complete("1"), complete("2"));
    task.turn("ann", act("ignore_broadcast"));
    expect(names(task)).toEqual(
      expect.arrayContaining(["help_called", "task_complete_call_duplicate", "broadcast_ignored"]),
    );
    for (const name of names(task)) expect(EVENT_NAMES).toContain(name);
  });

  it("event ids are unique, ordered and can be parsed", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch"), complete("42"));
    const ids = eventsOfTask(task).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const places = ids.map((id) => parseEventId(id));
    for (let at = 1; at < places.length; at++) {
      const [before, after] = [places[at - 1], places[at]];
      if (before === undefined || after === undefined) throw new Error("an event id cannot be parsed");
      expect(before.number < after.number || before.index < after.index).toBe(true);
    }
    expect(parseEventId("x")).toBeUndefined();
    expect(parseEventId("1.")).toBeUndefined();
  });
});
