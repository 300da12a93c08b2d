/** What the operator decides: signatures, identities, hops, discovery; and the agents' tools for other swarms. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AgentFunction } from "../../src/engine/agent.js";
import type { SwarmDefinition } from "../../src/engine/definition.js";
import { agent } from "../kit/swarms.js";
import { testSwarm } from "./agents.js";
import { introduce, openTestServer, type TestServer, type TestServerOptions } from "./servers.js";
import { until } from "./until.js";
import { deliver } from "./wire.js";

async function open(options: TestServerOptions): Promise<TestServer> {
  const server = await openTestServer(options);
  onTestFinished(() => server.close());
  return server;
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "mailroom-policies-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A swarm whose entrypoint makes one call and completes with the result. */
function caller(
  name: string,
  tool: string,
  args: Record<string, unknown>,
  actions: SwarmDefinition["actions"] = [],
): SwarmDefinition {
  const run: AgentFunction = (turn) => {
    const [result] = turn.results;
    if (result !== undefined) {
      return { calls: [{ id: "2", name: "task_complete", args: { finish_message: result.content } }] };
    }
    return { calls: [{ id: "1", name: tool, args }] };
  };
  const boss = agent("boss", {
    targets: ["clerk@beta", "clerk@gamma"],
    supervisor: true,
    entrypoint: true,
    interswarm: true,
    actions: actions.map((action) => action.name),
    run,
  });
  return { ...testSwarm(name, []), agents: [boss], actions };
}

describe("signatures", () => {
  it("are made with a key that only its owner can read, announced in GET /, pinned, and verified", async () => {
    const data = directory();
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"]), data });
    const beta = await open({
      swarm: testSwarm("beta", ["alpha"]),
      data: directory(),
      settings: { signatures: "required" },
    });
    await introduce(alpha, beta);
    expect(statSync(join(data, "federation.key")).mode & 0o777).toBe(0o600);
    expect(beta.federation.registry.get("alpha")?.publicKey).toBe(alpha.federation.publicKey);
    const answer = await alpha.mailroom.user("ann").ask("ask clerk@beta: signed");
    expect(answer.response).toBe("clerk@beta: beta says: signed");
  });

  it("when required, reject every unsigned message, even with a valid token", async () => {
    const alpha = await open({ swarm: testSwarm("alpha", ["beta"]) });
    const beta = await open({ swarm: testSwarm("beta", ["alpha"]), settings: { signatures: "required" } });
    await introduce(alpha, beta);
    expect((await alpha.mailroom.user("ann").ask("ask clerk@beta: unsigned")).response).toMatch(
      /401: signature rejected: missing/,
    );
    const forged = await deliver(beta.url, "forward", {
      source: "alpha",
      target: "beta",
      metadata: { signature: "ed25519:AAAA" },
    });
    expect([forged.status, forged.body]).toEqual([401, expect.objectContaining({ reason: "no_key" })]);
  });
});

it("external ids of peers map to their swarms, and to no others", async () => {
  const alpha = await open({
    swarm: testSwarm("alpha", ["beta"]),
    settings: { identities: { "svc-4711": "beta" } },
  });
  const taskId = randomUUID();
  const answer = await deliver(alpha.url, "forward", { taskId }, "agent:svc-4711");
  expect(answer.body).toMatchObject({ local_runner: "swarm:beta@alpha" });
  expect((await deliver(alpha.url, "forward", { source: "svc-4711" }, "agent:svc-4711")).status).toBe(401);
});

it("mail that loops is stopped at the hop limit, and its forwarder is notified", async () => {
  const names = ["alpha", "beta", "gamma"] as const;
  const servers: TestServer[] = [];
  for (const [index, name] of names.entries()) {
    const next = names[(index + 1) % names.length] ?? "alpha";
    /** Forwards everything to the next swarm. */
    const run: AgentFunction = (turn) => {
      const [{ message }] = turn.messages;
      if (message.sender.address_type === "system") {
        return { calls: [{ id: "1", name: "task_complete", args: { finish_message: message.body } }] };
      }
      const args = { target: `relay@${next}`, subject: `${message.subject}.`, body: "on and on" };
      return { calls: [{ id: "1", name: "send_request", args }] };
    };
    const relay = agent("relay", {
      targets: [`relay@${next}`],
      supervisor: true,
      entrypoint: true,
      interswarm: true,
      run,
    });
    const swarm = { ...testSwarm(name, []), entrypoint: "relay", agents: [relay] };
    servers.push(await open({ swarm, settings: { maxHops: 6 } }));
  }
  await introduce(...servers);
  await servers[0]?.mailroom.user("ann").post("go");
  const stopped = await until(async () => {
    for (const server of servers) {
      const { tasks } = await server.mailroom.store.tasks.list({ limit: 10 });
      for (const { instance, taskId } of tasks) {
        const record = await (await server.mailroom.instance(instance).requireTask(taskId)).record();
        const text = JSON.stringify(record);
        if (text.includes("passed through 7 swarms")) return text;
      }
    }
    return undefined;
  }, "the end of the loop");
  expect(stopped).toContain("passed through 7 swarms");
});

describe("tools", () => {
  it("send_interswarm_broadcast reaches every agent of the named swarms", async () => {
    const args = { subject: "All", body: "of you", target_swarms: ["beta", "gamma"] };
    const alpha = await open({ swarm: caller("alpha", "send_interswarm_broadcast", args) });
    const beta = await open({ swarm: testSwarm("beta", ["alpha"]) });
    const gamma = await open({ swarm: testSwarm("gamma", ["alpha"]) });
    await introduce(alpha, beta, gamma);
    const posted = await alpha.mailroom.user("ann").post("go");
    for (const server of [beta, gamma]) {
      const entry = await until(async () => {
        const task = await server.mailroom.instance({ role: "swarm", id: "alpha" }).task(posted.taskId);
        if (task === undefined) return undefined;
        for await (const { entry } of task.journal()) if (entry.t === "sent") return entry;
        return undefined;
      }, `the broadcast at ${server.mailroom.swarm.name}`);
      expect(entry.to).toEqual(["boss", "clerk", "slow"]);
      expect(entry.message.message.body).toBe("of you");
    }
  });

  async function hub(): Promise<string> {
    const server = createServer((request, response) => {
      if (request.url === "/swarms") {
        const swarms = [{ swarm_name: "delta", base_url: "https://delta.example", auth_token: "theirs" }];
        response.end(JSON.stringify({ swarms }));
      } else if (request.url === "/health") response.end(JSON.stringify({ status: "healthy" }));
      else response.end(JSON.stringify({ version: "1.2", swarm: "hub" }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("discover_swarms only proposes the swarms it finds", async () => {
    const url = await hub();
    const args = { discovery_urls: [url, "http://169.254.169.254/latest"] };
    const alpha = await open({
      swarm: caller("alpha", "discover_swarms", args),
      settings: { allow: ["loopback"] },
    });
    const { response } = await alpha.mailroom.user("ann").ask("go");
    expect(response).toContain(`${url}: proposed; an admin must accept: delta`);
    expect(response).toMatch(/169\.254\.169\.254.*ERROR: .*link local/);
    expect(alpha.federation.registry.list()).toEqual([]);
    expect(await alpha.federation.registry.proposals()).toMatchObject([{ name: "delta", source: url }]);
  });

  it("URLs from agents and remote servers are guarded: not even this machine is allowed by default", async () => {
    const url = await hub();
    const alpha = await open({ swarm: caller("alpha", "discover_swarms", { discovery_urls: [url] }) });
    const { response } = await alpha.mailroom.user("ann").ask("go");
    expect(response).toMatch(/ERROR: .*loopback.*allow-list/);
    expect(await alpha.federation.registry.proposals()).toEqual([]);
  });
});
