import { describe, expect, it } from "vitest";
import { ask, broadcastToSwarms, complete, interrupt, respond, wait } from "../../../../test/kit/answers.js";
import { agent, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import { createAgentAddress } from "../../../mail/address.js";
import { buildBroadcast, buildComplete, buildRequest, buildResponse } from "../../../mail/build.js";
import type { MAILAddress, MAILMessageOf } from "../../../mail/message.js";
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
  it("the end of a task is sent to every swarm that was asked, addressed to the agent that was involved", () => {
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

  it("an ending that could not be delivered to a remote swarm causes no further notice", () => {
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

  it("the owner's ending ends an adopted task without a turn and without a notice back", () => {
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
  const LIMITS = { replyTimeout: REPLY_TIME, replyTimeouts: {} };
  /** Two swarms were asked; the second one accepted one second later. */
  function asked(replyTimeouts: Readonly<Record<string, number>> = {}) {
    const task = new TestTask(swarm([boss]), { limits: { replyTimeout: REPLY_TIME, replyTimeouts } });
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

  it("an overdue request is reported to its sender once, when the time limit has passed", () => {
    const { task, start } = asked();
    expect(nextReplyDue(task.state, LIMITS)).toBe(start + REPLY_TIME);
    task.at = start + REPLY_TIME - 1;
    expect(task.do({ type: "reply_time" })).toEqual([]);
    task.at = start + REPLY_TIME;
    task.do({ type: "reply_time" });
    expect(notices(task)).toEqual([expect.stringContaining("'x@north'")]);
    // The other one has one more second.
    expect(nextReplyDue(task.state, LIMITS)).toBe(start + REPLY_TIME + 1_000);
    expect(task.do({ type: "reply_time" })).toEqual([]);
    task.at = start + 2 * REPLY_TIME;
    task.do({ type: "reply_time" });
    expect(notices(task)).toHaveLength(2);
    expect(nextReplyDue(task.state, LIMITS)).toBeUndefined();
  });

  it("a request is awaited forever if the limit is 0, and never by an ended task", () => {
    const { task } = asked();
    expect(nextReplyDue(task.state, { ...LIMITS, replyTimeout: 0 })).toBeUndefined();
    task.cancel();
    task.at += 10 * REPLY_TIME;
    expect(task.do({ type: "reply_time" })).toEqual([]);
  });
});

describe("events of another swarm", () => {
  it("events of another swarm are copied once each, in order, even if they are offered again", () => {
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

/** A response of an agent of another swarm to a local agent or user. */
function reply(
  task: TestTask,
  from: string,
  recipient: MAILAddress,
  body: string,
  requestId?: string,
): MAILMessageOf<"response"> {
  const id = task.ids.uuid();
  return buildResponse({
    id,
    timestamp: "2026-03-02T08:15:30.120Z",
    taskId: task.state.taskId,
    sender: createAgentAddress(from),
    recipient,
    subject: "Re",
    body,
    requestId: requestId ?? id,
  });
}

describe("an answer that is faster than the outbox", () => {
  const ulla: MAILAddress = { address_type: "user", address: "ulla" };
  /** A user asks agents of other swarms directly. */
  function askedByUser(...targets: string[]) {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", complete("ready"));
    const message = buildBroadcast({
      id: task.ids.uuid(),
      timestamp: "2026-03-02T08:15:30.120Z",
      taskId: task.state.taskId,
      sender: ulla,
      recipients: targets.map(createAgentAddress),
      subject: "question",
      body: "how cold?",
    });
    const remote = targets.map((target) => target.split("@")[1] ?? "");
    task.do({ type: "post", message, to: [], remote });
    return { task, requestId: message.message.broadcast_id, messageId: message.id };
  }

  it("[MAIL-G-1] to a user completes the task with that answer", () => {
    const { task, requestId, messageId } = askedByUser("x@north");
    task.do({ type: "reply_to_person", message: reply(task, "x@north", ulla, "-3 C", requestId) });
    expect(task.state.status).toBe("completed");
    expect(task.state.ending?.message.message.body).toBe("-3 C");
    expect(task.waiting("boss")).toEqual([]);
    const late = { type: "carried", messageId, swarm: "north" } as const;
    expect(task.do({ ...late, ok: false, reason: "unknown" })).toEqual([]);
    task.do({ ...late, ok: true, contributors: ["swarm:desk@north"] });
    expect(task.state.contributors).toContain("swarm:desk@north");
  });

  it("[MAIL-G-1] proves the delivery to its own swarm only", () => {
    const { task, requestId } = askedByUser("x@north", "y@south");
    task.do({ type: "reply_to_person", message: reply(task, "x@north", ulla, "-3 C", requestId) });
    expect(task.state.status).toBe("running");
    expect(task.state.outbound.map(({ swarm: to }) => to)).toContain("south");
    task.do({ type: "reply_to_person", message: reply(task, "y@south", ulla, "28 C", requestId) });
    expect(task.state.ending?.message.message.body).toBe("x@north: -3 C\n\ny@south: 28 C");
  });

  it.each(["::agent_error::", "::task_error::"])(
    "[MAIL-G-1] to a user is no answer if it is the other system's notice %s",
    (subject) => {
      const { task, requestId } = askedByUser("x@north");
      const { msg_type, message, ...rest } = reply(task, "north@north", ulla, "no abacus", requestId);
      task.do({ type: "reply_to_person", message: { ...rest, msg_type, message: { ...message, subject } } });
      expect(task.state.status).toBe("failed");
      expect(task.state.error).toEqual({
        code: "remote_failed",
        message: "north@north did not finish: no abacus",
      });
    },
  );

  it("[MAIL-G-1] to an agent is followed by no notice of a failed delivery", () => {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", ask("x@north", "how cold?"));
    const [out] = task.state.outbound;
    const requestId = task.state.outstanding[0]?.requestId;
    const message = reply(task, "x@north", createAgentAddress("boss"), "-3 C", requestId);
    task.do({ type: "post", message, to: ["boss"] });
    task.do({ type: "carried", messageId: out?.message.id ?? "", swarm: "north", ok: false, reason: "cut" });
    expect(task.waiting("boss")).toEqual(["Re: -3 C"]);
  });
});

describe("an agent that consults a helper", () => {
  const mid = agent("mid", { targets: ["helper", "boss"], interswarm: true });
  const helper = agent("helper", { targets: ["mid"] });
  const desk = swarm([agent("boss", { targets: ["mid"], supervisor: true, entrypoint: true }), mid, helper]);
  const adopted = () =>
    new TestTask(desk, { instance: { role: "swarm", id: "north" }, owner: "user:ann@north", to: ["boss"] });
  const question = (task: TestTask, from: string, body: string) => {
    const message = buildRequest({
      id: task.ids.uuid(),
      timestamp: "2026-03-02T08:15:30.120Z",
      taskId: task.state.taskId,
      sender: createAgentAddress(from),
      recipient: createAgentAddress("mid"),
      subject: "question",
      body,
    });
    task.do({ type: "post", message, to: ["mid"] });
    return message.message.request_id;
  };
  const sentTo = (task: TestTask, swarmName: string) =>
    task.state.outbound
      .filter(({ swarm: to }) => to === swarmName)
      .map(({ message: { message } }) => [
        "recipient" in message ? message.recipient.address : "",
        "request_id" in message ? message.request_id : "",
        message.body,
      ]);

  it("[MAIL-G-2] can still answer the agent of another swarm that asked", () => {
    const task = adopted();
    const requestId = question(task, "chief@north", "sum?");
    task.turn("mid", ask("helper", "add"));
    task.turn("helper", respond("mid", "4"));
    task.turn("mid", respond("chief@north", "it is 4"));
    expect(task.results("mid").at(-1)).toBe("ok send_response: message sent");
    expect(sentTo(task, "north")).toEqual([["chief@north", requestId, "it is 4"]]);
  });

  it("[MAIL-G-2] sends its text to the agent that asked, also within one swarm", () => {
    const task = adopted();
    task.turn("boss", ask("mid", "sum?"));
    task.turn("mid", ask("helper", "add"));
    task.turn("helper", respond("mid", "4"));
    task.say("mid", "it is 4");
    expect(task.waiting("boss")).toEqual([": it is 4"]);
    expect(task.waiting("helper")).toEqual([]);
  });

  it("[MAIL-G-2] and then fails: the agent that asked is notified", () => {
    const task = adopted();
    task.turn("boss", ask("mid", "sum?"));
    task.turn("mid", ask("helper", "add"));
    task.turn("helper", respond("mid", "4"));
    task.failTurn("mid", "out of paper");
    expect(task.waiting("boss")).toEqual([expect.stringContaining("out of paper")]);
    expect(task.waiting("helper")).toEqual([]);
  });

  it("[MAIL-G-2] for several askers at once: each gets the answer to its own question", () => {
    const task = adopted();
    const first = question(task, "chief@north", "sum?");
    task.turn("mid", ask("helper", "add"));
    const second = question(task, "clerk@north", "product?");
    task.turn("mid", ask("helper", "multiply"));
    task.turn("helper", respond("mid", "for the sum: 5"));
    task.turn("helper", respond("mid", "for the product: 6"));
    task.say("mid", "it is 5");
    task.say("mid", "it is 6");
    expect(sentTo(task, "north")).toEqual([
      ["chief@north", first, "it is 5"],
      ["clerk@north", second, "it is 6"],
    ]);
  });

  it("[MAIL-G-2] that consulted in vain continues for the agent that asked", () => {
    const task = adopted();
    const first = question(task, "chief@north", "sum?");
    task.turn("mid", ask("helper", "add"));
    question(task, "clerk@north", "product?");
    task.turn("mid", wait());
    task.failTurn("helper", "no abacus");
    task.say("mid", "cannot say");
    expect(sentTo(task, "north")).toEqual([["chief@north", first, "cannot say"]]);
  });
});

describe("an answer that is not delivered", () => {
  const clerk = agent("clerk", { targets: ["boss"], interswarm: true });
  const undelivered = () => {
    const task = new TestTask(swarm([boss, clerk]), {
      instance: { role: "swarm", id: "north" },
      owner: "user:ann@north",
    });
    task.turn("boss", wait());
    const message = buildRequest({
      id: task.ids.uuid(),
      timestamp: "2026-03-02T08:15:30.120Z",
      taskId: task.state.taskId,
      sender: createAgentAddress("chief@north"),
      recipient: createAgentAddress("clerk"),
      subject: "question",
      body: "how cold?",
    });
    task.do({ type: "post", message, to: ["clerk"] });
    task.say("clerk", "-3 C");
    const messageId = task.state.outbound[0]?.message.id ?? "";
    task.do({ type: "carried", messageId, swarm: "north", ok: false, reason: "cut" });
    return { task, requestId: message.message.request_id };
  };

  it("[MAIL-G-1] is reported to its sender, whose words about that are no answer", () => {
    const { task } = undelivered();
    expect(task.waiting("clerk")).toEqual([
      expect.stringMatching(
        /^::router_error::: Your answer '' to swarm 'north' was not delivered: cut\. .*send_response/,
      ),
    ]);
    task.say("clerk", "I see that it was not delivered.");
    expect(outgoing(task)).toEqual([]);
    expect(task.waiting("clerk")).toEqual([]);
  });

  it("[MAIL-G-1] can be sent again", () => {
    const { task, requestId } = undelivered();
    task.turn("clerk", respond("chief@north", "-3 C"));
    expect(task.state.outbound.map(({ message }) => message)).toMatchObject([
      { msg_type: "response", message: { request_id: requestId, body: "-3 C" } },
    ]);
  });
});

describe("a broadcast or interrupt to other swarms", () => {
  const accept = (task: TestTask, swarmName: string, ok = true) => {
    for (const { message, swarm: to } of [...task.state.outbound]) {
      if (to === swarmName)
        task.do({ type: "carried", messageId: message.id, swarm: to, ok, reason: "gone" });
    }
  };
  const respondFrom = (task: TestTask, from: string, body: string) => {
    const message = reply(task, from, createAgentAddress("boss"), body);
    task.do({ type: "post", message, to: ["boss"] });
  };

  it("[MAIL-G-3] is awaited like a request: the task is not idle, and its sender may wait", () => {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", broadcastToSwarms("who is there?"), wait());
    expect(task.results("boss").at(-1)).toMatch(/^ok await_message/);
    accept(task, "north");
    accept(task, "south");
    expect(task.waiting("boss")).toEqual([]);
    respondFrom(task, "x@north", "I am");
    task.turn("boss", wait());
    respondFrom(task, "y@south", "me too");
    expect(task.waiting("boss")).toEqual(["Re: me too"]);
    task.turn("boss", complete("two"));
    expect(task.state.status).toBe("completed");
  });

  it("[MAIL-G-3] as an interrupt, too", () => {
    const task = new TestTask(swarm([boss]));
    task.turn("boss", interrupt("x@north", "stop"));
    accept(task, "north");
    expect(task.waiting("boss")).toEqual([]);
    respondFrom(task, "x@north", "stopped");
    expect(task.waiting("boss")).toEqual(["Re: stopped"]);
  });

  it("[MAIL-G-3] is awaited no longer from a swarm that did not get it or does not answer in time", () => {
    const task = new TestTask(swarm([boss]), { limits: { replyTimeout: 60_000 } });
    task.turn("boss", broadcastToSwarms("who is there?"), wait());
    accept(task, "north", false);
    expect(task.waiting("boss")).toEqual([expect.stringContaining("gone")]);
    accept(task, "south");
    expect(task.state.outstanding.map(({ to }) => to)).toEqual(["all@south"]);
    task.turn("boss", wait());
    task.at += 60_000;
    task.do({ type: "reply_time" });
    expect(task.waiting("boss")).toEqual([expect.stringContaining("'all@south'")]);
    expect(task.state.outstanding).toEqual([]);
  });
});
