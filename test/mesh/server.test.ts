/** The mesh in real servers: access to the inbox, and SIGKILL between acceptance and processing. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { type Folder, folder, type Started, serve } from "../cli/cli.js";
import { Processes } from "./agent-processes.js";
import { meshCommand } from "./command.js";
import { eventually, freePort, localClient } from "./kit.js";

// Real servers start slowly on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let place: Folder;
const ports = new Map<string, number>();
const running: Started[] = [];

beforeEach(async () => {
  place = await folder();
  for (const agentId of ["alice", "bob"]) {
    const port = await freePort();
    ports.set(agentId, port);
    const directory = join(place.path, agentId);
    initMesh({ directory, agentId, endpoint: `https://localhost:${port}/swarm`, dev: true });
  }
  await makeDevCertificates(tls(), Date.now());
});
afterEach(async () => {
  for (const server of running.splice(0)) await server[Symbol.asyncDispose]();
  await place[Symbol.asyncDispose]();
});

/** One CA for both. */
const tls = () => join(place.path, "tls");

async function start(agent: string, env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const started = await serve(["--data", `./${agent}`, "--mesh-listen", `localhost:${ports.get(agent)}`], {
    cwd: place.path,
    env: {
      MAILROOM_MESH_CERT: join(tls(), "dev.pem"),
      MAILROOM_MESH_KEY: join(tls(), "dev.key"),
      MAILROOM_MESH_CA: join(tls(), "dev-ca.pem"),
      ...env,
    },
  });
  running.push(started);
  return started;
}

async function ask(agent: string, ...words: string[]) {
  const { out } = await meshCommand([...words, "--data", join(place.path, agent)]);
  return JSON.parse(out);
}

async function lab(): Promise<void> {
  await ask("alice", "create", "--name", "Lab");
  const { invite_token } = await ask("alice", "invite");
  expect(await ask("bob", "join", "--token", invite_token)).toMatchObject({ status: "joined" });
}

describe("a server in the mesh", () => {
  it("[ASP-OURS-06] a server shows its inbox and outbox to admins only, and not on the listener for peers", async () => {
    await start("alice");
    const bob = await start("bob");
    await lab();
    await ask("alice", "send", "--message", "for your eyes");
    const get = (path: string, token?: string) =>
      fetch(
        `${bob.url}${path}`,
        token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
      );
    await eventually(async () => {
      const answer = await get("/api/inbox?status=all", bob.facts.admin_token);
      return JSON.stringify(await answer.json()).includes("for your eyes");
    }, true);
    for (const path of ["/api/inbox", "/api/inbox/count", "/api/outbox"]) {
      expect((await get(path)).status).toBe(401);
      expect((await get(path, "wrong")).status).toBe(401);
      expect((await get(path, bob.facts.admin_token)).status).toBe(200);
    }
    const stranger = localClient({ tls: { extraCaFile: join(tls(), "dev-ca.pem") } });
    const onTheMesh = (path: string) => stranger.request(`https://localhost:${ports.get("bob")}${path}`);
    expect((await onTheMesh("/swarm/health")).status).toBe(200);
    for (const path of ["/api/inbox", "/api/inbox/count", "/api/outbox"]) {
      expect((await onTheMesh(path)).status).toBe(404);
    }
    await stranger.close();
    // Neither is configured, so neither route exists.
    const post = (path: string) =>
      fetch(`${bob.url}${path}`, {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json" },
      });
    expect((await post("/api/wake")).status).toBe(404);
    expect((await post("/mesh/github")).status).toBe(404);
  });

  it("[MESH-M-9] a server starts while a command still delivers to a silent peer", async () => {
    const alice = await start("alice");
    const bob = await start("bob");
    await lab();
    for (const server of [alice, bob]) await server[Symbol.asyncDispose]();
    const silent = createTcpServer();
    const called = once(silent, "connection");
    await new Promise<void>((resolve) => silent.listen(ports.get("alice"), "localhost", resolve));
    onTestFinished(() => void silent.close());
    const sending = ask("bob", "send", "--message", "anybody there?");
    await called;
    const again = await start("bob");
    expect((await fetch(`${again.url}/health`)).status).toBe(200);
    expect(await sending).toMatchObject({ status: "sent" });
  });

  it("[MESH-M-12] a server is woken by a caller that has the secret alone, and forwards signed GitHub events to its swarm (decision G4, decision G7)", async () => {
    const alice = await start("alice", {
      MAILROOM_MESH_WAKE_SECRET: "wake me",
      MAILROOM_MESH_GITHUB_SECRET: "hook",
      MAILROOM_MESH_GITHUB_SWARM: "lab",
    });
    await start("bob");
    await lab();
    const post = (path: string, body: string, headers: Record<string, string>) =>
      fetch(`${alice.url}${path}`, { method: "POST", body, headers });
    const id = "123e4567-e89b-42d3-a456-426614174013";
    const note = { message_id: id, swarm_id: id, sender_id: "bob", notification_level: "normal" };
    const wake = (headers: Record<string, string>) => post("/api/wake", JSON.stringify(note), headers);
    expect((await wake({})).status).toBe(403);
    expect((await wake({ "x-wake-secret": "guess" })).status).toBe(403);
    expect(await (await wake({ "x-wake-secret": "wake me" })).json()).toMatchObject({
      status: "already_active",
    });

    // The spaces count: the signature covers the bytes, not the parsed JSON.
    const issue = { number: 7, title: "It is broken", html_url: "https://github.com/acme/shop/issues/7" };
    const repository = { full_name: "acme/shop" };
    const body = JSON.stringify({ action: "opened", issue, repository, sender: { login: "ann" } }, null, 3);
    const signed = (secret: string) => ({
      "content-type": "application/json",
      "x-github-event": "issues",
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    });
    expect((await post("/mesh/github", body, signed("guess"))).status).toBe(403);
    expect((await post("/mesh/github", body, signed("hook"))).status).toBe(202);
    await eventually(async () => {
      const { messages } = await ask("bob", "messages", "--no-mark-read");
      return messages.filter(({ type }: { type: string }) => type === "notification").length;
    }, 1);
  });

  it("[ASP-WAKE-01] a server wakes a program and a URL of its operator when a message arrives", async () => {
    const notes: { secret: unknown; note: unknown }[] = [];
    const woken = join(place.path, "woken.json");
    const script = join(place.path, "wake.cjs");
    await writeFile(
      script,
      `const fs = require("node:fs"); const to = ${JSON.stringify(woken)};
       fs.writeFileSync(to + ".part", fs.readFileSync(0)); fs.renameSync(to + ".part", to);`,
    );
    const hook = createServer((request, response) => {
      text(request).then((body) => {
        notes.push({ secret: request.headers["x-wake-secret"], note: JSON.parse(body) });
        response.writeHead(202).end();
      });
    });
    await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
    const address = hook.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      await start("alice");
      await start("bob", {
        MAILROOM_MESH_WAKE_URL: `http://127.0.0.1:${port}/api/wake`,
        MAILROOM_MESH_WAKE_SECRET: "wake me",
        MAILROOM_MESH_WAKE_COMMAND: `${process.execPath},${script}`,
      });
      await lab();
      const extras = JSON.stringify({ priority: "high" });
      const sent = await ask("alice", "send", "--to", "bob", "--message", "wake up", "--extras", extras);
      const { message_id, swarm_id } = sent;
      const note = { message_id, swarm_id, sender_id: "alice", notification_level: "urgent" };
      await eventually(async () => notes, [{ secret: "wake me", note }]);
      await eventually(async () => JSON.parse(await readFile(woken, "utf8").catch(() => "null")), note);
    } finally {
      hook.close();
    }
  });

  it("[ASP-OURS-03] a server that is killed after accepting messages loses none and processes none twice", async () => {
    await start("alice");
    const joining = await start("bob");
    await lab();
    await joining[Symbol.asyncDispose]();
    const sent: string[] = [];
    const send = async (text: string) => {
      sent.push((await ask("alice", "send", "--to", "bob", "--message", text)).message_id);
    };
    const answered = async (): Promise<string[]> => {
      const { messages } = await ask("alice", "messages", "--limit", "100", "--no-mark-read");
      return messages.flatMap(({ in_reply_to }: { in_reply_to: string | null }) => in_reply_to ?? []).sort();
    };

    // Accepted and not processed: the response to the sender was sent, the task was not started.
    const accepting = await new Processes(place.path).start("bob", ports.get("bob") ?? 0);
    for (const text of ["one", "two", "three"]) await send(text);
    await eventually(async () => (await ask("alice", "sent", "--count")).delivered >= 3, true);
    await accepting.kill();
    expect(await answered()).toEqual([]);

    const second = await start("bob");
    await eventually(answered, [...sent].sort());

    // Killed while many messages arrive.
    const before = sent.length;
    for (let index = 0; index < 8; index += 1) await send(`more ${index}`);
    await eventually(async () => (await answered()).length > before, true);
    await second[Symbol.asyncDispose]();
    await start("bob");
    await eventually(answered, [...sent].sort());
    // All of bob's messages are delivered, so a second reply would have arrived by now.
    await eventually(async () => (await ask("bob", "sent", "--count")).sent, 0);
    expect(await answered()).toEqual([...sent].sort());
  });
});
