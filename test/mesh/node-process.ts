/** One agent in a process of its own: real TLS, real files. Its parent asks for things in lines of JSON. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { createKeyFile, readKeyFile } from "../../src/mesh/identity/key-file.js";
import { inviteFiles } from "../../src/mesh/invite/files.js";
import { MeshNode } from "../../src/mesh/node.js";
import { DEFAULT_MESH_OPTIONS } from "../../src/mesh/options.js";
import { createMeshHandler } from "../../src/mesh/wire/handler.js";
import { listen } from "../../src/mesh/wire/listener.js";
import { createGuard, createHttpClient } from "../../src/net/index.js";
import { openSqliteStore } from "../../src/store/index.js";

/** Peers reach it at `port`; it listens there itself unless something stands between. */
const [name = "", port = "", directory = "", tls = "", listenPort = port] = process.argv.slice(2);
const home = join(directory, name);
mkdirSync(home, { recursive: true });
const keyFile = join(home, "agent.key");
let pair: ReturnType<typeof readKeyFile>;
try {
  pair = readKeyFile(keyFile);
} catch {
  pair = createKeyFile(keyFile);
}
const store = await openSqliteStore({ directory: home });
const node = await MeshNode.open({
  store,
  http: createHttpClient({
    clock: systemClock,
    guard: createGuard({ allow: ["loopback"] }),
    tls: { extraCaFile: join(tls, "dev-ca.pem") },
  }),
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
  port: Number(listenPort),
  cert: readFileSync(join(tls, "dev.pem"), "utf8"),
  key: readFileSync(join(tls, "dev.key"), "utf8"),
});

const commands: Record<string, (...args: string[]) => unknown> = {
  create: async (swarmName = "") => (await node.create(swarmName)).id,
  invite: (swarmId = "", maxUses = "") =>
    node.invite(swarmId, maxUses === "" ? {} : { maxUses: Number(maxUses) }),
  join: async (url = "") => (await node.join(url)).swarm.id,
  leave: (swarmId = "") => node.leave(swarmId),
  kick: (swarmId = "", agentId = "") => node.kick(swarmId, agentId),
  transfer: (swarmId = "", agentId = "") => node.transfer(swarmId, agentId),
  send: async (swarmId = "", to = "", content = "") => (await node.send({ swarmId, to, content })).messageId,
  swarms: () =>
    node.swarms.map(({ id, master, members }) => ({ id, master, members: [...members.keys()].sort() })),
  inbox: async () => (await store.mesh.inbox({ limit: 100 })).map(({ content, type }) => ({ content, type })),
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
