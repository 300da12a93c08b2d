/** A key rotation that a crash interrupted is completed or discarded when the agent is opened again. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/base/index.js";
import { systemIds } from "../../src/base/node.js";
import type { MeshAgent } from "../../src/mesh/agent.js";
import { nextKey, prepareNextKey, readKeyFile } from "../../src/mesh/identity/key-file.js";
import { type KeyPair, keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { initMesh, openMesh, rotateKeyFile } from "../../src/mesh/setup.js";
import { verifySignature } from "../../src/mesh/signature.js";
import { type HttpClient, NetError } from "../../src/net/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";

let directory: string;
let keyFile: string;
let store: FullStore;
let agent: MeshAgent;
let swarmId: string;

/** A peer that has one key of alice and receives no other. */
let knownToBob: KeyPair | undefined;

const bob: HttpClient = {
  request: async (url, { body = "" } = {}) => {
    if (knownToBob === undefined)
      throw new NetError("unreachable", "the peer is unreachable", { url: new URL(url) });
    const message = JSON.parse(String(body));
    const verdict = verifySignature(message, message.signature, knownToBob.publicKey);
    const status = verdict === "valid" ? 200 : 401;
    return { status, headers: {}, body: Buffer.from("{}"), url: String(url), text: () => "{}" };
  },
  open: () => Promise.reject(new Error("not used here")),
  close: async () => undefined,
};

const open = () =>
  openMesh({
    directory,
    store,
    http: bob,
    clock: systemClock,
    ids: systemIds,
    report: () => undefined,
  });

beforeEach(async () => {
  knownToBob = undefined;
  directory = mkdtempSync(join(tmpdir(), "mesh-rotation-"));
  keyFile = join(directory, "mesh", "agent.key");
  initMesh({ directory, agentId: "alice", endpoint: "https://alice.example.com/swarm" });
  store = await openStore({ path: join(directory, "mailroom.db") });
  agent = await open();
  swarmId = (await agent.create("Lab")).id;
});
afterEach(async () => {
  await agent.close();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const inUse = () => [agent.context.pair.publicKey.text, readKeyFile(keyFile).publicKey.text, ownKey()];
const ownKey = () => agent.swarm(swarmId).members.get("alice")?.publicKey;

async function reopen(): Promise<void> {
  await agent.close();
  agent = await open();
}

it("an interrupted rotation that was announced is completed, and the old key is kept beside the new one", async () => {
  const next = prepareNextKey(keyFile);
  const killed = () => {
    throw new Error("killed");
  };
  await expect(agent.rotateKey({ pair: next.pair, install: killed })).rejects.toThrow("killed");
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([next.pair.publicKey.text]));
  expect(nextKey(keyFile)).toBeUndefined();
  expect(readdirSync(join(directory, "mesh")).filter((name) => name.endsWith(".old"))).toHaveLength(1);
});

it("an interrupted rotation that was not announced is discarded", async () => {
  const before = ownKey();
  prepareNextKey(keyFile);
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([before]));
  expect(nextKey(keyFile)).toBeUndefined();
});

it("a rotation that cannot be committed leaves nothing behind", async () => {
  const before = ownKey();
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("the disk is full"));
  await expect(rotateKeyFile(directory, agent)).rejects.toThrow("the disk is full");
  store.commit = commit;
  expect(new Set(inUse())).toEqual(new Set([before]));
  expect(existsSync(`${keyFile}.next`)).toBe(false);
});

it("a peer that has only the former key accepts messages, also after a restart", async () => {
  const before = agent.context.pair;
  const publicKey = keyPairFromSeed(Buffer.alloc(32, 2)).publicKey.text;
  const member = { agentId: "bob", endpoint: "https://bob.example.com/swarm", publicKey, joinedAt: 0 };
  await agent.context.commit([{ kind: "mesh.member.put", swarmId, member }], swarmId);
  await rotateKeyFile(directory, agent);
  await reopen();
  knownToBob = before;
  const { messageId } = await agent.send({ swarmId, to: "bob", content: "do you hear me?" });
  agent.retryNow(member.endpoint);
  await expect.poll(async () => (await store.mesh.sentById(messageId))[0]?.status).toBe("delivered");
});

it("an announced key that could not be installed is not lost when the operator rotates again", async () => {
  const next = prepareNextKey(keyFile);
  const full = () => {
    throw new Error("no space left");
  };
  await expect(agent.rotateKey({ pair: next.pair, install: full })).rejects.toThrow("no space left");
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("the disk is full"));
  await expect(rotateKeyFile(directory, agent)).rejects.toThrow("the disk is full");
  store.commit = commit;
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([next.pair.publicKey.text]));
});
