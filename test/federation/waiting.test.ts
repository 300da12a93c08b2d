/** Mail that waits: for a swarm that is away, and for a server that is started again. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openSqliteStore } from "../../src/store/index.js";
import { houseSwarm } from "./agents.js";
import { type House, type HouseOptions, openHouse } from "./house.js";
import { openStrangeSwarm, register, type StrangeSwarm } from "./strange-swarm.js";
import { until } from "./until.js";

/** What the task was told of its mail, once it was told anything. */
async function carriedIn(house: House, taskId: string) {
  const task = await house.mailroom.user("ann").requireTask(taskId);
  return until(async () => {
    for await (const { entry } of task.journal()) if (entry.t === "carried") return entry;
    return undefined;
  }, "what became of it");
}

/** Where a swarm is that is found by its name, for registries that outlive a process. */
function persistent(beta: StrangeSwarm, resolve: HouseOptions["resolve"]) {
  const data = mkdtempSync(join(tmpdir(), "mailroom-waiting-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
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
    ...(resolve !== undefined && { resolve }),
  };
  const register = async (house: House) => {
    const baseUrl = `http://beta.example:${new URL(beta.url).port}`;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: tokens outlive a process as references only
    const authToken = "${BETA}";
    await house.federation.registry.register({ name: "beta", baseUrl, authToken, volatile: false });
    await until(() => beta.count("/health") > 0, "the first check");
  };
  return { data, options, register };
}

const HERE = [{ address: "127.0.0.1", family: 4 as const }];

it("so much waits for a swarm and no more: whoever is turned away hears of it at once, until there is room", async () => {
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
  const ann = alpha.mailroom.user("ann");
  const taskIds = [randomUUID(), randomUUID()];
  for (const taskId of taskIds) await ann.post("ask clerk@beta: hello", { taskId });
  await until(() => held.length === 2, "two attempts");
  const { response } = await ann.ask("ask clerk@beta: hello");
  expect(response).toContain("2 messages already wait for swarm 'beta'");
  for (const answer of held.splice(0)) answer();
  for (const taskId of taskIds) expect(await carriedIn(alpha, taskId)).toMatchObject({ ok: true });
  await ann.post("ask clerk@beta: hello");
  await until(() => held.length === 1, "another attempt");
  for (const answer of held.splice(0)) answer();
});

it("mail of a task that has ended is sent by the next process, and settled in its journal", async () => {
  const beta = await openStrangeSwarm("beta", ["dedupe"], (_, response) => response.end("{}"), {
    keepAlive: false,
  });
  let silent = false;
  let unanswered = 0;
  const { options, register } = persistent(beta, () => {
    if (!silent) return Promise.resolve(HERE);
    unanswered += 1;
    return new Promise(() => undefined);
  });
  const before = await openHouse(options);
  await register(before);
  silent = true;
  const taskId = randomUUID();
  const ann = before.mailroom.user("ann");
  await ann.post("ask clerk@beta: hello", { taskId });
  await until(() => unanswered > 0, "the attempt");
  // The question is not for anybody any more, but that the task was cancelled is told.
  await (await ann.requireTask(taskId)).cancel();
  await before.close();

  silent = false;
  const after = await openHouse(options);
  onTestFinished(() => after.close());
  await until(() => beta.count("/interswarm/") === 2, "the question and the end");
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true });
});

it("what was delivered before its task could be told is told when the next process reads the task", async () => {
  let answer: (() => void) | undefined;
  const beta = await openStrangeSwarm("beta", ["dedupe"], (_, response) => {
    answer = () => response.end("{}");
  });
  const { data, options, register } = persistent(beta, () => Promise.resolve(HERE));
  const before = await openHouse(options);
  await register(before);
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => answer, "the attempt");
  await before.close();

  // As versions did that wrote the one without the other.
  const store = await openSqliteStore({ directory: data, durability: "fast" });
  const [item] = await store.outbox.list("federation", { status: "waiting", limit: 2 });
  if (item === undefined) throw new Error("it is in the outbox");
  const finish = { kind: "outbox.finish", id: item.id, outcome: "delivered", attempts: 1, at: Date.now() };
  await store.commit({ appends: [], rows: [finish] });
  await store.close();

  const after = await openHouse(options);
  onTestFinished(() => after.close());
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true, contributors: ["swarm:alpha@beta"] });
  expect(beta.count("/interswarm/")).toBe(1);
});

it("mail whose sending had not begun when the server was stopped is sent by the next one", async () => {
  const beta = await openStrangeSwarm("beta", ["dedupe"], (_, response) => response.end("{}"), {
    keepAlive: false,
  });
  let silent = false;
  let unanswered = 0;
  const { options, register } = persistent(beta, () => {
    if (!silent) return Promise.resolve(HERE);
    unanswered += 1;
    return new Promise(() => undefined);
  });
  const before = await openHouse(options);
  await register(before);
  silent = true;
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => unanswered > 0, "the attempt");
  await before.close();

  silent = false;
  const after = await openHouse(options);
  onTestFinished(() => after.close());
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true });
  expect(beta.count("/forward")).toBe(1);
});
