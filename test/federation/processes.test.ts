/** Two and three servers in separate processes; some are down, die, hang or send invalid answers. */
import { randomUUID } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { testSwarm } from "./agents.js";
import { freePort, ServerProcess } from "./processes.js";
import { openTestServer, type TestServer } from "./servers.js";
import { readSseEvents } from "./sse.js";
import { until } from "./until.js";

let child: CompiledChild;
let alpha: ServerProcess;
let beta: ServerProcess;
let gamma: ServerProcess;

const SETTINGS = {
  // Longer than any of them takes to start on a busy machine.
  deliveryTimeout: 60_000,
  attemptTimeout: 500,
  healthInterval: 100,
  healthTimeout: 400,
  // A short outage does not make a swarm inactive.
  failuresToInactive: 1_000,
} as const;

async function makeServer(name: string, others: readonly string[]): Promise<ServerProcess> {
  const port = await freePort();
  return new ServerProcess(child.script, { name, others, port, settings: SETTINGS, replyTimeout: 120_000 });
}

beforeAll(async () => {
  child = compileChild("federation");
  alpha = await makeServer("alpha", ["beta", "gamma"]);
  beta = await makeServer("beta", ["alpha", "gamma", "doctor"]);
  gamma = await makeServer("gamma", ["alpha", "beta"]);
  await Promise.all([alpha.start(), beta.start()]);
  await alpha.register("beta", beta.url);
  await beta.register("alpha", alpha.url);
});
afterAll(async () => {
  await Promise.all([alpha, beta, gamma].map((server) => server.kill()));
  for (const server of [alpha, beta, gamma]) server.remove();
  child.remove();
});

const ask = async (server: ServerProcess, body: string, more: Record<string, unknown> = {}) =>
  (await server.call("/message", { token: "user:ann", json: { body, ...more } })).body;

describe("between processes", () => {
  it("a question is asked, answered and ended on both sides", async () => {
    const task_id = randomUUID();
    const answer = await ask(alpha, "ask clerk@beta, boss@beta: Tokyo?", { task_id });
    expect(answer).toMatchObject({
      status: "completed",
      response: "boss@beta: echo: Tokyo? | clerk@beta: beta says: Tokyo?",
    });
    const ended = await until(async () => {
      const { body } = await beta.call("/admin/tasks?status=completed", { token: "admin:root" });
      return JSON.stringify(body).includes(task_id) || undefined;
    }, "the end at beta");
    expect(ended).toBe(true);
  });

  it("a swarm that is down when asked gets the message after it starts", async () => {
    await alpha.register("gamma", gamma.url);
    // Registered while it was down, so it is inactive and the first request fails.
    expect(await ask(alpha, "ask clerk@gamma: early")).toMatchObject({
      response: expect.stringContaining("swarm 'gamma' is inactive (never seen)"),
    });
    await gamma.start();
    await Promise.all([gamma.register("alpha", alpha.url), gamma.register("beta", beta.url)]);
    await beta.register("gamma", gamma.url);
    await until(async () => {
      const { body } = await alpha.call("/swarms", { token: "user:ann" });
      return JSON.stringify(body).includes('"swarm_name":"gamma"') &&
        !JSON.stringify(body).includes('"is_active":false')
        ? true
        : undefined;
    }, "gamma's return");
    expect(await ask(alpha, "ask clerk@gamma: late")).toMatchObject({
      response: "clerk@gamma: gamma says: late",
    });
    // Now it stops without a failed health check.
    await gamma.kill();
    const waiting = ask(alpha, "ask clerk@gamma: meanwhile");
    await gamma.start();
    expect(await waiting).toMatchObject({ response: "clerk@gamma: gamma says: meanwhile" });
  });

  it("a swarm that dies during a task continues it after a restart", async () => {
    const task_id = randomUUID();
    const waiting = ask(alpha, "ask slow@beta, clerk@gamma: through the storm", { task_id });
    await until(async () => {
      const { body } = await beta.call("/admin/tasks?status=running", { token: "admin:root" });
      return JSON.stringify(body).includes(task_id) || undefined;
    }, "beta's part");
    await beta.kill();
    await beta.start();
    expect(await waiting).toMatchObject({
      status: "completed",
      response: "clerk@gamma: gamma says: through the storm | slow@beta: late: through the storm",
    });
  });

  it("a swarm that dies after asking continues after a restart and asks no swarm twice", async () => {
    const task_id = randomUUID();
    const key = randomUUID();
    const post = () =>
      alpha.call("/message", {
        token: "user:ann",
        headers: { "idempotency-key": key },
        json: { body: "ask slow@beta: remember me", task_id },
      });
    const first = post().catch(() => undefined);
    await until(async () => {
      const { body } = await beta.call("/admin/tasks?status=running", { token: "admin:root" });
      return JSON.stringify(body).includes(task_id) || undefined;
    }, "beta's part");
    await alpha.kill();
    await first;
    await alpha.start();
    expect((await post()).body).toMatchObject({ response: "slow@beta: late: remember me" });
    const { body } = await alpha.call(`/tasks/${task_id}/events`, { token: "user:ann" });
    const received = JSON.stringify(body).match(/interswarm_message_received/g);
    expect(received).toHaveLength(1);
  });

  it("[MAIL-INTER-04] a swarm that is down when the owner ends the task is notified later", async () => {
    const task_id = randomUUID();
    const waiting = ask(alpha, "ask clerk@beta, slow@gamma: part and whole", { task_id });
    await until(async () => {
      const { body } = await alpha.call(`/tasks/${task_id}/events`, { token: "user:ann" });
      return JSON.stringify(body).includes("beta says") || undefined;
    }, "beta's answer");
    await beta.kill();
    await waiting;
    await beta.start();
    await until(async () => {
      const { body } = await beta.call("/admin/tasks?status=completed", { token: "admin:root" });
      return JSON.stringify(body).includes(task_id) || undefined;
    }, "the end at beta");
  });

  it("a stream shows what the other process does", async () => {
    const wish = { body: "ask slow@beta: [hold] show me", stream: true };
    const events = await readSseEvents(`${alpha.url}/message`, "user:ann", wish, ({ event, data }) => {
      // Beta's agent answers only after its turn was seen here.
      if (event === "interswarm_event" && JSON.stringify(data).includes("[hold]")) beta.release();
    });
    expect(events.at(-1)?.event).toBe("task_complete");
    const copied = events.filter(({ event }) => event === "interswarm_event");
    expect(copied.length).toBeGreaterThan(0);
    expect(JSON.stringify(copied)).toContain('"swarm":"beta"');
  });
});

/** Accepts no mail, each in its own way; otherwise a normal server. */
async function illServer(
  doctor: TestServer,
  name: string,
  receive: (response: ServerResponse, asked: number) => void,
): Promise<Server> {
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === "/")
      response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities: ["dedupe"] }));
    else if (request.url === "/health") response.end("{}");
    else receive(response, ++asked);
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${port}`;
  await doctor.federation.registry.register({ name, baseUrl, authToken: "x", volatile: true });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

describe("a faulty server", () => {
  const PATIENTS = ["hanging", "failing", "raving", "late"];
  let doctor: TestServer;
  beforeAll(async () => {
    // Beta accepts it like alpha.
    const settings = { deliveryTimeout: 3_000, attemptTimeout: 500, failuresToInactive: 1_000 };
    doctor = await openTestServer({ swarm: testSwarm("doctor", ["beta", ...PATIENTS]), settings });
    await beta.register("doctor", doctor.url);
    const known = { name: "beta", baseUrl: beta.url, authToken: "agent:doctor", volatile: true };
    await doctor.federation.registry.register(known);
  });
  afterAll(() => doctor.close());

  it("that hangs, fails or sends invalid answers leaves no sender waiting, and does not affect healthy ones", async () => {
    await illServer(doctor, "hanging", () => {});
    await illServer(doctor, "failing", (response) =>
      response.writeHead(500).end('{"detail": "out of order"}'),
    );
    await illServer(doctor, "raving", (response) => response.writeHead(418).end("<html>"));
    const waiting = Promise.all(
      ["hanging", "failing", "raving"].map((name) =>
        doctor.mailroom.user("ann").ask(`ask clerk@${name}: are you well?`),
      ),
    );
    // Others are served in the meantime.
    const healthy = await doctor.mailroom.user("ann").ask("ask clerk@beta: and you?");
    expect(healthy).toMatchObject({ response: "clerk@beta: beta says: and you?" });
    const told = (words: RegExp) => ({ status: "completed", response: expect.stringMatching(words) });
    expect(await waiting).toMatchObject([
      told(/not delivered by its deadline; the last attempt failed: .*no response within 500 ms/),
      told(/not delivered by its deadline; the last attempt failed: it answered 500: out of order/),
      told(/was not delivered: it answered 418/),
    ]);
  });

  it("that answers late is retried with the same id", async () => {
    const ids = new Set<string>();
    let seen = 0;
    const answer = { swarm: "late", task_id: "x", status: "success", local_runner: "swarm:alpha@late" };
    await illServer(doctor, "late", (response, asked) => {
      response.req.on("data", (part: Buffer) => {
        const id = /"message_id":"([^"]+)"/.exec(part.toString())?.[1];
        if (id !== undefined) ids.add(id);
      });
      seen = asked;
      if (asked > 1) response.end(JSON.stringify(answer));
    });
    await doctor.mailroom.user("ann").post("ask clerk@late: take your time");
    await until(() => seen >= 2 || undefined, "the second attempt");
    expect(ids.size).toBe(1);
  });
});
