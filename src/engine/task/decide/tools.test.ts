import { describe, expect, it } from "vitest";
import {
  acknowledge,
  act,
  ask,
  broadcast,
  broadcastToSwarms,
  complete,
  help,
  ignore,
  interrupt,
  respond,
  wait,
} from "../../../../test/kit/answers.js";
import { action, agent, office, swarm } from "../../../../test/kit/swarms.js";
import { TestTask } from "../../../../test/kit/test-task.js";
import { historyOf } from "../state.js";

/** The entry of the last sent message. */
function lastSent(task: TestTask) {
  const sent = task.entries.findLast((entry) => entry.t === "sent");
  if (sent?.t !== "sent") throw new Error("nothing was sent");
  return sent;
}

describe("routing", () => {
  it("[MAIL-TOOL-01] a request reaches only its comm target", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"));
    expect(task.waiting("ann")).toEqual(["question: how many?"]);
    expect(task.waiting("bob")).toEqual([]);
    expect(task.results("boss")).toEqual(["ok send_request: message sent"]);
  });

  it("[MAIL-ROUTE-02] an address qualified with the local swarm is the same address", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann@desk", "how many?"));
    expect(task.waiting("ann")).toEqual(["question: how many?"]);
  });

  it("[MAIL-ROUTE-01] a recipient outside the comm targets is refused, and the sender receives its comm targets", () => {
    const task = new TestTask(
      swarm([
        agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true }),
        agent("ann", { targets: ["boss"] }),
        agent("bob", { targets: ["boss"] }),
      ]),
    );
    task.turn("boss", ask("bob", "psst"));
    expect(task.waiting("bob")).toEqual([]);
    expect(task.waiting("boss")).toEqual([
      "::invalid_recipient::: agent 'boss' may not write to 'bob'. It may write to: ann.",
    ]);
    expect(task.results("boss")[0]).toMatch(/^error send_request/);
  });

  it("[MAIL-ROUTE-03] an agent that does not exist is an invalid recipient", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("zoe", "are you there?"));
    expect(task.waiting("boss")[0]).toContain("::invalid_recipient::");
  });

  it("an agent of another swarm that is not a comm target is an invalid recipient", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann@elsewhere", "hello"));
    expect(task.waiting("boss")[0]).toContain("::invalid_recipient::");
    expect(task.state.outbound).toEqual([]);
  });

  it("mail to the user is refused with the advice to complete the task", () => {
    const task = new TestTask(office());
    task.turn("boss", respond("ulla", "here you are"));
    expect(task.waiting("boss")[0]).toMatch(
      /^::improper_response_to_user::: 'ulla' is the user .*task_complete/,
    );
  });

  it("a request to `all` is refused with the advice to broadcast", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("all", "hello"));
    expect(task.waiting("boss")[0]).toMatch(/::invalid_recipient::.*send_broadcast/);
  });

  it("[MAIL-TOOL-04] a broadcast to all reaches every other agent, comm target or not, and not its sender", () => {
    const task = new TestTask(
      swarm([
        agent("boss", { targets: ["ann"], supervisor: true, entrypoint: true }),
        agent("ann", { targets: ["boss"] }),
        agent("bob", { targets: ["boss"] }),
      ]),
    );
    task.turn("boss", broadcast("lunch"));
    expect(task.waiting("ann")).toEqual(["news: lunch"]);
    expect(task.waiting("bob")).toEqual(["news: lunch"]);
    expect(task.waiting("boss")).toEqual([]);
    expect(lastSent(task).to).toEqual(["ann", "bob"]);
  });

  it("a broadcast to named agents reaches each of them once", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch", ["bob", "bob@desk", "ann"]));
    expect(lastSent(task).to).toEqual(["bob", "ann"]);
  });

  it("one refused recipient refuses the whole message", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch", ["ann", "zoe"]));
    expect(task.waiting("ann")).toEqual([]);
    expect(task.waiting("boss")[0]).toContain("'zoe'");
  });

  it("one message reaches recipients in several swarms", () => {
    const boss = agent("boss", {
      targets: ["ann", "carl@north", "dora@south"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss, agent("ann", { targets: ["boss"] })]));
    task.turn("boss", broadcast("lunch", ["ann", "carl@north", "dora@south"]));
    expect(lastSent(task).to).toEqual(["ann"]);
    expect(lastSent(task).remote).toEqual(["north", "south"]);
    expect(task.state.outbound.map((out) => out.swarm)).toEqual(["north", "south"]);
    expect(task.state.remoteSwarms).toEqual(["north", "south"]);
  });

  it("an interswarm broadcast without swarm names goes to every reachable swarm", () => {
    const boss = agent("boss", {
      targets: ["carl@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss]));
    task.turn("boss", broadcastToSwarms("hello"));
    expect(lastSent(task).remote).toEqual(["north"]);
  });

  it("an interswarm broadcast to an unreachable swarm is refused", () => {
    const boss = agent("boss", {
      targets: ["carl@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss]));
    task.turn("boss", broadcastToSwarms("hello", ["south"]));
    expect(task.waiting("boss")[0]).toContain("::invalid_recipient::");
  });

  it("a full mailbox refuses the message, and the sender is notified", () => {
    const task = new TestTask(office(), { limits: { mailbox: 1 } });
    task.turn("boss", ask("ann", "one"), ask("ann", "two"));
    expect(task.waiting("ann")).toEqual(["question: one"]);
    expect(task.waiting("boss")[0]).toContain("the mailbox of agent 'ann' is full");
  });

  it("agents cannot use system subjects", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "obey", "::task_idle::"));
    expect(task.waiting("ann")).toEqual([]);
    expect(task.waiting("boss")[0]).toContain("reserved for the system");
  });
});

describe("tools", () => {
  it("a tool that the agent does not have is refused", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "finish it"));
    task.turn("ann", complete("mine now"));
    expect(task.state.status).toBe("running");
    expect(task.waiting("ann")).toEqual([
      "::tool_call_error::: tool 'task_complete' is not available to agent 'ann'",
    ]);
  });

  it("a call of an excluded tool is refused", () => {
    const task = new TestTask(office({ exclude: ["send_broadcast"] }));
    task.turn("boss", broadcast("lunch"));
    expect(task.waiting("ann")).toEqual([]);
    expect(task.waiting("boss")[0]).toContain("'send_broadcast' is not available");
  });

  it("invalid arguments cause an error result and a message that names the parameter", () => {
    const task = new TestTask(office());
    task.turn("boss", act("send_request", { target: "ann", subject: 7 }));
    expect(task.results("boss")).toEqual(["error send_request: send_request: subject must be a string"]);
    expect(task.waiting("boss")).toEqual(["::tool_call_error::: send_request: subject must be a string"]);
  });

  it("several errors of one turn are reported in one message", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("zoe", "hello"), act("send_request", {}), ask("ann", "hello"));
    expect(task.waiting("boss")).toHaveLength(1);
    expect(task.waiting("boss")[0]).toMatch(/^::invalid_recipient::.*'zoe'.*target is missing/s);
    expect(task.waiting("ann")).toEqual(["question: hello"]);
  });

  it("[MAIL-TOOL-02] a response names the request that the agent works on, else the newest unanswered one", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "one"), ask("ann", "two"), ask("ann", "three"));
    const asked = task.state.outstanding.map(({ requestId }) => requestId);
    const answered = () => {
      const { message } = lastSent(task).message;
      return "request_id" in message ? message.request_id : "";
    };
    task.turn("ann", respond("boss", "1"));
    expect(answered()).toBe(asked[0]);
    task.turn("ann", respond("boss", "2"), respond("boss", "3"));
    expect(answered()).toBe(asked[2]);
    expect(task.state.outstanding).toHaveLength(0);
  });

  it("help arrives as the agent's next message, even for an unknown tool name", () => {
    const task = new TestTask(office());
    task.turn("boss", help());
    expect(task.waiting("boss")[0]).toMatch(/^::help::/);
    task.turn("boss", act("help", { get_tool_help: ["no_such_tool"] }));
    expect(task.state.status).toBe("running");
    expect(task.waiting("boss")).toHaveLength(1);
  });

  it("[MAIL-TOOL-06] acknowledge_broadcast keeps the broadcast in the history and sends nothing", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch"), ask("ann", "later"));
    const entries = task.turn("ann", acknowledge());
    expect(task.kinds(entries)).toEqual(["turn", "result"]);
    expect(historyOf(task.state, "ann").map((item) => item.kind)).toEqual(["message", "answer", "result"]);
  });

  it("[MAIL-TOOL-07] ignore_broadcast removes the broadcast from the history and keeps call and result", () => {
    const task = new TestTask(office());
    task.turn("boss", broadcast("lunch"), ask("ann", "later"));
    task.turn("ann", ignore());
    expect(historyOf(task.state, "ann").map((item) => item.kind)).toEqual(["answer", "result"]);
  });

  it.each([
    ["acknowledge_broadcast", acknowledge()],
    ["ignore_broadcast", ignore()],
  ])("%s on anything else is an error", (name, call) => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "hello"));
    task.turn("ann", call);
    expect(task.waiting("ann")[0]).toMatch(new RegExp(`^::tool_call_error::: improper use of ${name}`));
  });

  it("discover_swarms runs like an action", () => {
    const boss = agent("boss", {
      targets: ["x@north"],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
    });
    const task = new TestTask(swarm([boss]));
    task.turn("boss", act("discover_swarms", { discovery_urls: ["https://north.example"] }));
    expect(task.agent("boss").turn?.running[0]?.call.name).toBe("discover_swarms");
  });
});

describe("await_message", () => {
  it("[MAIL-TOOL-08] await_message ends the turn if a request is unanswered, and only mail wakes the agent", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"), wait("for ann"));
    expect(task.results("boss")[1]).toBe("ok await_message: waiting for a new message (reason: 'for ann')");
    expect(task.waiting("boss")).toEqual([]);
    task.turn("ann", respond("boss", "3"));
    expect(task.waiting("boss")).toEqual(["answer: 3"]);
  });

  it("await_message is accepted while mail is waiting, even without a request", () => {
    const task = new TestTask(office());
    task.post("and another thing");
    task.turn("boss", wait());
    expect(task.results("boss")).toEqual(["ok await_message: waiting for a new message"]);
  });

  it("await_message is an error if nothing is outstanding, and the agent gets one more turn", () => {
    const task = new TestTask(office());
    task.turn("boss", wait());
    expect(task.results("boss")).toEqual([
      "error await_message: no outstanding requests and message queue is empty",
    ]);
    expect(task.waiting("boss")).toEqual([
      "::tool_call_error::: no outstanding requests and message queue is empty",
    ]);
  });

  it("await_message is evaluated after the other calls of its turn, regardless of its position", () => {
    const task = new TestTask(office());
    task.turn("boss", wait(), ask("ann", "how many?"));
    // Nothing was outstanding before the request; results are in the order of the calls.
    expect(task.results("boss")).toEqual([
      "ok await_message: waiting for a new message",
      "ok send_request: message sent",
    ]);
  });

  it("await_message suppresses the notice after an action, because the agent waits for mail", () => {
    const task = new TestTask(office({ actions: [action("dig")] }));
    task.turn("boss", act("dig"), ask("ann", "how many?"), wait());
    task.finish("boss");
    expect(task.waiting("boss")).toEqual([]);
  });

  it("await_message does not count an answered request as outstanding", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "how many?"));
    task.turn("ann", respond("boss", "3"));
    task.turn("boss", wait());
    expect(task.results("boss").at(-1)).toMatch(/^error await_message/);
  });
});

describe("interrupts", () => {
  it("[MAIL-TOOL-03] an interrupt is served before other mail of agents, and after mail of users and the system", () => {
    const task = new TestTask(office());
    task.turn("boss", ask("ann", "slow"), broadcast("news"), interrupt("ann", "now"));
    task.post("from ulla", { to: ["ann"] });
    expect(task.waiting("ann")).toEqual(["task: from ulla", "stop: now", "news: news", "question: slow"]);
  });
});
