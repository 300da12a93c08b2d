/** Event streams of other swarms: what they cost mail, and when they are reopened. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { testSwarm } from "./agents.js";
import { openMalformedPeer, register } from "./malformed-peer.js";
import { openTestServer, type TestServer } from "./servers.js";
import { until } from "./until.js";

/** Watches until the server closes. */
function watch(server: TestServer, user: string, taskId = randomUUID()): void {
  const events = server.mailroom.user(user).stream("ask slow@beta: watch me", { taskId });
  void (async () => {
    for await (const _ of events);
  })().catch(() => undefined);
}

it("many watched tasks block neither mail nor checks of the same swarm, and open a limited number of streams", {
  timeout: 120_000,
}, async () => {
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    settings: {
      attemptsPerSwarm: 2,
      deliveryTimeout: 60_000,
      attemptTimeout: 60_000,
      healthTimeout: 60_000,
      failuresToInactive: 1_000,
    },
  });
  onTestFinished(() => alpha.close());
  const beta = await openMalformedPeer("beta", ["dedupe", "events"], (request, response) => {
    if (request.url?.includes("/events") !== true) response.end("{}");
    else response.writeHead(200, { "content-type": "text/event-stream" }).write(": hello\n\n");
  });
  await register(alpha, "beta", beta.url);
  for (let user = 0; user < 70; user += 1) watch(alpha, `user-${user}`);
  await until(() => beta.count("/forward") === 70 && beta.count("/events") >= 64, "mail and streams");
  await alpha.mailroom.user("zoe").post("ask clerk@beta: hello");
  await until(() => beta.count("/forward") === 71, "mail beside the streams");
  expect(await alpha.federation.ping("beta")).toMatchObject({ ok: true });
  expect(beta.count("/events")).toBe(64);
});

/** A server whose clock advances second by second, each with a request to beta and its answer. */
async function openSlowly(answer: (response: ServerResponse, times: number) => void) {
  const clock = new VirtualClock();
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    clock,
    settings: {
      attemptTimeout: 600_000,
      deliveryTimeout: 600_000,
      healthTimeout: 600_000,
      healthInterval: 3_600_000,
    },
  });
  onTestFinished(async () => {
    const closed = alpha.close().then(() => true);
    await until(() => {
      clock.advance(10_000);
      return Promise.race([closed, undefined]);
    }, "the end");
  });
  let times = 0;
  const beta = await openMalformedPeer("beta", ["dedupe", "events"], (request, response) => {
    if (request.url?.includes("/events") !== true) return void response.end("{}");
    response.writeHead(200, { "content-type": "text/event-stream" });
    times += 1;
    answer(response, times);
  });
  await register(alpha, "beta", beta.url);
  return {
    alpha,
    beta,
    async pass(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second += 1) {
        clock.advance(1_000);
        await alpha.federation.ping("beta");
      }
    },
  };
}

it("a stream that keeps breaking is reopened with growing pauses", async () => {
  const { alpha, beta, pass } = await openSlowly((response) => response.end());
  watch(alpha, "ann");
  await until(() => beta.count("/events") > 0, "the first stream");
  await pass(120);
  expect(beta.count("/events")).toBeGreaterThan(2);
  expect(beta.count("/events")).toBeLessThan(20);
});

it("a stream that ends with the remote task is not reopened until new mail is sent there", async () => {
  const { alpha, beta, pass } = await openSlowly((response, times) => {
    const data = JSON.stringify({ description: "done", status: "completed", extra_data: {} });
    response.end(`id: ${times}\nevent: task_complete\ndata: ${data}\n\n`);
  });
  const taskId = randomUUID();
  watch(alpha, "ann", taskId);
  await until(() => beta.count("/events") > 0, "the stream");
  // The first message may be accepted after the stream was opened.
  await pass(10);
  const streams = beta.count("/events");
  await pass(30);
  expect(beta.count("/events")).toBe(streams);
  await alpha.mailroom.user("ann").post("ask clerk@beta: more", { taskId });
  await until(() => beta.count("/events") > streams, "the next stream", 20_000);
});
