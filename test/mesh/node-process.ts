/** One agent in a process of its own: real TLS, real files. Its parent asks for things in lines of JSON. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { createKeyFile, prepareNextKey, readKeyFile } from "../../src/mesh/identity/key-file.js";
import { inviteFiles } from "../../src/mesh/invite/files.js";
import { MeshNode } from "../../src/mesh/node.js";
import { DEFAULT_MESH_OPTIONS } from "../../src/mesh/options.js";
import { createMeshHandler } from "../../src/mesh/wire/handler.js";
import { listen } from "../../src/mesh/wire/listener.js";
import { createGuard, createHttpClient, type HttpClient } from "../../src/net/index.js";
import { openStore } from "../../src/store/index.js";

/** `detours`: which ports it calls instead of those of its peers. */
const [name = "", port = "", directory = "", tls = "", detours = "{}"] = process.argv.slice(2);
const home = join(directory, name);
mkdirSync(home, { recursive: true });
// That of a server's data, if it is one.
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
const node = await MeshNode.open({
  store,
  http,
  clock: systemClock,
  ids: systemIds,
  identity: { agentId: name, endpoint: `https://localhost:${port}/swarm` },
  pair,
  // Patience is for the internet; here the other side is back within a second.
  options: {
    ...DEFAULT_MESH_OPTIONS,
    rateLimits: { ...DEFAULT_MESH_OPTIONS.rateLimits, join: { count: 1_000, window: 60_000 } },
  },
  report: () => undefined,
  inviteFiles: inviteFiles(join(home, "invites")),
  stateFile: join(home, "state.json"),
});
await listen({
  handle: createMeshHandler(node),
  host: "localhost",
  port: Number(port),
  cert: readFileSync(join(tls, "dev.pem"), "utf8"),
  key: readFileSync(join(tls, "dev.key"), "utf8"),
});

const commands: Record<string, (...args: string[]) => unknown> = {
  create: async (swarmName = "", approval = "") =>
    (await node.create(swarmName, { requireApproval: approval === "approval" })).id,
  invite: (swarmId = "", maxUses = "") =>
    node.invite(swarmId, maxUses === "" ? {} : { maxUses: Number(maxUses) }),
  join: async (url = "") => (await node.join(url)).swarm.id,
  leave: (swarmId = "") => node.leave(swarmId),
  kick: (swarmId = "", agentId = "") => node.kick(swarmId, agentId),
  transfer: (swarmId = "", agentId = "") => node.transfer(swarmId, agentId),
  pending: (swarmId = "") => node.pending(swarmId).map(({ agentId }) => agentId),
  approve: (swarmId = "", agentId = "") => node.approve(swarmId, agentId),
  reject: (swarmId = "", agentId = "") => node.reject(swarmId, agentId),
  mute: (agentId = "") => node.mute("agent", agentId),
  unmute: (agentId = "") => node.unmute("agent", agentId),
  rotate: async () => {
    const next = prepareNextKey(keyFile);
    await node.rotateKey(next);
    return next.pair.publicKey.text;
  },
  key: (swarmId = "", agentId = "") => node.swarm(swarmId).members.get(agentId)?.publicKey,
  send: async (swarmId = "", to = "", content = "") => (await node.send({ swarmId, to, content })).messageId,
  swarms: () =>
    node.swarms.map(({ id, master, members }) => ({ id, master, members: [...members.keys()].sort() })),
  /** Oldest first. */
  texts: async (swarmId = "") =>
    (await store.mesh.inbox({ swarmId, limit: 100 }))
      .filter(({ type }) => type === "message")
      .map(({ content }) => content)
      .reverse(),
  delivered: async (messageId = "") =>
    (await store.mesh.sentById(messageId)).every(({ status }) => status === "delivered"),
  retry: (endpoint = "") => node.retryNow(endpoint),
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
