/** Together with servers of the reference implementation, in both directions (REF-13, REF-14). */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseInterswarmMessage } from "../../src/mail/validate.js";
import { call } from "../http/harness.js";
import { agent } from "../kit/swarms.js";
import { boss, testSwarm } from "./agents.js";
import { PythonPeer } from "./python-peer.js";
import { openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";

let alpha: TestServer;
let pylon: PythonPeer;

function swarmThatKnows(peer: string) {
  const swarm = testSwarm("alpha", []);
  const targets = [
    "clerk",
    "clerk@beta",
    "slow",
    `weather@${peer}`,
    `supervisor@${peer}`,
    `mute@${peer}`,
    `stranger@${peer}`,
  ];
  const [, ...others] = swarm.agents;
  const first = agent("boss", { targets, supervisor: true, entrypoint: true, interswarm: true, run: boss });
  return { ...swarm, agents: [first, ...others] };
}

beforeEach(async () => {
  pylon = new PythonPeer("pylon");
  await pylon.listen();
  alpha = await openTestServer({ swarm: swarmThatKnows("pylon"), limits: { replyTimeout: 5_000 } });
  await alpha.federation.registry.register({
    name: "pylon",
    baseUrl: pylon.url,
    authToken: "agent-token-alpha",
    volatile: true,
  });
  pylon.registry.set("alpha", { url: alpha.url, token: "agent:pylon" });
});
afterEach(async () => {
  await alpha.close();
  await pylon.close();
});

const taken = () => pylon.taken.map(({ way, wrapper }) => [way, wrapper.payload.subject]);

describe("asking a server of the reference", () => {
  it("[MAIL-CONF-04, MAIL-INTER-02] returns the answer; it accepts our wrappers, and every wrapper is valid", async () => {
    const taskId = randomUUID();
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon: Tokyo?", { taskId });
    expect(answer).toMatchObject({ status: "completed", response: "weather@pylon: sunny, 21C" });
    await until(() => pylon.taken.length === 2 || undefined, "the end of the task at pylon");
    expect(taken()).toEqual([
      ["forward", "Question"],
      ["back", "::task_complete::"],
    ]);
    for (const { wrapper } of pylon.taken) {
      expect(parseInterswarmMessage(wrapper)).toMatchObject({
        payload: { subject: wrapper.payload.subject },
      });
      expect(wrapper).toMatchObject({ task_owner: "user:alice@alpha", auth_token: "" });
      expect(wrapper.payload.task_id).toBe(taskId);
    }
    expect(pylon.refused).toEqual([]);
    // The agent that can end the task is notified, by its remote name.
    expect(pylon.taken[1]?.wrapper.payload.recipient?.address).toBe("supervisor@pylon");
    for (const { way, status } of pylon.answers) expect([way, status]).toEqual(["back", 200]);
  });

  it("twice before the first answer sends the second as a back, in order, and loses nothing", async () => {
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon, weather@pylon: Tokyo?");
    expect(answer.response).toBe("weather@pylon: sunny, 21C | weather@pylon: sunny, 21C");
    expect(taken().slice(0, 2)).toEqual([
      ["forward", "Question"],
      ["back", "Question"],
    ]);
    expect(pylon.refused).toEqual([]);
  });

  it("works with its supervisor, which completes and addresses an entrypoint that is unknown here", async () => {
    const answer = await alpha.mailroom.user("alice").ask("ask supervisor@pylon: Tokyo?");
    expect(answer).toMatchObject({ status: "completed", response: "supervisor@pylon: [Question] Tokyo?" });
    for (const { status } of pylon.answers) expect(status).toBe(200);
  });

  it("is not disturbed by the completion that it returns after ours", async () => {
    const taskId = randomUUID();
    const user = alpha.mailroom.user("alice");
    await user.ask("ask weather@pylon: Tokyo?", { taskId });
    await until(() => pylon.taken.length === 2 || undefined, "the notice");
    await pylon.send(taskId, "supervisor@alpha", {
      from: "supervisor",
      subject: "::task_complete::",
      body: "[::task_complete::] x",
    });
    expect(pylon.answers.at(-1)).toMatchObject({ way: "back", status: 200 });
    expect(await (await user.requireTask(taskId)).status()).toBe("completed");
    const again = await user.ask("ask weather@pylon: Osaka?", { taskId });
    expect(again.response).toBe("weather@pylon: sunny, 21C");
  });

  it("[MAIL-G-6] for an unknown agent returns the reference's reason, and does not tell it the end of a task it never had", async () => {
    const taskId = randomUUID();
    const answer = await alpha.mailroom.user("alice").ask("ask stranger@pylon: Tokyo?", { taskId });
    expect(answer.response).toMatch(/it answered 500: .*unknown local agent: 'stranger'/);
    const task = await alpha.mailroom.user("alice").requireTask(taskId);
    const settled = async () => {
      const entries = [];
      for await (const { entry } of task.journal()) if (entry.t === "carried") entries.push(entry.ok);
      return entries.length === 2 ? entries : undefined;
    };
    expect(await until(settled, "both deliveries")).toEqual([false, true]);
    expect(pylon.taken).toEqual([]);
  });

  it("[MAIL-G-4] with a broadcast to all its agents reaches its entrypoint", async () => {
    const targets = await broadcasting((server) => server.mailroom.user("alice").ask("everybody: hello"));
    expect(targets).toMatchObject({ response: expect.stringContaining("supervisor@pylon: ") });
    expect(pylon.taken[0]?.wrapper.payload.recipients).toEqual([
      { address_type: "agent", address: "supervisor@pylon" },
    ]);
  });

  it("[MAIL-G-7] behind a proxy that answers for it is repeated like after a lost connection", async () => {
    pylon.mishaps = ["bad_gateway"];
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon: Tokyo?");
    expect(answer.response).toBe("weather@pylon: sunny, 21C");
  });

  it("[MAIL-G-7] after its restart begins the task there again", async () => {
    const taskId = randomUUID();
    const user = alpha.mailroom.user("alice");
    await user.ask("ask weather@pylon: Tokyo?", { taskId });
    // It returns a completion of its own, which belongs to the first round.
    await until(() => pylon.answers.length === 2 || undefined, "the notice and its echo");
    pylon.restart();
    const again = await user.ask("ask weather@pylon: Osaka?", { taskId });
    expect(again.response).toBe("weather@pylon: sunny, 21C");
    expect(taken().at(2)).toEqual(["forward", "Question"]);
  });

  it("repeats a first message whose answer was cut off: the peer knows the task, so it had arrived", async () => {
    pylon.mishaps = ["cut_before_answer"];
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon: Tokyo?");
    expect(answer.response).toBe("weather@pylon: sunny, 21C");
    expect(taken().filter(([, subject]) => subject === "Question")).toHaveLength(1);
  });

  it("sends nothing twice when it is slow to acknowledge", async () => {
    pylon.mishaps = ["cut_before_answer"];
    const taskId = randomUUID();
    const posted = await alpha.mailroom.user("alice").post("ask mute@pylon: Tokyo?", { taskId });
    await until(() => pylon.refused.length > 0 || undefined, "the second offer");
    expect(pylon.refused.join()).toContain("already exists in swarm memory");
    await until(async () => {
      const { events } = await posted.task.record();
      return events.some(({ event }) => event === "interswarm_message_sent") || undefined;
    }, "the delivery");
    expect(taken()).toEqual([["forward", "Question"]]);
  });

  it("does not repeat a further message whose answer was cut off, and reports the unknown outcome", async () => {
    pylon.mishaps = [undefined, "cut_before_answer"];
    const answer = await alpha.mailroom.user("alice").ask("ask mute@pylon, weather@pylon: Tokyo?");
    expect(answer.response).toContain("it is unknown whether the message was delivered");
    expect(
      pylon.taken.filter(({ wrapper }) => wrapper.payload.recipient?.address === "weather@pylon"),
    ).toHaveLength(1);
  });
});

describe("a server of the reference that asks", () => {
  it("[MAIL-CONF-04] gets the answer as a back that it accepts", async () => {
    const taskId = randomUUID();
    await pylon.send(taskId, "clerk@alpha", {
      from: "mute",
      subject: "Forecast",
      body: "Tokyo?",
      type: "request",
    });
    expect(pylon.answers).toEqual([
      {
        way: "forward",
        status: 200,
        body: { swarm: "alpha", task_id: taskId, status: "success", local_runner: "swarm:pylon@alpha" },
      },
    ]);
    await until(() => pylon.taken.length > 0 || undefined, "our answer");
    expect(pylon.taken[0]).toMatchObject({
      way: "back",
      wrapper: {
        task_owner: "user:bob@pylon",
        task_contributors: ["user:bob@pylon", "swarm:pylon@alpha"],
        payload: { body: "alpha says: Tokyo?", recipient: { address: "mute@pylon" } },
      },
    });
    expect(pylon.refused).toEqual([]);
  });

  it("gets our supervisor's finish message for the agent that asked", async () => {
    const taskId = randomUUID();
    await pylon.send(taskId, "boss@alpha", { from: "mute", subject: "Do", body: "it", type: "request" });
    await until(() => pylon.taken.length > 0 || undefined, "our finish message");
    expect(pylon.taken[0]?.wrapper).toMatchObject({
      msg_type: "response",
      metadata: { mail_event: "task_complete" },
      payload: { subject: "::task_complete::", body: "echo: it", recipient: { address: "mute@pylon" } },
    });
  });
});

it("can register us: our `GET /` and our list have the fields it reads", async () => {
  const root = await call(alpha.url, "/");
  expect(root.body).toMatchObject({
    protocol_version: expect.any(String),
    swarm: { name: "alpha", description: expect.any(String), keywords: [], public: true, entrypoint: "boss" },
    capabilities: ["dedupe", "events", "tasks"],
  });
  const list = await call(alpha.url, "/swarms");
  expect(list.body).toMatchObject({ swarms: [{ name: "alpha", swarm_name: "alpha" }, { name: "pylon" }] });
});

/** Runs with a server whose entrypoint broadcasts to all agents of pylon and completes with the first answer. */
async function broadcasting<T>(run: (server: TestServer) => Promise<T>): Promise<T> {
  const swarm = testSwarm("bravo", []);
  const [, ...others] = swarm.agents;
  const herald = agent("boss", {
    targets: ["clerk", "supervisor@pylon"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    run: ({ messages: [first] }) => {
      const { sender, body } = first.message;
      const calls =
        sender.address_type === "user"
          ? [{ name: "send_interswarm_broadcast", args: { subject: "News", body, target_swarms: ["pylon"] } }]
          : [{ name: "task_complete", args: { finish_message: `${sender.address}: ${body}` } }];
      return { calls: calls.map((call, index) => ({ id: `${index}`, ...call })) };
    },
  });
  const bravo = await openTestServer({ swarm: { ...swarm, agents: [herald, ...others] } });
  const entry = { name: "pylon", baseUrl: pylon.url, authToken: "agent-token-bravo", volatile: true };
  await bravo.federation.registry.register(entry);
  pylon.registry.set("bravo", { url: bravo.url, token: "agent:pylon" });
  try {
    return await run(bravo);
  } finally {
    await bravo.close();
  }
}

it("[MAIL-G-5] the end of a task of the reference reaches a third swarm that only we asked", async () => {
  const beta = await openTestServer({ swarm: testSwarm("beta", ["alpha"]) });
  try {
    await alpha.federation.registry.register({
      name: "beta",
      baseUrl: beta.url,
      authToken: "agent:alpha",
      volatile: true,
    });
    await beta.federation.registry.register({
      name: "alpha",
      baseUrl: alpha.url,
      authToken: "agent:beta",
      volatile: true,
    });
    const taskId = randomUUID();
    await pylon.send(taskId, "boss@alpha", {
      from: "weather",
      subject: "Question",
      body: "ask clerk@beta: how far?",
      type: "request",
    });
    const there = beta.mailroom.instance({ role: "swarm", id: "alpha" });
    await until(async () => (await there.task(taskId)) ?? undefined, "the task at beta");
    await until(() => pylon.taken.length > 0 || undefined, "the answer");
    await pylon.send(taskId, "boss@alpha", {
      from: "supervisor",
      subject: "::task_complete::",
      body: "done",
    });
    const ended = async () =>
      (await (await there.requireTask(taskId)).status()) === "completed" ? true : undefined;
    await until(ended, "the end at beta");
  } finally {
    await beta.close();
  }
});
