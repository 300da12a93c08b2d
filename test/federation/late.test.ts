/** Late answers, and mail that was not accepted in time. */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import type { Entry } from "../../src/engine/task/entries.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { agent } from "../kit/swarms.js";
import { Slow, testSwarm } from "./agents.js";
import { introduce, openTestServer, type TestServer, type TestServerOptions } from "./servers.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

async function open(options: TestServerOptions): Promise<TestServer> {
  const server = await openTestServer(options);
  onTestFinished(() => server.close());
  return server;
}

async function journalOf(server: TestServer, taskId: string): Promise<Entry[]> {
  const task = await server.mailroom.user("ann").requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  return entries;
}

const sentBy = (entries: readonly Entry[], sender: string) =>
  entries.filter((entry) => entry.t === "sent" && entry.message.message.sender.address === sender);

/** Asks another swarm; without an answer, asks a local agent and continues; completes with the first answer. */
const patient: AgentFunction = (turn) => {
  const [{ message, msg_type }] = turn.messages;
  const ask = (target: string) => ({
    calls: [{ id: "1", name: "send_request", args: { target, subject: "Question", body: "[hold] hurry" } }],
  });
  if (msg_type === "response" && message.sender.address_type === "agent") {
    const finish_message = `${message.sender.address}: ${message.body}`;
    return { calls: [{ id: "1", name: "task_complete", args: { finish_message } }] };
  }
  return ask(message.sender.address_type === "system" ? "slow" : "slow@beta");
};

it("a late answer reaches its asker while the task runs, and is only recorded afterwards", async () => {
  const [here, there] = [new Slow(), new Slow()];
  const { agents, ...rest } = testSwarm("alpha", ["beta"], here);
  const boss = agent("boss", {
    targets: ["slow", "slow@beta"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    run: patient,
  });
  const alpha = await open({
    swarm: { ...rest, agents: [boss, ...agents.slice(1)] },
    limits: { replyTimeout: 50 },
  });
  const beta = await open({ swarm: testSwarm("beta", ["alpha"], there) });
  onTestFinished(() => {
    here.release(true);
    there.release(true);
  });
  await introduce(alpha, beta);
  const taskId = randomUUID();
  const answered = alpha.mailroom.user("ann").ask("go", { taskId });
  // It was notified and continues locally, while the other swarm works on the answer.
  await until(() => (here.begun > 0 && there.begun > 0) || undefined, "the notice");
  there.release(true);
  expect(await answered).toMatchObject({ status: "completed", response: "slow@beta: late: [hold] hurry" });

  const before = await journalOf(alpha, taskId);
  const [late] = sentBy(before, "slow@beta");
  const notices = sentBy(before, "alpha").filter((entry) => JSON.stringify(entry).includes("no answer came"));
  expect([sentBy(before, "slow@beta").length, notices.length]).toEqual([1, 1]);
  if (late?.t !== "sent" || late.message.msg_type !== "response") throw new Error("the late answer");

  // The same answer in another message, after the task has ended.
  const again = await deliver(alpha.url, "back", {
    taskId,
    owner: "user:ann@alpha",
    contributors: ["user:ann@alpha", "swarm:alpha@beta"],
    type: "response",
    from: "slow@beta",
    to: "boss@alpha",
    requestId: late.message.message.request_id,
    body: "much too late",
  });
  expect(again.status).toBe(200);
  const after = await journalOf(alpha, taskId);
  expect(sentBy(after, "slow@beta").map((entry) => JSON.stringify(entry))).toEqual([
    expect.any(String),
    expect.stringContaining("much too late"),
  ]);
  const task = await alpha.mailroom.user("ann").requireTask(taskId);
  expect(await task.status()).toBe("completed");
  const turns = (entries: readonly Entry[]) => entries.filter(({ t }) => t === "turn").length;
  expect(turns(after)).toBe(turns(before));
});

it("[MAIL-ROUTE-05, MAIL-OURS-08] mail waiting behind a hanging attempt fails at its own deadline, not when the attempt ends", async () => {
  const server = createServer((request, response) => {
    request.resume();
    const root = { version: "1.2", swarm: "hanging", capabilities: ["dedupe"] };
    if (request.url === "/" || request.url === "/health") response.end(JSON.stringify(root));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clock = new VirtualClock();
  const HOUR = 3_600_000;
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["hanging"]),
    clock,
    settings: {
      deliveryTimeout: 120_000,
      attemptTimeout: HOUR,
      attemptsPerSwarm: 1,
      healthInterval: 1_000 * HOUR,
      failuresToInactive: 1_000,
    },
  });
  onTestFinished(async () => {
    const closed = alpha.close().then(() => true);
    // Advance the virtual clock until the deadline fires.
    await until(() => {
      clock.advance(10_000);
      return Promise.race([closed, undefined]);
    }, "the end");
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await alpha.federation.registry.register({ name: "hanging", baseUrl, authToken: "x", volatile: true });
  const user = alpha.mailroom.user("ann");
  const mail = new Promise<void>((resolve) => {
    server.on("request", ({ url }) => url === "/interswarm/forward" && resolve());
  });
  const first = await user.post("ask clerk@hanging: one");
  await mail;
  const end = clock.now() + HOUR / 10;
  const second = await user.post("ask clerk@hanging: two");
  await until(async () => {
    if (clock.now() < end) clock.advance(10_000);
    return (await second.task.status()) !== "running" || undefined;
  }, "the notice, long before the attempt ends");
  expect(JSON.stringify(await second.outcome)).toMatch(/not delivered by its deadline; no attempt was made/);
  expect(await first.task.status()).toBe("running");
});
