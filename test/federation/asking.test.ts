/** Requests that another swarm accepted and will not answer: the swarm is asked, and the sender learns it early. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import type { AgentFunction } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import { buildComplete } from "../../src/mail/build.js";
import { call } from "../http/harness.js";
import { agent, swarm } from "../kit/swarms.js";
import { boss, Slow } from "./agents.js";
import { openMalformedPeer } from "./malformed-peer.js";
import { introduce, openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";

const HOUR = 3_600_000;
const slow = new Slow();
let alpha: TestServer;
let beta: TestServer;

/** Broadcasts `news: …` to all agents of beta; everything else is what `boss` does. */
const herald: AgentFunction = (turn, ...rest) => {
  const { sender, body, subject } = turn.messages[0].message;
  const complete = (text: string) => ({
    calls: [{ id: "1", name: "task_complete", args: { finish_message: text } }],
  });
  if (subject.startsWith("::")) return complete(`${subject} ${body}`);
  if (!body.startsWith("news:") || sender.address_type !== "user") return boss(turn, ...rest);
  const args = { subject: "News", body, target_swarms: ["beta"] };
  return { calls: [{ id: "1", name: "send_interswarm_broadcast", args }] };
};
const reader: AgentFunction = () => ({ calls: [{ id: "1", name: "acknowledge_broadcast", args: {} }] });

function swarmNamed(name: string, other: string): SwarmDefinition {
  const far = ["boss", "slow"].map((target) => `${target}@${other}`);
  const run = name === "alpha" ? herald : reader;
  const head = agent("boss", { targets: far, supervisor: true, entrypoint: true, interswarm: true, run });
  return { ...swarm([head, agent("slow", { interswarm: true, targets: far, run: slow.mind })]), name };
}

beforeAll(async () => {
  const limits = { replyTimeout: HOUR, replyTimeouts: { gamma: 1 } };
  alpha = await openTestServer({ swarm: swarmNamed("alpha", "beta"), limits, settings: { askInterval: 50 } });
  beta = await openTestServer({ swarm: swarmNamed("beta", "alpha") });
  await introduce(alpha, beta);
});
afterAll(async () => {
  slow.release(true);
  await Promise.all([alpha.close(), beta.close()]);
});

it("[MAIL-G-3] a broadcast that is only acknowledged does not keep its sender waiting", async () => {
  slow.release(true);
  const asked = alpha.mailroom.user("ann").ask("news: the harbor is frozen");
  // One of the two agents there acknowledges, the other one works on it and answers nothing yet.
  await until(() => slow.begun > 0 || undefined, "the broadcast at beta");
  slow.release(true);
  const answer = await asked;
  expect(answer.status).toBe("completed");
});

it("a request that the other swarm still works on is awaited, and says for whom and until when", async () => {
  const taskId = randomUUID();
  const asked = alpha.mailroom.user("ann").ask("ask slow@beta: [hold] how deep?", { taskId });
  const client = new MailClient(alpha.url, { token: "user:ann" });
  const waiting = await until(async () => {
    const [reply] = (await client.getTask(taskId)).waiting_for ?? [];
    return reply?.since === null ? undefined : reply;
  }, "the acceptance");
  expect(waiting).toMatchObject({ from: "boss", to: "slow@beta" });
  expect(Date.parse(waiting.until ?? "") - Date.parse(waiting.since ?? "")).toBe(HOUR);
  const standing = await call(beta.url, `/interswarm/tasks/${taskId}`, { token: "agent:alpha" });
  expect(standing.body).toEqual({ task_id: taskId, status: "running", busy: true });
  expect((await call(beta.url, `/interswarm/tasks/${taskId}`, { token: "agent:gamma" })).status).toBe(404);
  await until(() => slow.begun > 0 || undefined, "the turn");
  slow.release(true);
  expect((await asked).response).toBe("slow@beta: late: [hold] how deep?");
});

it("a request whose task the other swarm no longer has is given up", async () => {
  const taskId = randomUUID();
  const asked = alpha.mailroom.user("ann").ask("ask slow@beta: [hold] lost?", { taskId });
  const there = beta.mailroom.instance({ role: "swarm", id: "alpha" });
  const task = await until(async () => (await there.task(taskId)) ?? undefined, "the task at beta");
  await until(() => slow.begun > 0 || undefined, "the turn");
  // As if its operator had given up on it: the asker gets no notice.
  await beta.mailroom.runtime.command(task.key, {
    type: "conclude",
    message: ending(taskId),
    status: "cancelled",
  });
  expect((await asked).response).toMatch(/^::router_error:: .*without an answer/);
});

it("a request of an earlier process is asked about, too", async () => {
  const data = mkdtempSync(join(tmpdir(), "mailroom-asking-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const gamma = await openMalformedPeer("gamma", ["dedupe", "tasks"], (request, response) => {
    if (request.url?.startsWith("/interswarm/tasks/") === true) response.end(JSON.stringify({ busy: false }));
    else response.end("{}");
  });
  const options = {
    swarm: swarmNamed("alpha", "gamma"),
    data,
    env: { GAMMA: "x" },
    limits: { replyTimeout: HOUR },
  };
  // The first process ends before it asks.
  const before = await openTestServer({ ...options, settings: { askInterval: HOUR } });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: tokens outlive a process as references only
  const authToken = "${GAMMA}";
  await before.federation.registry.register({
    name: "gamma",
    baseUrl: gamma.url,
    authToken,
    volatile: false,
  });
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask slow@gamma: are you there?", { taskId });
  await until(async () => {
    const task = await before.mailroom.user("ann").requireTask(taskId);
    for await (const { entry } of task.journal()) if (entry.t === "carried") return true;
    return undefined;
  }, "the acceptance");
  await before.close();

  const after = await openTestServer({ ...options, settings: { askInterval: 50 } });
  onTestFinished(() => after.close());
  const task = await after.mailroom.user("ann").requireTask(taskId);
  const told = await until(async () => {
    for await (const { entry } of task.journal())
      if (entry.t === "completed") return entry.message.message.body;
    return undefined;
  }, "the notice");
  expect(told).toMatch(/^::router_error:: .*without an answer/);
});

function ending(taskId: string) {
  return buildComplete({
    id: randomUUID(),
    timestamp: new Date().toISOString(),
    taskId,
    sender: { address_type: "agent", address: "boss@alpha" },
    swarm: "alpha",
    finishMessage: "never mind",
  });
}
