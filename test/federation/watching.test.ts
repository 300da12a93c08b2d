/** Streams of other swarms' events: what they cost those who only send mail, and when they are taken up again. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { VirtualClock } from "../kit/virtual-clock.js";
import { houseSwarm } from "./agents.js";
import { type House, openHouse } from "./house.js";
import { openStrangeSwarm, register } from "./strange-swarm.js";
import { until } from "./until.js";

/** Watches until the house closes. */
function watch(house: House, user: string, taskId = randomUUID()): void {
  const events = house.mailroom.user(user).stream("ask slow@beta: watch me", { taskId });
  void (async () => {
    for await (const _ of events);
  })().catch(() => undefined);
}

it("many watched tasks keep neither mail nor checks from the same swarm, and open a bounded number of streams", {
  timeout: 120_000,
}, async () => {
  const alpha = await openHouse({
    swarm: houseSwarm("alpha", ["beta"]),
    settings: {
      attemptsPerSwarm: 2,
      deliveryTime: 60_000,
      attemptTime: 60_000,
      healthTime: 60_000,
      failuresToInactive: 1_000,
    },
  });
  onTestFinished(() => alpha.close());
  const beta = await openStrangeSwarm("beta", ["dedupe", "events"], (request, response) => {
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

/** A house whose time passes second by second, each with a request to beta and its answer. */
async function openSlowly(answer: (response: ServerResponse, times: number) => void) {
  const clock = new VirtualClock();
  const alpha = await openHouse({
    swarm: houseSwarm("alpha", ["beta"]),
    clock,
    settings: { attemptTime: 600_000, deliveryTime: 600_000, healthTime: 600_000, healthInterval: 3_600_000 },
  });
  onTestFinished(async () => {
    const closed = alpha.close().then(() => true);
    await until(() => {
      clock.advance(10_000);
      return Promise.race([closed, undefined]);
    }, "the end");
  });
  let times = 0;
  const beta = await openStrangeSwarm("beta", ["dedupe", "events"], (request, response) => {
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

it("a stream that breaks off again and again is asked for less and less often", async () => {
  const { alpha, beta, pass } = await openSlowly((response) => response.end());
  watch(alpha, "ann");
  await until(() => beta.count("/events") > 0, "the first stream");
  await pass(120);
  expect(beta.count("/events")).toBeGreaterThan(2);
  expect(beta.count("/events")).toBeLessThan(20);
});

it("a stream that ends with the task over there is not asked for again, until something is sent there", async () => {
  const { alpha, beta, pass } = await openSlowly((response, times) => {
    const data = JSON.stringify({ description: "done", status: "completed", extra_data: {} });
    response.end(`id: ${times}\nevent: task_complete\ndata: ${data}\n\n`);
  });
  const taskId = randomUUID();
  watch(alpha, "ann", taskId);
  await until(() => beta.count("/events") > 0, "the stream");
  // The first message may be taken over there after the stream was opened.
  await pass(10);
  const streams = beta.count("/events");
  await pass(30);
  expect(beta.count("/events")).toBe(streams);
  await alpha.mailroom.user("ann").post("ask clerk@beta: more", { taskId });
  await until(() => beta.count("/events") > streams, "the next stream", 20_000);
});
