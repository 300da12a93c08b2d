/** A real server in which the bridge is switched on: earlier messages do not become tasks. */
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { openStore } from "../../src/store/index.js";
import { folder, serve } from "../cli/cli.js";
import { meshCommand } from "./command.js";
import { eventually, freePort } from "./kit.js";

it("messages received while the bridge is off stay in the inbox, and later messages become tasks", {
  timeout: 180_000,
}, async () => {
  const place = await folder();
  onTestFinished(() => place[Symbol.asyncDispose]());
  const tls = join(place.path, "tls");
  await makeDevCertificates(tls, Date.now());
  const directory = (agent: string) => join(place.path, agent);
  const ports = new Map<string, number>();
  for (const agentId of ["alice", "bob"]) {
    const port = await freePort();
    ports.set(agentId, port);
    const endpoint = `https://localhost:${port}/swarm`;
    initMesh({ directory: directory(agentId), agentId, endpoint, dev: true });
  }
  const start = (agent: string, bridge: boolean) =>
    serve(["--data", `./${agent}`, "--mesh-listen", `localhost:${ports.get(agent)}`], {
      cwd: place.path,
      env: {
        MAILROOM_MESH_CERT: join(tls, "dev.pem"),
        MAILROOM_MESH_KEY: join(tls, "dev.key"),
        MAILROOM_MESH_CA: join(tls, "dev-ca.pem"),
        MAILROOM_MESH_BRIDGE_ENABLED: String(bridge),
      },
    });
  const ask = async (agent: string, ...words: string[]) =>
    JSON.parse((await meshCommand([...words, "--data", directory(agent)])).out);
  const send = async (message: string) => {
    const { message_id } = await ask("alice", "send", "--message", message);
    const sent = async () => {
      const { messages } = await ask("alice", "sent");
      return messages.find((one: { message_id: string }) => one.message_id === message_id)?.status;
    };
    await eventually(sent, "delivered");
    return message_id;
  };

  await using _alice = await start("alice", false);
  {
    await using _bob = await start("bob", false);
    await ask("alice", "create", "--name", "Lab");
    const { invite_token } = await ask("alice", "invite");
    await ask("bob", "join", "--token", invite_token);
    await send("What is 1 * 1?");
  }
  {
    await using _bob = await start("bob", true);
    await send("What is 6 * 7?");
    await eventually(async () => (await ask("bob", "sent", "--count")).delivered, 1);
  }
  const store = await openStore({ directory: directory("bob") });
  onTestFinished(() => store.close());
  expect((await store.tasks.list({ limit: 9 })).tasks).toHaveLength(1);
  expect((await ask("alice", "messages")).messages[0].content).toContain("42");
  expect((await store.mesh.inboxCounts()).unread).toBeGreaterThan(1);
});
