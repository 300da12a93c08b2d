/**
 * Measures how many messages per second an agent verifies and commits (decision G9), compared with the bare Ed25519
 * verification rate of the machine: of one thread, and of the thread pool that also verifies messages. A sealed message
 * has two signatures. Rates depend on the free cores, so all cases alternate several times, and the processor time of
 * each is shown.
 *
 *   npm run bench:mesh -- [--quick] [--seconds <n>]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/index.js";
import { systemIds } from "../src/base/node.js";
import { createMeshHandler } from "../src/doors/mesh/handler.js";
import { listen } from "../src/doors/mesh/listener.js";
import { MeshAgent } from "../src/mesh/agent.js";
import { makeDevCertificates } from "../src/mesh/dev-ca/files.js";
import { keyPairFromSeed } from "../src/mesh/identity/keys.js";
import { type Signer, signMessage } from "../src/mesh/message/build.js";
import { checkMessage } from "../src/mesh/message/check.js";
import { meshOptions } from "../src/mesh/options.js";
import { isSignedBy, verifySignature } from "../src/mesh/signature.js";
import { createGuard, createHttpClient } from "../src/net/index.js";
import { openStore } from "../src/store/index.js";

const { quick, seconds: asked } = parseArgs({
  options: { quick: { type: "boolean", default: false }, seconds: { type: "string", default: "3" } },
}).values;
const seconds = quick ? 1 : Number(asked);
const rounds = quick ? 1 : 5;
const writers = 256;
const directory = mkdtempSync(join(tmpdir(), "mesh-bench-"));
const tls = await makeDevCertificates(join(directory, "tls"), Date.now());
const alice = keyPairFromSeed(Buffer.alloc(32, 1));
const bob = keyPairFromSeed(Buffer.alloc(32, 2));
const carol = keyPairFromSeed(Buffer.alloc(32, 3));
const many = { count: Number.MAX_SAFE_INTEGER, window: 1 };
const http = createHttpClient({
  clock: systemClock,
  guard: createGuard({ allow: ["loopback"] }),
  tls: { extraCaFile: tls.ca },
  connectionsPerOrigin: 64,
});
const store = await openStore({ directory });
const agent = await MeshAgent.open({
  store,
  http,
  clock: systemClock,
  ids: systemIds,
  identity: { agentId: "bob", endpoint: "https://localhost:1/swarm" },
  pair: bob,
  options: {
    ...meshOptions(),
    rateLimits: {
      sender: many,
      senderBytes: { count: Number.MAX_SAFE_INTEGER, window: 60_000 },
      swarm: many,
      join: many,
      failure: many,
    },
  },
  report: (problem) => console.error(problem),
  inviteFiles: {
    keep: () => undefined,
    read: () => undefined,
    forget: () => undefined,
    keepPending: () => undefined,
    readPending: () => undefined,
    forgetPending: () => undefined,
    pending: () => [],
  },
});
const { id: swarmId } = await agent.create("Bench");
const endpoint = "https://localhost:2/swarm";
// Two senders, because receivers require a seal from a sender that has sealed before.
const plain = { agentId: "alice", endpoint, pair: alice, seals: false };
const sealing = { agentId: "carol", endpoint, pair: carol, seals: true };
for (const { agentId, pair } of [plain, sealing]) {
  const member = { agentId, endpoint, publicKey: pair.publicKey.text, joinedAt: Date.now() };
  await agent.context.commit([{ kind: "mesh.member.put", swarmId, member }], swarmId);
}

/** Messages are built in advance, because signing is the sender's work. */
function makeBodies(signer: Signer, count: number): Buffer[] {
  return Array.from({ length: Math.round(count) }, (_, index) => {
    const draft = {
      message_id: systemIds.uuid(),
      swarm_id: swarmId,
      recipient: "bob",
      type: "message" as const,
      content: `message ${index} ${"x".repeat(200)}`,
    };
    return Buffer.from(JSON.stringify(signMessage(draft, signer, Date.now())));
  });
}

interface Measured {
  readonly rate: number;
  /** Microseconds of processor time for each, on all threads together. */
  readonly work: number;
}

async function measure(work: () => Promise<number> | number): Promise<Measured> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const count = await work();
  const { user, system } = process.cpuUsage(before);
  return { rate: (count / (performance.now() - startedAt)) * 1_000, work: (user + system) / count };
}

const checked = checkMessage(JSON.parse(String(makeBodies(plain, 1)[0])));
if ("problems" in checked) throw new Error("the benchmark's own message is malformed");
const { message } = checked;

function verifyInOneThread(count: number): number {
  for (let done = 0; done < count; done += 1) {
    if (verifySignature(message, message.signature, alice.publicKey) !== "valid")
      throw new Error("not valid");
  }
  return count;
}

/** Runs several at once until all are done. */
async function together(count: number, one: (index: number) => Promise<void>): Promise<number> {
  let next = 0;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let index = next++; index < count; index = next++) await one(index);
    }),
  );
  return count;
}

function verifyInThePool(count: number): Promise<number> {
  return together(count, async () => {
    if (!(await isSignedBy(message, alice.publicKey))) throw new Error("not valid");
  });
}

function deliver(bodies: readonly Buffer[], post: (body: Buffer) => Promise<{ status: number }>) {
  return together(bodies.length, async (index) => {
    const { status } = await post(bodies[index] ?? Buffer.alloc(0));
    if (status !== 200) throw new Error(`answered ${status}`);
  });
}

const handle = createMeshHandler(agent);
const inProcess = (body: Buffer) =>
  handle({ method: "POST", path: "/swarm/message", headers: {}, body, address: "bench" });
const listener = await listen({
  handle,
  host: "localhost",
  port: 0,
  cert: readFileSync(tls.cert, "utf8"),
  key: readFileSync(tls.key, "utf8"),
});
const url = `https://localhost:${listener.port}/swarm/message`;
const overTls = (body: Buffer) => http.request(url, { method: "POST", body });

// Run every part once before measuring.
for (const signer of [plain, sealing]) await deliver(makeBodies(signer, 2_000), inProcess);
const perRound = ((await measure(() => verifyInOneThread(1_000))).rate * seconds) / rounds;
const taken: Measured[][] = [];
for (let round = 0; round < rounds; round += 1) {
  const unsealed = makeBodies(plain, perRound);
  const sealed = makeBodies(sealing, perRound / 2);
  const sent = makeBodies(sealing, perRound / 4);
  taken.push([
    await measure(() => verifyInOneThread(Math.round(perRound))),
    await measure(() => verifyInThePool(Math.round(perRound))),
    await measure(() => deliver(unsealed, inProcess)),
    await measure(() => deliver(sealed, inProcess)),
    await measure(() => deliver(sent, overTls)),
  ]);
}

const ROWS = [
  "bare verification, one thread",
  `bare verification, pool of ${process.env.UV_THREADPOOL_SIZE ?? 4} threads`,
  "verified and stored",
  "the same, sealed: two signatures each",
  "the last over HTTPS, client included",
];
const [ONE, POOL, SEALED] = [0, 1, 3];

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Compared with the measurement next to it, so that other load on the machine affects both. */
function share(row: number, of: number, times = 1): string {
  const shares = taken.map((round) => (times * (round[row]?.rate ?? 0)) / (round[of]?.rate ?? 1));
  return `${Math.round(median(shares) * 100)} %`;
}

console.log(`${"".padEnd(40)} per second   of one thread   of the pool   processor µs each`);
for (const [row, name] of ROWS.entries()) {
  const rate = Math.round(median(taken.map((round) => round[row]?.rate ?? 0)));
  const work = Math.round(median(taken.map((round) => round[row]?.work ?? 0)));
  const cells = [
    String(rate).padStart(10),
    share(row, ONE).padStart(15),
    share(row, POOL).padStart(13),
    String(work).padStart(19),
  ];
  console.log(`${name.padEnd(40)} ${cells.join(" ")}`);
}
console.log(
  `The signatures of sealed messages are ${share(SEALED, POOL, 2)} of those that the pool can verify.`,
);
console.log(`Medians of ${rounds}, measured in turn.`);

await listener.close();
await agent.close();
await http.close();
await store.close();
rmSync(directory, { recursive: true, force: true });
