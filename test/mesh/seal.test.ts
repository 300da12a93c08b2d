/** Seals over the fields that the protocol leaves unsigned. */
import { beforeEach, describe, expect, it } from "vitest";
import { keyPairFromSeed, verifyWith } from "../../src/mesh/identity/keys.js";
import { SEAL_FIELD } from "../../src/mesh/message/seal.js";
import type { MeshMessage, MessageExtras } from "../../src/mesh/message/types.js";
import { verifySignature } from "../../src/mesh/signature.js";
import { type Agent, alice, bob, bodyOf, carol, forEachTest, mesh } from "./harness.js";

const ID = "123e4567-e89b-42d3-a456-426614174013";
const OTHER_ID = "123e4567-e89b-42d3-a456-426614174014";
const extras: MessageExtras = {
  in_reply_to: ID,
  thread_id: ID.toUpperCase(),
  priority: "high",
  expires_at: "2027-01-01T00:00:00Z",
  attachments: [{ type: "url", mime_type: "text/html", content: "https://example.com/a" }],
  references: [{ type: "github_issue", repo: "acme/shop", number: 7, action: "claimed" }],
  metadata: { b: 1, a: { z: [1, "two", null], y: true } },
};

forEachTest({ sealMessages: true });
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob);
});

const post = async (to: Agent, message: unknown) => {
  const answer = await to.post("/swarm/message", message);
  return answer.status === 200 ? 200 : `${answer.status} ${bodyOf(answer).error?.message}`;
};
const CHANGED = "401 the message was changed after it was sealed";
const TAKEN = "401 the message must be sealed";

/** A key that is not alice's yet. */
const NEXT = keyPairFromSeed(Buffer.alloc(32, 9));
const saidWithIt = (seals: boolean, swarm_id = lab) => alice.message({ swarm_id }, { pair: NEXT, seals });

function without(message: MeshMessage): unknown {
  const { [SEAL_FIELD]: _seal, ...metadata } = message.metadata ?? {};
  return { ...message, metadata };
}

it("sealing keys that are no longer in use are removed", async () => {
  const den = await mesh.swarm(alice, bob);
  for (let round = 0; round < 5; round += 1) {
    for (const swarmId of [lab, den]) await alice.agent.send({ swarmId, content: "sealed" });
    await alice.agent.rotateKey({
      pair: keyPairFromSeed(Buffer.alloc(32, 20 + round)),
      install: () => undefined,
    });
    await mesh.settle();
  }
  expect([...bob.agent.context.view.sealingKeys.keys()]).toEqual([alice.agent.context.pair.publicKey.text]);
  const again = await mesh.agent("bob", {}, mesh.crash(bob));
  expect([...again.agent.context.view.sealingKeys.keys()]).toEqual([alice.agent.context.pair.publicKey.text]);
});

describe("a sealed message", () => {
  it("[ASP-OURS-12] a sealed message is refused with any field changed, added or removed, and accepted unchanged", async () => {
    const original = alice.message({ swarm_id: lab, extras });
    const { metadata = {} } = original;
    const changes: readonly Partial<Record<keyof MeshMessage, unknown>>[] = [
      { protocol_version: "0.2.0" },
      { sender: { ...original.sender, endpoint: "https://mallory.example.com/swarm" } },
      { in_reply_to: OTHER_ID },
      { in_reply_to: null },
      { thread_id: OTHER_ID },
      { thread_id: undefined },
      { priority: "low" },
      { priority: undefined },
      { expires_at: "2027-01-01T00:00:01Z" },
      { expires_at: undefined },
      { attachments: [{ type: "url", mime_type: "text/html", content: "https://mallory.example.com/a" }] },
      { attachments: [] },
      { references: [{ type: "github_issue", repo: "acme/shop", number: 8, action: "claimed" }] },
      { references: undefined },
      { metadata: { ...metadata, b: 2 } },
      { metadata: { ...metadata, c: "added" } },
      { metadata: { b: 1, [SEAL_FIELD]: metadata[SEAL_FIELD] } },
      { metadata: { ...metadata, [SEAL_FIELD]: "no signature" } },
      { metadata: { ...metadata, [SEAL_FIELD]: 7 } },
      { metadata: { ...metadata, [SEAL_FIELD]: null } },
      { metadata: { ...metadata, [SEAL_FIELD]: original.signature } },
    ];
    for (const change of changes) {
      expect({ change, answer: await post(bob, { ...original, ...change }) }).toEqual({
        change,
        answer: CHANGED,
      });
    }
    expect(await bob.store.mesh.byMessageId(original.message_id)).toBeUndefined();

    // Other software may write the same fields in another order, and with insignificant values.
    const { b, a, ...seal } = metadata;
    const respelled = { ...original, unknown: 1, metadata: { ...seal, a, b }, in_reply_to: ID.toUpperCase() };
    expect(await post(bob, respelled)).toBe(200);
    expect((await bob.store.mesh.byMessageId(original.message_id))?.threadId).toBe(ID);
  });

  it("a seal is not valid on another message, nor with another key", async () => {
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    const one = alice.message({ swarm_id: lab, extras });
    const two = alice.message({ swarm_id: lab, extras });
    const hers = carol.message({ swarm_id: lab, extras });
    expect(await post(bob, { ...one, metadata: two.metadata })).toBe(CHANGED);
    expect(await post(bob, { ...one, metadata: hers.metadata })).toBe(CHANGED);
  });

  it("the seal of a sender that sealed before cannot be removed, also after a restart and a key change", async () => {
    // Joining introduced alice to bob, and her first message shows that she seals.
    expect(await post(bob, alice.message({ swarm_id: lab }))).toBe(200);
    const second = alice.message({ swarm_id: lab, extras });
    expect(await post(bob, without(second))).toBe(TAKEN);
    const { metadata: _metadata, ...bare } = second;
    expect(await post(bob, bare)).toBe(TAKEN);
    const again = await mesh.agent("bob", { sealMessages: true }, mesh.crash(bob));
    expect(await post(again, bare)).toBe(TAKEN);
    expect(await post(again, second)).toBe(200);

    await alice.agent.rotateKey({ pair: NEXT, install: () => undefined });
    await mesh.settle();
    expect(await post(again, saidWithIt(false))).toBe(TAKEN);
    expect(await post(again, saidWithIt(true))).toBe(200);
  });

  it("a new key must also seal when only the announcement of that key was sealed before", async () => {
    // Joining is not a message: the rotation is the first message that bob receives from alice.
    await alice.agent.rotateKey({ pair: NEXT, install: () => undefined });
    await mesh.settle();
    expect(await post(bob, saidWithIt(false))).toBe(TAKEN);
  });

  it("a seal is required of a key that sealed in another swarm, where its former key is the known one", async () => {
    const den = await mesh.swarm(alice, bob);
    mesh.foreign.set("alice.example.com", () => ({
      status: 200,
      body: JSON.stringify({ agent_id: "alice", endpoint: alice.endpoint, public_key: NEXT.publicKey.text }),
    }));
    expect(await post(bob, saidWithIt(true))).toBe(200);
    await mesh.pass(3_600_000);
    expect(await post(bob, saidWithIt(false, den))).toBe(TAKEN);
  });

  it("a sealed message is an ordinary message for software without seals", async () => {
    await alice.agent.send({ swarmId: lab, to: "bob", content: "hello", extras });
    await mesh.settle();
    const sent: MeshMessage = JSON.parse(mesh.calls.at(-1)?.body ?? "");
    expect(verifySignature(sent, sent.signature, alice.pair.publicKey)).toBe("valid");
    expect(sent.metadata).toEqual({
      ...extras.metadata,
      [SEAL_FIELD]: expect.stringMatching(/^[\w+/]{86}==$/u),
    });
  });

  it("a seal covers the bytes that docs/mesh.md describes", async () => {
    const { signature, metadata = {} } = alice.message({ swarm_id: lab, extras });
    const text =
      `mailroom-seal-1\n["${signature}","0.1.0","alice","https://alice.example.com/swarm","${ID}","${ID}","high",` +
      `"2027-01-01T00:00:00Z",[["url","text/html","https://example.com/a"]],` +
      `[["github_issue","acme/shop",7,null,null,"claimed"]],{"a":{"y":true,"z":[1,"two",null]},"b":1}]`;
    const seal = Buffer.from(String(metadata[SEAL_FIELD]), "base64");
    expect(verifyWith(alice.pair.publicKey, Buffer.from(text), seal)).toBe(true);
  });

  it("metadata reserves space for the seal", async () => {
    const metadata = (keys: number) =>
      Object.fromEntries(Array.from({ length: keys }, (_, n) => [`k${n}`, n]));
    const send = (keys: number) =>
      alice.agent.send({ swarmId: lab, to: "bob", content: "hello", extras: { metadata: metadata(keys) } });
    await expect(send(64)).rejects.toThrow("metadata");
    const { messageId } = await send(63);
    await mesh.settle();
    expect(await bob.store.mesh.byMessageId(messageId)).toBeDefined();
  });
});

describe("an agent that does not seal", () => {
  it("an agent that does not seal is accepted, unless seals are required of all", async () => {
    const plain = await mesh.agent("plain", { sealMessages: false });
    const strict = await mesh.agent("strict", { sealMessages: true, sealPolicy: "require" });
    for (const agent of [plain, strict]) await agent.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    const message = plain.message({ swarm_id: lab, extras });
    expect(await post(bob, message)).toBe(200);
    expect(await post(strict, message)).toBe(TAKEN);
  });

  it("an agent that stops sealing is accepted by agents with the policy `optional`", async () => {
    const easy = await mesh.agent("easy", { sealMessages: true, sealPolicy: "optional" });
    await easy.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    expect(await post(easy, alice.message({ swarm_id: lab }))).toBe(200);
    const { metadata: _metadata, ...bare } = alice.message({ swarm_id: lab });
    expect(await post(easy, bare)).toBe(200);
    expect(await post(easy, { ...alice.message({ swarm_id: lab }), priority: "high" })).toBe(CHANGED);
  });
});
