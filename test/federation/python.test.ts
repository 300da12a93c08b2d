/** Together with servers of the reference implementation, in both directions (mail.md, Appendix A). */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseInterswarmMessage } from "../../src/mail/validate.js";
import { call } from "../http/harness.js";
import { agent } from "../kit/swarms.js";
import { boss, houseSwarm } from "./agents.js";
import { type House, openHouse } from "./house.js";
import { PythonPeer } from "./python-peer.js";
import { until } from "./until.js";

let alpha: House;
let pylon: PythonPeer;

function swarmThatKnows(peer: string) {
  const swarm = houseSwarm("alpha", []);
  const targets = [
    "clerk",
    "slow",
    `weather@${peer}`,
    `supervisor@${peer}`,
    `mute@${peer}`,
    `nobody@${peer}`,
  ];
  const [, ...others] = swarm.agents;
  const first = agent("boss", { targets, supervisor: true, entrypoint: true, interswarm: true, run: boss });
  return { ...swarm, agents: [first, ...others] };
}

beforeEach(async () => {
  pylon = new PythonPeer("pylon");
  await pylon.listen();
  alpha = await openHouse({ swarm: swarmThatKnows("pylon"), limits: { replyTime: 5_000 } });
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

describe("we ask", () => {
  it("[MAIL-CONF-04, MAIL-INTER-02] and get the answer; what we send it takes, and every wrapper is valid", async () => {
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
    // The one who can end it there is told, by the name that it has there.
    expect(pylon.taken[1]?.wrapper.payload.recipient?.address).toBe("supervisor@pylon");
    for (const { way, status } of pylon.answers) expect([way, status]).toEqual(["back", 200]);
  });

  it("twice before the first answer: the second goes as a back, in order, and nothing is lost", async () => {
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon, weather@pylon: Tokyo?");
    expect(answer.response).toBe("weather@pylon: sunny, 21C | weather@pylon: sunny, 21C");
    expect(taken().slice(0, 2)).toEqual([
      ["forward", "Question"],
      ["back", "Question"],
    ]);
    expect(pylon.refused).toEqual([]);
  });

  it("its supervisor, which completes and tells an entrypoint that we do not have", async () => {
    const answer = await alpha.mailroom.user("alice").ask("ask supervisor@pylon: Tokyo?");
    expect(answer).toMatchObject({ status: "completed", response: "supervisor@pylon: [Question] Tokyo?" });
    for (const { status } of pylon.answers) expect(status).toBe(200);
  });

  it("and are not disturbed by the completion that it sends back when it hears of ours", async () => {
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

  it("an agent that it does not have, and hear so in its words", async () => {
    const answer = await alpha.mailroom.user("alice").ask("ask nobody@pylon: Tokyo?");
    expect(answer.response).toMatch(/it answered 500: .*unknown local agent: 'nobody'/);
  });

  it("and a first message whose answer was cut off is offered again: it knows the task, so it was taken", async () => {
    pylon.mishaps = ["cut_before_answer"];
    const answer = await alpha.mailroom.user("alice").ask("ask weather@pylon: Tokyo?");
    expect(answer.response).toBe("weather@pylon: sunny, 21C");
    expect(taken().filter(([, subject]) => subject === "Question")).toHaveLength(1);
  });

  it("and hears nothing twice when it is slow to answer what it took", async () => {
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

  it("and a further message whose answer was cut off is not sent twice: the agent hears that nobody knows", async () => {
    pylon.mishaps = [undefined, "cut_before_answer"];
    const answer = await alpha.mailroom.user("alice").ask("ask mute@pylon, weather@pylon: Tokyo?");
    expect(answer.response).toContain("nobody knows whether it was delivered");
    expect(
      pylon.taken.filter(({ wrapper }) => wrapper.payload.recipient?.address === "weather@pylon"),
    ).toHaveLength(1);
  });
});

describe("it asks", () => {
  it("[MAIL-CONF-04] and gets the answer as a back that it accepts", async () => {
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

  it("our supervisor, whose finish message returns to the agent that asked", async () => {
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

it("it can register us: our root has what it looks for, and so has our list", async () => {
  const root = await call(alpha.url, "/");
  expect(root.body).toMatchObject({
    protocol_version: expect.any(String),
    swarm: { name: "alpha", description: expect.any(String), keywords: [], public: true, entrypoint: "boss" },
    capabilities: ["dedupe", "events"],
  });
  const list = await call(alpha.url, "/swarms");
  expect(list.body).toMatchObject({ swarms: [{ name: "alpha", swarm_name: "alpha" }, { name: "pylon" }] });
});
