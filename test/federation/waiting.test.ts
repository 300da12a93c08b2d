/** Mail that waits for an unreachable swarm or for a restart. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openSqliteStore } from "../../src/store/index.js";
import { testSwarm } from "./agents.js";
import { type MalformedPeer, openMalformedPeer, register } from "./malformed-peer.js";
import { openTestServer, type TestServer, type TestServerOptions } from "./servers.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

/** The task's delivery results, as soon as there are any. */
async function carriedIn(server: TestServer, taskId: string) {
  const task = await server.mailroom.user("ann").requireTask(taskId);
  return until(async () => {
    for await (const { entry } of task.journal()) if (entry.t === "carried") return entry;
    return undefined;
  }, "the outcome");
}

/** Resolves a swarm by name, for registries that outlive a process. */
function persistent(beta: MalformedPeer, resolve: TestServerOptions["resolve"]) {
  const data = mkdtempSync(join(tmpdir(), "mailroom-waiting-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const options: TestServerOptions = {
    swarm: testSwarm("alpha", ["beta"]),
    data,
    env: { BETA: "x" },
    settings: {
      allow: ["beta.example"],
      attemptTimeout: 60_000,
      deliveryTimeout: 60_000,
      healthInterval: 3_600_000,
    },
    ...(resolve !== undefined && { resolve }),
  };
  const register = async (server: TestServer) => {
    const baseUrl = `http://beta.example:${new URL(beta.url).port}`;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: tokens outlive a process as references only
    const authToken = "${BETA}";
    await server.federation.registry.register({ name: "beta", baseUrl, authToken, volatile: false });
    await until(() => beta.count("/health") > 0, "the first check");
  };
  return { data, options, register };
}

const HERE = [{ address: "127.0.0.1", family: 4 as const }];

it("only a limited number of messages wait for a swarm: further senders are notified at once", async () => {
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    settings: { maxWaiting: 2, deliveryTimeout: 60_000, attemptTimeout: 60_000 },
  });
  onTestFinished(() => alpha.close());
  const held: (() => void)[] = [];
  const beta = await openMalformedPeer("beta", ["dedupe"], (_, response) => {
    held.push(() => response.end("{}"));
  });
  await register(alpha, "beta", beta.url);
  const ann = alpha.mailroom.user("ann");
  const taskIds = [randomUUID(), randomUUID()];
  for (const taskId of taskIds) await ann.post("ask clerk@beta: hello", { taskId });
  await until(() => held.length === 2, "two attempts");
  const { response } = await ann.ask("ask clerk@beta: hello");
  expect(response).toContain("2 messages are already waiting for swarm 'beta'");
  for (const answer of held.splice(0)) answer();
  for (const taskId of taskIds) expect(await carriedIn(alpha, taskId)).toMatchObject({ ok: true });
  await ann.post("ask clerk@beta: hello");
  await until(() => held.length === 1, "another attempt");
  for (const answer of held.splice(0)) answer();
});

it("[MAIL-G-1] an answer to a swarm that was unreachable until now is not given up when its receipt is lost", async () => {
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    settings: { attemptTimeout: 60_000, deliveryTimeout: 60_000, healthInterval: 3_600_000 },
  });
  onTestFinished(() => alpha.close());
  let isUp = false;
  const beta = await openMalformedPeer("beta", ["dedupe"], (request, response) => {
    if (request.url === "/interswarm/back" && beta.count("/back") === 1) response.destroy();
    else response.end("{}");
  });
  // Until it is up, the swarm accepts connections and closes them.
  const wire = createServer((near) => {
    if (!isUp) return void near.destroy();
    const far = connect(Number(new URL(beta.url).port), "127.0.0.1");
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => {});
    onTestFinished(() => void near.destroy());
  });
  await new Promise<void>((resolve) => wire.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void wire.close());
  await register(alpha, "beta", `http://127.0.0.1:${(wire.address() as AddressInfo).port}`);
  expect(alpha.federation.registry.get("beta")).toMatchObject({ isActive: false, version: null });
  isUp = true;
  const taskId = randomUUID();
  expect((await deliver(alpha.url, "forward", { taskId })).status).toBe(200);
  const task = await alpha.mailroom.instance({ role: "swarm", id: "beta" }).requireTask(taskId);
  const carried = await until(async () => {
    for await (const { entry } of task.journal()) if (entry.t === "carried") return entry;
    return undefined;
  }, "the outcome");
  expect(carried).toMatchObject({ ok: true });
  expect(beta.count("/back")).toBe(2);
});

it("mail reaches a swarm whose self-description is too long to be read", async () => {
  const alpha = await openTestServer({
    swarm: testSwarm("alpha", ["beta"]),
    settings: { attemptTimeout: 60_000, deliveryTimeout: 60_000, healthInterval: 3_600_000 },
  });
  onTestFinished(() => alpha.close());
  const long = "x".repeat(1024 * 1024);
  const beta = await openMalformedPeer("beta", [long], (_, response) => response.end("{}"));
  await register(alpha, "beta", beta.url);
  await until(() => alpha.federation.registry.get("beta")?.isActive === true, "the first check");
  const taskId = randomUUID();
  await alpha.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => beta.count("/forward") > 0 || beta.count("/") > 6, "the message, or attempts without it");
  expect(beta.count("/forward")).toBe(1);
});

it("mail of a task that has ended is sent by the next process, and settled in its journal", async () => {
  const beta = await openMalformedPeer("beta", ["dedupe"], (_, response) => response.end("{}"), {
    keepAlive: false,
  });
  let silent = false;
  let unanswered = 0;
  const { options, register } = persistent(beta, () => {
    if (!silent) return Promise.resolve(HERE);
    unanswered += 1;
    return new Promise(() => undefined);
  });
  const before = await openTestServer(options);
  await register(before);
  silent = true;
  const taskId = randomUUID();
  const ann = before.mailroom.user("ann");
  await ann.post("ask clerk@beta: hello", { taskId });
  await until(() => unanswered > 0, "the attempt");
  // The question is obsolete, but the cancellation is sent.
  await (await ann.requireTask(taskId)).cancel();
  await before.close();

  silent = false;
  const after = await openTestServer(options);
  onTestFinished(() => after.close());
  await until(() => beta.count("/interswarm/") === 2, "the question and the end");
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true });
});

it("a delivery that was not recorded in its task is recorded when the next process reads the task", async () => {
  let answer: (() => void) | undefined;
  const beta = await openMalformedPeer("beta", ["dedupe"], (_, response) => {
    answer = () => response.end("{}");
  });
  const { data, options, register } = persistent(beta, () => Promise.resolve(HERE));
  const before = await openTestServer(options);
  await register(before);
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => answer, "the attempt");
  await before.close();

  // Like versions that wrote one without the other.
  const store = await openSqliteStore({ directory: data, durability: "fast" });
  const [item] = await store.outbox.list("federation", { status: "waiting", limit: 2 });
  if (item === undefined) throw new Error("it is in the outbox");
  const finish = { kind: "outbox.finish", id: item.id, outcome: "delivered", attempts: 1, at: Date.now() };
  await store.commit({ appends: [], rows: [finish] });
  await store.close();

  const after = await openTestServer(options);
  onTestFinished(() => after.close());
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true, contributors: ["swarm:alpha@beta"] });
  expect(beta.count("/interswarm/")).toBe(1);
});

it("mail that was not attempted before the server stopped is sent by the next one", async () => {
  const beta = await openMalformedPeer("beta", ["dedupe"], (_, response) => response.end("{}"), {
    keepAlive: false,
  });
  let silent = false;
  let unanswered = 0;
  const { options, register } = persistent(beta, () => {
    if (!silent) return Promise.resolve(HERE);
    unanswered += 1;
    return new Promise(() => undefined);
  });
  const before = await openTestServer(options);
  await register(before);
  silent = true;
  const taskId = randomUUID();
  await before.mailroom.user("ann").post("ask clerk@beta: hello", { taskId });
  await until(() => unanswered > 0, "the attempt");
  await before.close();

  silent = false;
  const after = await openTestServer(options);
  onTestFinished(() => after.close());
  expect(await carriedIn(after, taskId)).toMatchObject({ ok: true });
  expect(beta.count("/forward")).toBe(1);
});
