/** Peers with a valid token whose mail is meant to do harm, or does so by accident. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Entry } from "../../src/engine/entries.js";
import { call, type Reply } from "../http/harness.js";
import { agent } from "../kit/swarms.js";
import { houseSwarm, Slow } from "./agents.js";
import { type House, type HouseOptions, introduce, openHouse } from "./house.js";
import { until } from "./until.js";
import { deliver, type WrapperWish, wrapperOf } from "./wire.js";

async function open(options: HouseOptions): Promise<House> {
  const house = await openHouse(options);
  onTestFinished(() => house.close());
  return house;
}

/** A swarm that accepts all mail and never answers; `events` says what its streams have. */
async function peerOf(house: House, name: string, events?: string): Promise<{ readonly asked: string[] }> {
  const asked: string[] = [];
  const capabilities = events === undefined ? ["dedupe"] : ["dedupe", "events"];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    asked.push(request.url ?? "");
    request.resume();
    if (request.url === "/") response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities }));
    else if (request.url?.includes("/events")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(events);
    } else response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const authToken = `agent:${house.mailroom.swarm.name}`;
  const baseUrl = `http://127.0.0.1:${port}`;
  await house.federation.registry.register({ name, baseUrl, authToken, volatile: true });
  return { asked };
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "mailroom-hostile-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function journalOf(house: House, taskId: string): Promise<Entry[]> {
  const task = await house.mailroom.user("ann").requireTask(taskId);
  const entries: Entry[] = [];
  for await (const { entry } of task.journal()) entries.push(entry);
  return entries;
}

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

describe("what is nested too deeply to be written down", () => {
  const ANSWER = { type: "response", from: "clerk@beta", to: "boss@alpha", owner: "user:ann@alpha" } as const;

  it.each([100, 20_000])("is refused as mail, %i levels, and disturbs no turn", async (levels) => {
    const slow = new Slow();
    const alpha = await open({ swarm: houseSwarm("alpha", ["beta"], slow) });
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

  it("is left out of copied events, and those after it are not", async () => {
    const slow = new Slow();
    const alpha = await open({ swarm: houseSwarm("alpha", ["beta"], slow) });
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

describe("names that every object has", () => {
  const NAMES = ["constructor", "valueOf"];

  it.each(NAMES)("a response with the subject '%s' is a response, and ends nothing", async (subject) => {
    const slow = new Slow();
    const alpha = await open({ swarm: houseSwarm("alpha", ["beta"], slow) });
    const taskId = randomUUID();
    await deliver(alpha.url, "forward", { taskId, to: "slow@alpha" });
    const answer = await deliver(alpha.url, "back", { taskId, to: "slow@alpha", type: "response", subject });
    expect(answer.status).toBe(200);
    const task = await alpha.mailroom.instance({ role: "swarm", id: "beta" }).requireTask(taskId);
    expect(await task.status()).toBe("running");
    slow.release();
  });

  it.each(NAMES)("a swarm may be called %s: it asks, is asked, and hears the end", async (name) => {
    const alpha = await open({ swarm: houseSwarm("alpha", [name]) });
    const other = await open({ swarm: houseSwarm(name, ["alpha"]) });
    await introduce(alpha, other);
    const taskId = randomUUID();
    const { response } = await alpha.mailroom.user("ann").ask(`ask clerk@${name}: hello`, { taskId });
    expect(response).toBe(`clerk@${name}: ${name} says: hello`);
    await until(async () => {
      const task = await other.mailroom.instance({ role: "swarm", id: "alpha" }).requireTask(taskId);
      return (await task.status()) === "completed";
    }, "the end over there");
    const [told] = (await journalOf(alpha, taskId)).flatMap((entry) =>
      entry.t === "sent" && entry.message.message.subject === "::task_complete::"
        ? [entry.message.message]
        : [],
    );
    // By what is remembered of the other swarm, and not `all@…`.
    expect(told).toMatchObject({ recipient: { address: `clerk@${name}` } });
  });

  it("an answer with such a subject gets across with a signature", async () => {
    const answering = agent("clerk", {
      interswarm: true,
      targets: ["boss@alpha"],
      run: ({ messages: [{ message }] }) => {
        const target = message.sender.address;
        const args = { target, subject: "constructor", body: "two arguments" };
        return { calls: [{ id: "1", name: "send_response", args }] };
      },
    });
    const beta = houseSwarm("beta", ["alpha"]);
    const others = beta.agents.filter(({ name }) => name !== "clerk");
    const [here, there] = [
      await open({ swarm: houseSwarm("alpha", ["beta"]), data: directory() }),
      await open({ swarm: { ...beta, agents: [...others, answering] }, data: directory() }),
    ];
    await introduce(here, there);
    const { response } = await here.mailroom.user("ann").ask("ask clerk@beta: what does it take?");
    expect(response).toBe("clerk@beta: two arguments");
  });
});

it("an ending for two instances of which one could not be written is carried through when it comes again", async () => {
  const slow = new Slow();
  const alpha = await open({ swarm: houseSwarm("alpha", ["beta", "gamma"], slow) });
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

it("a contributor cannot cut a task off from the others by naming more contributors than they take", async () => {
  const slow = new Slow();
  const alpha = await open({ swarm: houseSwarm("alpha", ["beta", "gamma"], slow) });
  const beta = await open({ swarm: houseSwarm("beta", ["alpha"]) });
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

it("a peer that hangs up while it waits for the end of a task gives its place back", async () => {
  const slow = new Slow();
  const limits = { waits: 1, waitsPerCaller: 1 };
  const alpha = await open({ swarm: houseSwarm("alpha", ["beta"], slow), server: { limits } });
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
