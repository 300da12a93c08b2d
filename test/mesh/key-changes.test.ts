/** Checklist item 63: when another key of a member is believed. */
import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { rotationText } from "../../src/mesh/membership/rotation.js";
import { alice, bob, carol, forEachTest, mesh, system, textsAt } from "./harness.js";

forEachTest();

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
      expect(await bob.answer({ ...forged, message_id: crypto.randomUUID() })).toBe(401);
    }
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://alice.example.com/swarm/info"]);
    mesh.clock.jump(300_001);
    alice.node.core.usePair(renewed);
    await alice.node.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
  });

  it("is taken although a forged message made us ask, and in every swarm that both are in", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const den = await mesh.swarm(alice, bob);
    alice.node.core.usePair(renewed);
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: alice.endpoint },
    };
    expect(await bob.answer(forged)).toBe(401);
    for (const swarm_id of [lab, den]) {
      expect(await bob.answer(alice.message({ swarm_id }, { pair: renewed }))).toBe(200);
    }
  });

  it("that was changed does not come back because its endpoint showed it minutes ago", async () => {
    const lab = await mesh.swarm(alice, bob);
    // Anybody can make bob ask alice's endpoint.
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: alice.endpoint },
    };
    expect(await bob.answer(forged)).toBe(401);
    await alice.node.rotateKey({ pair: renewed, install: () => undefined });
    await mesh.settle();
    mesh.clock.jump(240_000);
    expect(await bob.answer(alice.message({ swarm_id: lab }, { pair: alice.pair }))).toBe(401);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("of two messages that come at once after a change none is refused for good", async () => {
    const lab = await mesh.swarm(alice, bob);
    alice.node.core.usePair(renewed);
    const answers = [0, 1].map(() => bob.answer(alice.message({ swarm_id: lab }, { pair: renewed })));
    expect((await Promise.all(answers)).sort()).toEqual([200, 503]);
  });

  it("a rotation is heard by who was away for longer than a timestamp is good, also by who pins keys", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.node.rotateKey({ pair: renewed, install: () => undefined });
    await mesh.pass(30 * 3_600_000);
    mesh.down.clear();
    await mesh.pass(3 * 3_600_000);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("a key that an endpoint shows does not undo what was announced while the endpoint was asked", async () => {
    const lab = await mesh.swarm(alice, bob);
    const shown = keyPairFromSeed(Buffer.alloc(32, 98));
    mesh.foreign.set("alice.example.com", async () => {
      const proof = renewed.sign(rotationText(lab, "alice", renewed.publicKey.text)).toString("base64");
      const content = { public_key: renewed.publicKey.text, proof };
      const rotation = { type: "system", action: "key_rotated", agent_id: "alice", ...content };
      expect(await bob.answer(system(alice, lab, rotation))).toBe(200);
      const info = { agent_id: "alice", endpoint: alice.endpoint, public_key: shown.publicKey.text };
      return { status: 200, body: JSON.stringify(info) };
    });
    expect(await bob.answer(alice.message({ swarm_id: lab }, { pair: shown }))).toBe(503);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("[ASP-STAT-06] 63. a key older than a day is looked up in the background; another one is reported, not taken", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(90_000_000);
    expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
    await mesh.settle();
    expect(bob.node.core.view.keys.get("alice")).toMatchObject({
      publicKey: alice.pair.publicKey.text,
      fetchedAt: mesh.clock.now(),
    });
    mesh.clock.jump(90_000_000);
    alice.node.core.usePair(renewed);
    expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
    await mesh.settle();
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("with the policy `pin` only a rotation message changes a key", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    alice.node.core.usePair(renewed);
    expect(await bob.answer(alice.message({ swarm_id: lab }, { pair: renewed }))).toBe(401);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("what waits for a peer when the key changes is delivered all the same, also to who pins keys", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.node.send({ swarmId: lab, to: "bob", content: "before" });
    await mesh.settle();
    await alice.node.rotateKey({ pair: renewed, install: () => undefined });
    await alice.node.send({ swarmId: lab, to: "bob", content: "after" });
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await textsAt(bob)).sort()).toEqual(["after", "before"]);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("is changed in all swarms or in none", async () => {
    const first = await mesh.swarm(alice, bob);
    const second = await mesh.swarm(alice, carol);
    const commit = alice.store.commit.bind(alice.store);
    alice.store.commit = () => Promise.reject(new Error("the disk is full"));
    let installed = false;
    const next = {
      pair: renewed,
      install: () => {
        installed = true;
      },
    };
    await expect(alice.node.rotateKey(next)).rejects.toThrow("the disk is full");
    alice.store.commit = commit;
    await mesh.settle();
    expect(installed).toBe(false);
    const keys = [bob.node.swarm(first), carol.node.swarm(second), alice.node.swarm(first)].map(
      ({ members }) => members.get("alice")?.publicKey,
    );
    expect(new Set(keys)).toEqual(new Set([alice.pair.publicKey.text]));
  });

  it("a rotation is announced with the old key, proven by the new one, and believed by all", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    let installed = false;
    await alice.node.rotateKey({
      pair: renewed,
      install: () => {
        installed = true;
      },
    });
    await alice.node.send({ swarmId: lab, to: "bob", content: "after" });
    await mesh.settle();
    expect(installed).toBe(true);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect(await textsAt(bob)).toEqual(["after"]);
    const unproven = system(bob, lab, {
      action: "key_rotated",
      agent_id: "bob",
      public_key: carol.pair.publicKey.text,
      proof: bob.pair.sign(Buffer.from("x")).toString("base64"),
    });
    expect(await alice.answer(unproven)).toBe(401);
  });
});
