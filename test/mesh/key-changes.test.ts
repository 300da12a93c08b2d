/** Checklist item 63: when another key of a member is believed. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { rotationText } from "../../src/mesh/membership/rotation.js";
import { signDraft } from "../../src/mesh/message/build.js";
import { type Agent, type Mesh, system, threeAgents } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let carol: Agent;

beforeEach(async () => {
  ({ mesh, alice, bob, carol } = await threeAgents());
});
afterEach(() => mesh.close());

describe("keys", () => {
  const renewed = keyPairFromSeed(Buffer.alloc(32, 99));

  it("[ASP-STAT-05] 63. a key that its endpoint confirms is taken, logged, and asked for at most once in five minutes (8.26)", async () => {
    const lab = await mesh.swarm(alice, bob);
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: "https://evil.example.com" },
    };
    mesh.calls.length = 0;
    for (let index = 0; index < 4; index += 1) {
      expect((await bob.post("/swarm/message", { ...forged, message_id: crypto.randomUUID() })).status).toBe(
        401,
      );
    }
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://alice.example.com/swarm/info"]);
    mesh.clock.jump(300_001);
    alice.node.core.usePair(renewed);
    await alice.node.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
  });

  it("a key that an endpoint shows does not undo what was announced while the endpoint was asked", async () => {
    const lab = await mesh.swarm(alice, bob);
    const shown = keyPairFromSeed(Buffer.alloc(32, 98));
    mesh.foreign.set("alice.example.com", async () => {
      const proof = renewed.sign(rotationText(lab, "alice", renewed.publicKey.text)).toString("base64");
      const content = { public_key: renewed.publicKey.text, proof };
      const rotation = { type: "system", action: "key_rotated", agent_id: "alice", ...content };
      expect((await bob.post("/swarm/message", system(alice, lab, rotation))).status).toBe(200);
      const info = { agent_id: "alice", endpoint: alice.endpoint, public_key: shown.publicKey.text };
      return { status: 200, body: JSON.stringify(info) };
    });
    const signer = { agentId: "alice", endpoint: alice.endpoint, pair: shown };
    const draft = {
      message_id: crypto.randomUUID(),
      recipient: "bob",
      type: "message",
      content: "hi",
    } as const;
    const message = signDraft({ ...draft, swarm_id: lab }, signer, mesh.clock.now());
    expect((await bob.post("/swarm/message", message)).status).toBe(401);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("[ASP-STAT-06] 63. a key older than a day is looked up in the background; another one is reported, not taken", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(90_000_000);
    await bob.post("/swarm/message", alice.message({ swarm_id: lab }));
    await mesh.settle();
    expect(bob.node.core.view.keys.get("alice")).toMatchObject({
      publicKey: alice.pair.publicKey.text,
      fetchedAt: mesh.clock.now(),
    });
    mesh.clock.jump(90_000_000);
    alice.node.core.usePair(renewed);
    await bob.post("/swarm/message", alice.message({ swarm_id: lab }));
    await mesh.settle();
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("with the policy `pin` only a rotation message changes a key", async () => {
    bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    alice.node.core.usePair(renewed);
    const { messageId } = await alice.node.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect((await alice.store.mesh.sentById(messageId))[0]?.status).toBe("failed");
  });

  it("a rotation is announced with the old key, proven by the new one, and believed by all", async () => {
    bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    let installed = false;
    await alice.node.rotateKey(renewed, () => {
      installed = true;
    });
    await alice.node.send({ swarmId: lab, to: "bob", content: "after" });
    await mesh.settle();
    expect(installed).toBe(true);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect((await bob.store.mesh.inbox({ limit: 9 })).map(({ content }) => content)).toContain("after");
    const unproven = system(bob, lab, {
      action: "key_rotated",
      agent_id: "bob",
      public_key: carol.pair.publicKey.text,
      proof: bob.pair.sign(Buffer.from("x")).toString("base64"),
    });
    expect((await alice.post("/swarm/message", unproven)).status).toBe(401);
  });
});
