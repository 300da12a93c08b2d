/**
 * How many messages an agent verifies and stores durably in a second, from bytes to committed (decisions G9), beside
 * the bare Ed25519 verification rate of one thread of the same machine, which is the limit that is aimed at. Messages
 * are verified on other threads, so that where cores are free it can be passed.
 *
 *   npm run bench:mesh -- [--quick] [--seconds <n>]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock, systemIds } from "../src/library/clock.js";
import { makeDevCertificates } from "../src/mesh/dev-ca/files.js";
import { keyPairFromSeed } from "../src/mesh/identity/keys.js";
import { signDraft } from "../src/mesh/message/build.js";
import { checkMessage } from "../src/mesh/message/check.js";
import { MeshNode } from "../src/mesh/node.js";
import { DEFAULT_MESH_OPTIONS } from "../src/mesh/options.js";
import { verifySignature } from "../src/mesh/signature.js";
import { createMeshHandler } from "../src/mesh/wire/handler.js";
import { listen } from "../src/mesh/wire/listener.js";
import { createGuard, createHttpClient } from "../src/net/index.js";
import { openSqliteStore } from "../src/store/index.js";

const { quick, seconds: asked } = parseArgs({
  options: { quick: { type: "boolean", default: false }, seconds: { type: "string", default: "3" } },
}).values;
const seconds = quick ? 1 : Number(asked);
const writers = 256;
const directory = mkdtempSync(join(tmpdir(), "mesh-bench-"));
const tls = makeDevCertificates(join(directory, "tls"), Date.now());
const alice = keyPairFromSeed(Buffer.alloc(32, 1));
const bob = keyPairFromSeed(Buffer.alloc(32, 2));
const many = { count: Number.MAX_SAFE_INTEGER, window: 1 };
const http = createHttpClient({
  clock: systemClock,
  guard: createGuard({ allow: ["loopback"] }),
  tls: { extraCaFile: tls.ca },
  connectionsPerOrigin: 64,
});
const store = await openSqliteStore({ directory });
const node = await MeshNode.open({
  store,
  http,
  clock: systemClock,
  ids: systemIds,
  identity: { agentId: "bob", endpoint: "https://localhost:1/swarm" },
  pair: bob,
  options: { ...DEFAULT_MESH_OPTIONS, rateLimits: { sender: many, swarm: many, join: many, failure: many } },
  report: (problem) => console.error(problem),
  inviteFiles: { keep: () => undefined, read: () => undefined, forget: () => undefined },
});
const { id: swarmId } = await node.create("Bench");
const member = {
  agentId: "alice",
  endpoint: "https://localhost:2/swarm",
  publicKey: alice.publicKey.text,
  joinedAt: Date.now(),
};
await node.core.commit([{ kind: "mesh.member.put", swarmId, member }], swarmId);

/** Messages are made beforehand: signing them is somebody else's work. */
function makeBodies(count: number, seals = false): Buffer[] {
  const signer = { agentId: "alice", endpoint: member.endpoint, pair: alice, seals };
  return Array.from({ length: count }, (_, index) => {
    const draft = {
      message_id: systemIds.uuid(),
      swarm_id: swarmId,
      recipient: "bob",
      type: "message" as const,
      content: `message ${index} ${"x".repeat(200)}`,
    };
    return Buffer.from(JSON.stringify(signDraft(draft, signer, Date.now())));
  });
}

function perSecond(count: number, startedAt: number): number {
  return Math.round(count / ((performance.now() - startedAt) / 1_000));
}

function bareRate(): number {
  const checked = checkMessage(JSON.parse(makeBodies(1)[0]?.toString() ?? ""));
  if ("problems" in checked) throw new Error("the benchmark's own message is malformed");
  const { message } = checked;
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() - startedAt < seconds * 1_000) {
    if (verifySignature(message, message.signature, alice.publicKey) !== "valid")
      throw new Error("not valid");
    count += 1;
  }
  return perSecond(count, startedAt);
}

async function drive(post: (body: Buffer) => Promise<{ status: number }>, bodies: Buffer[]): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
        const { status } = await post(body);
        if (status !== 200) throw new Error(`answered ${status}`);
        done += 1;
      }
    }),
  );
  return perSecond(done, startedAt);
}

const handle = createMeshHandler(node);
const inProcess = (body: Buffer) =>
  handle({ method: "POST", path: "/swarm/message", headers: {}, body, address: "bench" });
const bare = bareRate();
await drive(inProcess, makeBodies(2_000));
const stored = await drive(inProcess, makeBodies(Math.max(2_000, bare * seconds)));
const listener = await listen({
  handle,
  host: "localhost",
  port: 0,
  cert: readFileSync(tls.cert, "utf8"),
  key: readFileSync(tls.key, "utf8"),
});
const url = `https://localhost:${listener.port}/swarm/message`;
const overTls = await drive(
  (body) => http.request(url, { method: "POST", body }),
  makeBodies(4_000 * Math.min(seconds, 3)),
);
// The last of them: from the first sealed message on, its sender is held to it.
const sealed = await drive(inProcess, makeBodies(Math.max(2_000, (bare * seconds) / 2), true));

console.log(`bare Ed25519 verification, one thread     ${bare}/s`);
console.log(
  `verified and stored, in process          ${stored}/s  (${Math.round((stored / bare) * 100)} % of the limit)`,
);
console.log(`the same, sealed: two signatures each    ${sealed}/s`);
console.log(`the first over HTTPS, client included     ${overTls}/s`);

await listener.close();
await node.close();
await http.close();
await store.close();
rmSync(directory, { recursive: true, force: true });
