/** Two and three servers in processes of their own, among them some that are down, die, hang or answer nonsense. */
import { randomUUID } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { houseSwarm } from "./agents.js";
import { type House, openHouse } from "./house.js";
import { compileChild, freePort, ServerProcess } from "./processes.js";
import { readSseEvents } from "./sse.js";
import { until } from "./until.js";

let child: ReturnType<typeof compileChild>;
let alpha: ServerProcess;
let beta: ServerProcess;
let gamma: ServerProcess;

const SETTINGS = {
  // Longer than any of them takes to start, however busy the machine is.
  deliveryTime: 60_000,
  attemptTime: 500,
  healthInterval: 100,
  healthTime: 400,
  // What is not reachable for a moment is not inactive yet.
  failuresToInactive: 1_000,
} as const;

async function makeServer(name: string, others: readonly string[]): Promise<ServerProcess> {
  const port = await freePort();
  return new ServerProcess(child.script, { name, others, port, settings: SETTINGS, replyTime: 120_000 });
}

beforeAll(async () => {
  child = compileChild();
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

  it("a swarm that is down when it is asked gets the message when it comes up", async () => {
    await alpha.register("gamma", gamma.url);
    // Registered while it was away, so it is inactive: the first one is told so.
    expect(await ask(alpha, "ask clerk@gamma: early")).toMatchObject({
      response: expect.stringContaining("swarm 'gamma' is inactive (it was never seen)"),
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
    // Now it goes away without anybody having noticed.
    await gamma.kill();
    const waiting = ask(alpha, "ask clerk@gamma: meanwhile");
    await gamma.start();
    expect(await waiting).toMatchObject({ response: "clerk@gamma: gamma says: meanwhile" });
  });

  it("one that dies in the middle of a task goes on with it when it is back", async () => {
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

  it("one that dies after it has asked goes on when it is back, and asks nobody twice", async () => {
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

  it("[MAIL-INTER-04] a swarm that is away when the owner ends the task hears of it later", async () => {
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
      // Beta's agent answers only when its turn has been seen over here.
      if (event === "interswarm_event" && JSON.stringify(data).includes("[hold]")) beta.release();
    });
    expect(events.at(-1)?.event).toBe("task_complete");
    const copied = events.filter(({ event }) => event === "interswarm_event");
    expect(copied.length).toBeGreaterThan(0);
    expect(JSON.stringify(copied)).toContain('"swarm":"beta"');
  });
});

/** Takes no mail, each in its own way; otherwise a server like any other. */
async function illServer(
  doctor: House,
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

describe("a server that is ill", () => {
  const PATIENTS = ["hanging", "failing", "raving", "late"];
  let doctor: House;
  beforeAll(async () => {
    // Beta answers to it as it does to alpha.
    const settings = { deliveryTime: 3_000, attemptTime: 500, failuresToInactive: 1_000 };
    doctor = await openHouse({ swarm: houseSwarm("doctor", ["beta", ...PATIENTS]), settings });
    await beta.register("doctor", doctor.url);
    const known = { name: "beta", baseUrl: beta.url, authToken: "agent:doctor", volatile: true };
    await doctor.federation.registry.register(known);
  });
  afterAll(() => doctor.close());

  it("keeps nobody waiting without a word, whether it hangs, fails or talks nonsense, and costs the healthy ones nothing", async () => {
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
    // Others are served meanwhile.
    const healthy = await doctor.mailroom.user("ann").ask("ask clerk@beta: and you?");
    expect(healthy).toMatchObject({ response: "clerk@beta: beta says: and you?" });
    const told = (words: RegExp) => ({ status: "completed", response: expect.stringMatching(words) });
    expect(await waiting).toMatchObject([
      told(/not delivered by its deadline; the last attempt failed: .*no answer within 500 ms/),
      told(/not delivered by its deadline; the last attempt failed: it answered 500: out of order/),
      told(/was not delivered: it answered 418/),
    ]);
  });

  it("and answers late is asked again, under the same id", async () => {
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
