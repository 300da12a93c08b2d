/** A change of keys that a crash cuts off is finished or forgotten when the agent is opened again. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { nextKey, prepareNextKey, readKeyFile } from "../../src/mesh/identity/key-file.js";
import { type KeyPair, keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import type { MeshNode } from "../../src/mesh/node.js";
import { initMesh, openMesh, rotateKeyFile } from "../../src/mesh/setup.js";
import { verifySignature } from "../../src/mesh/signature.js";
import { type HttpClient, NetError } from "../../src/net/index.js";
import { type FullStore, openStore } from "../../src/store/index.js";

let directory: string;
let keyFile: string;
let store: FullStore;
let node: MeshNode;
let swarmId: string;

/** A peer that knows one key of alice's and hears of no other. */
let knownToBob: KeyPair | undefined;

const bob: HttpClient = {
  request: async (url, { body = "" } = {}) => {
    if (knownToBob === undefined) throw new NetError("unreachable", "nobody is there", { url: new URL(url) });
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
  node = await open();
  swarmId = (await node.create("Lab")).id;
});
afterEach(async () => {
  await node.close();
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const inUse = () => [node.core.pair.publicKey.text, readKeyFile(keyFile).publicKey.text, ownKey()];
const ownKey = () => node.swarm(swarmId).members.get("alice")?.publicKey;

async function reopen(): Promise<void> {
  await node.close();
  node = await open();
}

it("after it was announced, the new key counts, and the old one is kept beside it", async () => {
  const next = prepareNextKey(keyFile);
  const killed = () => {
    throw new Error("killed");
  };
  await expect(node.rotateKey({ pair: next.pair, install: killed })).rejects.toThrow("killed");
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([next.pair.publicKey.text]));
  expect(nextKey(keyFile)).toBeUndefined();
  expect(readdirSync(join(directory, "mesh")).filter((name) => name.endsWith(".old"))).toHaveLength(1);
});

it("before it was announced, the old key counts", async () => {
  const before = ownKey();
  prepareNextKey(keyFile);
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([before]));
  expect(nextKey(keyFile)).toBeUndefined();
});

it("when it cannot be committed, nothing is left of it", async () => {
  const before = ownKey();
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("the disk is full"));
  await expect(rotateKeyFile(directory, node)).rejects.toThrow("the disk is full");
  store.commit = commit;
  expect(new Set(inUse())).toEqual(new Set([before]));
  expect(existsSync(`${keyFile}.next`)).toBe(false);
});

it("a peer that knows only the key before hears us after a restart, too", async () => {
  const before = node.core.pair;
  const publicKey = keyPairFromSeed(Buffer.alloc(32, 2)).publicKey.text;
  const member = { agentId: "bob", endpoint: "https://bob.example.com/swarm", publicKey, joinedAt: 0 };
  await node.core.commit([{ kind: "mesh.member.put", swarmId, member }], swarmId);
  await rotateKeyFile(directory, node);
  await reopen();
  knownToBob = before;
  const { messageId } = await node.send({ swarmId, to: "bob", content: "do you hear me?" });
  node.retryNow(member.endpoint);
  await expect.poll(async () => (await store.mesh.sentById(messageId))[0]?.status).toBe("delivered");
});

it("a key that was announced and could not be installed is not lost when the operator tries again", async () => {
  const next = prepareNextKey(keyFile);
  const full = () => {
    throw new Error("no space left");
  };
  await expect(node.rotateKey({ pair: next.pair, install: full })).rejects.toThrow("no space left");
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("the disk is full"));
  await expect(rotateKeyFile(directory, node)).rejects.toThrow("the disk is full");
  store.commit = commit;
  await reopen();
  expect(new Set(inUse())).toEqual(new Set([next.pair.publicKey.text]));
});
