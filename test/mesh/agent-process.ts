/** One agent in its own process, with real TLS and files. The parent sends commands as lines of JSON. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import { createMeshHandler } from "../../src/doors/mesh/handler.js";
import { listen } from "../../src/doors/mesh/listener.js";
import { MeshAgent } from "../../src/mesh/agent.js";
import { createKeyFile, prepareNextKey, readKeyFile } from "../../src/mesh/identity/key-file.js";
import { inviteFiles } from "../../src/mesh/invite/files.js";
import { meshOptions } from "../../src/mesh/options.js";
import { createGuard, createHttpClient, type HttpClient } from "../../src/net/index.js";
import { openStore } from "../../src/store/index.js";

/** `detours`: ports to call instead of those of the peers. */
const [name = "", port = "", directory = "", tls = "", detours = "{}"] = process.argv.slice(2);
const home = join(directory, name);
mkdirSync(home, { recursive: true });
// The directory of a server's data, if it is a server.
const served = join(home, "mesh", "agent.key");
const keyFile = existsSync(served) ? served : join(home, "agent.key");
let pair: ReturnType<typeof readKeyFile>;
try {
  pair = readKeyFile(keyFile);
} catch {
  pair = createKeyFile(keyFile);
}
const direct = createHttpClient({
  clock: systemClock,
  guard: createGuard({ allow: ["loopback"] }),
  tls: { extraCaFile: join(tls, "dev-ca.pem") },
});
const calls: Record<string, number> = JSON.parse(detours);
const by = (target: string | URL): URL => {
  const url = new URL(target);
  url.port = String(calls[url.port] ?? url.port);
  return url;
};
const http: HttpClient = {
  request: (url, options) => direct.request(by(url), options),
  open: (url, options) => direct.open(by(url), options),
  close: () => direct.close(),
};
const store = await openStore({ directory: home });
const agent = await MeshAgent.open({
  store,
  http,
  clock: systemClock,
  ids: systemIds,
  identity: { agentId: name, endpoint: `https://localhost:${port}/swarm` },
  pair,
  // Shorter delays than on the internet: here the other side returns within a second.
  options: {
    ...meshOptions(),
    rateLimits: { ...meshOptions().rateLimits, join: { count: 1_000, window: 60_000 } },
  },
  report: () => undefined,
  inviteFiles: inviteFiles(join(home, "invites")),
  stateFile: join(home, "state.json"),
});
await listen({
  handle: createMeshHandler(agent),
  host: "localhost",
  port: Number(port),
  cert: readFileSync(join(tls, "dev.pem"), "utf8"),
  key: readFileSync(join(tls, "dev.key"), "utf8"),
});

const commands: Record<string, (...args: string[]) => unknown> = {
  create: async (swarmName = "", approval = "") =>
    (await agent.create(swarmName, { requireApproval: approval === "approval" })).id,
  invite: (swarmId = "", maxUses = "") =>
    agent.invite(swarmId, maxUses === "" ? {} : { maxUses: Number(maxUses) }),
  join: async (url = "") => (await agent.join(url)).swarm.id,
  leave: (swarmId = "") => agent.leave(swarmId),
  kick: (swarmId = "", agentId = "") => agent.kick(swarmId, agentId),
  transfer: (swarmId = "", agentId = "") => agent.transfer(swarmId, agentId),
  pending: (swarmId = "") => agent.pending(swarmId).map(({ agentId }) => agentId),
  approve: (swarmId = "", agentId = "") => agent.approve(swarmId, agentId),
  reject: (swarmId = "", agentId = "") => agent.reject(swarmId, agentId),
  mute: (agentId = "") => agent.mute("agent", agentId),
  unmute: (agentId = "") => agent.unmute("agent", agentId),
  rotate: async () => {
    const next = prepareNextKey(keyFile);
    await agent.rotateKey(next);
    return next.pair.publicKey.text;
  },
  key: (swarmId = "", agentId = "") => agent.swarm(swarmId).members.get(agentId)?.publicKey,
  send: async (swarmId = "", to = "", content = "") => (await agent.send({ swarmId, to, content })).messageId,
  swarms: () =>
    agent.swarms.map(({ id, master, members }) => ({ id, master, members: [...members.keys()].sort() })),
  /** Oldest first. */
  texts: async (swarmId = "") =>
    (await store.mesh.inbox({ swarmId, limit: 100 }))
      .filter(({ type }) => type === "message")
      .map(({ content }) => content)
      .reverse(),
  delivered: async (messageId = "") =>
    (await store.mesh.sentById(messageId)).every(({ status }) => status === "delivered"),
  retry: (endpoint = "") => agent.retryNow(endpoint),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, command, args } = JSON.parse(line);
  const run = async (): Promise<unknown> => commands[command]?.(...args);
  run().then(
    (value) => process.stdout.write(`${JSON.stringify({ id, value: value ?? null })}\n`),
    (error: unknown) => process.stdout.write(`${JSON.stringify({ id, error: String(error) })}\n`),
  );
});
process.stdout.write(`${JSON.stringify({ id: 0, value: "ready" })}\n`);
