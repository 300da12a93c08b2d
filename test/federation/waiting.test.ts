/** Mail that waits: for a swarm that is away, and for a server that is started again. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { OutgoingMail } from "../../src/engine/carrier.js";
import { createAgentAddress } from "../../src/mail/address.js";
import { buildRequest } from "../../src/mail/build.js";
import { houseSwarm } from "./agents.js";
import { type HouseOptions, openHouse } from "./house.js";
import { openStrangeSwarm, register } from "./strange-swarm.js";
import { until } from "./until.js";

function mailTo(swarm: string): OutgoingMail {
  const id = randomUUID();
  const owner = "user:ann@alpha";
  const message = buildRequest({
    id,
    timestamp: new Date().toISOString(),
    taskId: id,
    sender: createAgentAddress("boss"),
    recipient: createAgentAddress(`clerk@${swarm}`),
    subject: "Question",
    body: "?",
  });
  const task = { id, key: id, owner, contributors: [owner], entrypoint: "boss" };
  return { swarm, message, task, instance: { role: "user", id: "ann" }, hops: 0 };
}

it("mail that is asked about several times counts once, and everybody who asked is told", async () => {
  const alpha = await openHouse({
    swarm: houseSwarm("alpha", ["beta"]),
    settings: { maxWaiting: 2, deliveryTime: 60_000, attemptTime: 60_000 },
  });
  onTestFinished(() => alpha.close());
  const held: (() => void)[] = [];
  const beta = await openStrangeSwarm("beta", ["dedupe"], (_, response) => {
    held.push(() => response.end("{}"));
  });
  await register(alpha, "beta", beta.url);
  const { carrier } = alpha.federation;
  const first = mailTo("beta");
  const sent = [carrier.send(first), carrier.send(first), carrier.send(first), carrier.send(mailTo("beta"))];
  expect(await carrier.send(mailTo("beta"))).toEqual({
    accepted: false,
    reason: "2 messages already wait for swarm 'beta'",
  });
  await until(() => held.length === 2, "two attempts");
  for (const answer of held.splice(0)) answer();
  for (const { accepted } of await Promise.all(sent)) expect(accepted).toBe(true);
  const next = carrier.send(mailTo("beta"));
  await until(() => held.length === 1, "another attempt");
  for (const answer of held.splice(0)) answer();
  expect(await next).toMatchObject({ accepted: true });
});

it("mail whose sending had not begun when the server was stopped is sent by the next one", async () => {
  const data = mkdtempSync(join(tmpdir(), "mailroom-waiting-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const beta = await openStrangeSwarm("beta", ["dedupe"], (_, response) => response.end("{}"), {
    keepAlive: false,
  });
  let silent = false;
  let unanswered = 0;
  const options: HouseOptions = {
    swarm: houseSwarm("alpha", ["beta"]),
    data,
    env: { BETA: "x" },
    settings: {
      allow: ["beta.example"],
      attemptTime: 60_000,
      deliveryTime: 60_000,
      healthInterval: 3_600_000,
    },
    resolve: () => {
      if (!silent) return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
      unanswered += 1;
      return new Promise(() => undefined);
    },
  };
  const before = await openHouse(options);
  const baseUrl = `http://beta.example:${new URL(beta.url).port}`;
  // biome-ignore lint/suspicious/noTemplateCurlyInString: tokens outlive a process as references only
  const reference = "${BETA}";
  await before.federation.registry.register({ name: "beta", baseUrl, authToken: reference, volatile: false });
  await until(() => beta.count("/health") > 0, "the first check");
  silent = true;
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => unanswered > 0, "the attempt");
  await before.close();

  silent = false;
  const after = await openHouse(options);
  onTestFinished(() => after.close());
  const task = await after.mailroom.user("ann").requireTask(taskId);
  const carried = await until(async () => {
    for await (const { entry } of task.journal()) if (entry.t === "carried") return entry;
    return undefined;
  }, "what became of it");
  expect(carried).toMatchObject({ ok: true });
  expect(beta.count("/forward")).toBe(1);
});
