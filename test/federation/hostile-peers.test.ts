/** Peers with a valid token whose mail does harm, on purpose or by accident. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Entry } from "../../src/engine/task/entries.js";
import { call, type Reply } from "../http/harness.js";
import { agent } from "../kit/swarms.js";
import { Slow, testSwarm } from "./agents.js";
import { introduce, openTestServer, type TestServer, type TestServerOptions } from "./servers.js";
import { until } from "./until.js";
import { deliver, type WrapperWish, wrapperOf } from "./wire.js";

async function open(options: TestServerOptions): Promise<TestServer> {
  const server = await openTestServer(options);
  onTestFinished(() => server.close());
  return server;
}

/** A swarm that accepts all mail and never answers; `events` is the content of its streams. */
async function peerOf(
  server: TestServer,
  name: string,
  events?: string,
): Promise<{ readonly asked: string[] }> {
  const asked: string[] = [];
  const capabilities = events === undefined ? ["dedupe"] : ["dedupe", "events"];
  const peer = createServer((request: IncomingMessage, response: ServerResponse) => {
    asked.push(request.url ?? "");
    request.resume();
    if (request.url === "/") response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities }));
    else if (request.url?.includes("/events")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(events);
    } else response.end("{}");
  });
  await new Promise<void>((resolve) => peer.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    peer.closeAllConnections();
    peer.close();
  });
  const { port } = peer.address() as AddressInfo;
  const authToken = `agent:${server.mailroom.swarm.name}`;
  const baseUrl = `http://127.0.0.1:${port}`;
  await server.federation.registry.register({ name, baseUrl, authToken, volatile: true });
  return { asked };
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "mailroom-hostile-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function journalOf(server: TestServer, taskId: string): Promise<Entry[]> {
  const task = await server.mailroom.user("ann").requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  return entries;
}

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("content that is nested too deeply", () => {
  const ANSWER = { type: "response", from: "clerk@beta", to: "boss@alpha", owner: "user:ann@alpha" } as const;

  it.each([100, 20_000])("is rejected as mail, %i levels, and stops no turn", async (levels) => {
    const slow = new Slow();
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"], slow) });
    const beta = await peerOf(alpha, "beta");
    const taskId = randomUUID();
    await alpha.mailroom.user("ann").post("ask slow, clerk@beta: hello", { taskId });
    await until(() => beta.asked.includes("/interswarm/forward") && slow.begun === 1, "both asked");
    const post = (wrapper: ReturnType<typeof wrapperOf>): Promise<Reply> => {
      const text = JSON.stringify({ message: wrapper }).replace('"HOLE"', nested(levels));
      const headers = { "content-type": "application/json" };
      return call(alpha.url, "/interswarm/back", { token: "agent:beta", text, headers });
    };
    const wish = { ...ANSWER, taskId };
    const wrapper = wrapperOf(wish);
    const info = await post({ ...wrapper, payload: { ...wrapper.payload, routing_info: { x: "HOLE" } } });
    const metadata = await post(wrapperOf({ ...wish, metadata: { signature: "ed25519:x", y: "HOLE" } }));
    expect([info.status, metadata.status]).toEqual([400, 400]);
    await deliver(alpha.url, "back", { ...wish, body: "fine" });
    slow.release();
    await until(async () => (await journalOf(alpha, taskId)).some(({ t }) => t === "completed"), "the end");
    const kinds = (await journalOf(alpha, taskId)).map(({ t }) => t);
    expect(kinds).not.toContain("recovered");
  });

  it("is skipped in copied events, and later events are copied", async () => {
    const slow = new Slow();
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"], slow) });
    const bad = `id: 5\nevent: x\ndata: {"a":${nested(20_000)}}\n\n`;
    await peerOf(alpha, "beta", `${bad}id: 6\nevent: y\ndata: {"a":1}\n\n`);
    const taskId = randomUUID();
    const watching = (async () => {
      for await (const _ of alpha.mailroom.user("ann").stream("ask slow, clerk@beta: hello", { taskId }));
    })();
    await until(async () => {
      const task = await alpha.mailroom.user("ann").task(taskId);
      return task !== undefined && (await journalOf(alpha, taskId)).some(({ t }) => t === "remote_event");
    }, "a copied event");
    await deliver(alpha.url, "back", { ...ANSWER, taskId });
    slow.release();
    await watching;
    const entries = await journalOf(alpha, taskId);
    expect(entries.flatMap((entry) => (entry.t === "remote_event" ? [entry.id] : []))).toEqual(["6"]);
    expect(entries.map(({ t }) => t)).not.toContain("recovered");
  });
});

describe("names of Object.prototype members", () => {
  const NAMES = ["constructor", "valueOf"];

  it.each(NAMES)("a response with the subject '%s' ends nothing", async (subject) => {
    const slow = new Slow();
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"], slow) });
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId, to: "slow@alpha" });
    const answer = await deliver(alpha.url, "back", { taskId, to: "slow@alpha", type: "response", subject });
    expect(answer.status).toBe(200);
    const task = await alpha.mailroom.instance({ role: "swarm", id: "beta" }).requireTask(taskId);
    expect(await task.status()).toBe("running");
    slow.release();
  });

  it.each(NAMES)("a swarm named %s can ask, be asked, and receive the ending", async (name) => {
    const alpha = await open({ swarm: testSwarm("alpha", [name]) });
    const other = await open({ swarm: testSwarm(name, ["alpha"]) });
    await introduce(alpha, other);
    const taskId = randomUUID();
    const { response } = await alpha.mailroom.user("ann").ask(`ask clerk@${name}: hello`, { taskId });
    expect(response).toBe(`clerk@${name}: ${name} says: hello`);
    await until(async () => {
      const task = await other.mailroom.instance({ role: "swarm", id: "alpha" }).requireTask(taskId);
      return (await task.status()) === "completed";
    }, "the end at the peer");
    const [told] = (await journalOf(alpha, taskId)).flatMap((entry) =>
      entry.t === "sent" && entry.message.message.subject === "::task_complete::"
        ? [entry.message.message]
        : [],
    );
    // By the recorded contact, not `all@…`.
    expect(told).toMatchObject({ recipient: { address: `clerk@${name}` } });
  });

  it("an answer with such a subject is signed and delivered", async () => {
    const answering = agent("clerk", {
      interswarm: true,
      targets: ["boss@alpha"],
      run: ({ messages: [{ message }] }) => {
        const target = message.sender.address;
        const args = { target, subject: "constructor", body: "two arguments" };
        return { calls: [{ id: "1", name: "send_response", args }] };
      },
    });
    const beta = testSwarm("beta", ["alpha"]);
    const others = beta.agents.filter(({ name }) => name !== "clerk");
    const [here, there] = [
      await open({ swarm: testSwarm("alpha", ["beta"]), data: directory() }),
      await open({ swarm: { ...beta, agents: [...others, answering] }, data: directory() }),
    ];
    await introduce(here, there);
    const { response } = await here.mailroom.user("ann").ask("ask clerk@beta: what does it take?");
    expect(response).toBe("clerk@beta: two arguments");
  });
});

it("an ending for two instances that was stored for one only is completed by the retry", async () => {
  const slow = new Slow();
  const alpha = await open({ swarm: testSwarm("alpha", ["beta", "gamma"], slow) });
  const taskId = randomUUID();
  const owner = "user:bob@beta";
  const asked: WrapperWish = { taskId, to: "slow@alpha", owner };
  await deliver(alpha.url, "forward", asked);
  const brought = [owner, "swarm:beta@gamma"];
  await deliver(alpha.url, "forward", { ...asked, source: "gamma", contributors: brought });
  const { writer } = alpha.mailroom.store;
  const push = writer.push.bind(writer);
  let ends = 0;
  const disk = vi.spyOn(writer, "push").mockImplementation((unit) => {
    if (unit.appends.some(({ data }) => data.includes('"completed"')) && ++ends === 2) {
      queueMicrotask(() => unit.refused(new Error("this cannot be stored"), []));
    } else push(unit);
  });
  onTestFinished(() => disk.mockRestore());
  const ending = { ...asked, to: "boss@alpha", type: "response", subject: "::task_complete::" } as const;
  const messageId = randomUUID();
  expect((await deliver(alpha.url, "back", { ...ending, messageId })).status).toBeGreaterThanOrEqual(500);
  expect((await deliver(alpha.url, "back", { ...ending, messageId })).status).toBe(200);
  for (const id of ["beta", "gamma"]) {
    const task = await alpha.mailroom.instance({ role: "swarm", id }).requireTask(taskId);
    expect(await task.status()).toBe("completed");
  }
  slow.release();
});

it("a contributor cannot cut off a task by naming more contributors than peers accept", async () => {
  const slow = new Slow();
  const alpha = await open({ swarm: testSwarm("alpha", ["beta", "gamma"], slow) });
  const beta = await open({ swarm: testSwarm("beta", ["alpha"]) });
  await introduce(alpha, beta);
  const gamma = await peerOf(alpha, "gamma");
  const taskId = randomUUID();
  await alpha.mailroom.user("ann").post("ask clerk@gamma: hello", { taskId });
  await until(() => gamma.asked.includes("/interswarm/forward"), "gamma asked");
  const owner = "user:ann@alpha";
  const names = (swarmOf: (at: number) => string) =>
    Array.from({ length: 150 }, (_, at) => `swarm:x${at}@${swarmOf(at)}`);
  const lists = [names((at) => `made-up-${at}`), names(() => "gamma"), names(() => "beta")];
  for (const list of lists) {
    const contributors = [owner, ...list];
    const wish = { taskId, source: "gamma", owner, to: "slow@alpha", contributors };
    expect((await deliver(alpha.url, "back", wish)).status).toBe(200);
  }
  const task = await alpha.mailroom.user("ann").requireTask(taskId);
  const { task_contributors } = await task.record();
  expect(task_contributors).toContain(owner);
  expect(task_contributors.length).toBeLessThanOrEqual(200);
  expect(task_contributors.filter((text) => text.includes("@made-up"))).toEqual([]);
  await alpha.mailroom.user("ann").post("ask clerk@beta: still there?", { taskId });
  const carried = await until(async () => {
    const entries = await journalOf(alpha, taskId);
    return entries.find((entry) => entry.t === "carried" && entry.swarm === "beta");
  }, "an answer of beta's server");
  expect(carried).toMatchObject({ ok: true });
  slow.release();
});

it("a peer that disconnects while it waits for the end of a task releases its slot", async () => {
  const slow = new Slow();
  const limits = { waits: 1, waitsPerCaller: 1 };
  const alpha = await open({ swarm: testSwarm("alpha", ["beta"], slow), server: { limits } });
  const stop = new AbortController();
  const waiting = fetch(`${alpha.url}/interswarm/message`, {
    method: "POST",
    signal: stop.signal,
    headers: { authorization: "Bearer agent:beta", "content-type": "application/json" },
    body: JSON.stringify(wrapperOf({ to: "slow@alpha" })),
  });
  await until(() => slow.begun === 1, "the turn");
  stop.abort();
  await expect(waiting).rejects.toThrow();
  const json = { body: "hi" };
  await until(
    async () => (await call(alpha.url, "/message", { token: "user:ann", json })).status === 200,
    "a place",
  );
  slow.release();
});
