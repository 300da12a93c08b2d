/** When a changed key of a member is trusted. */
import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { rotationText } from "../../src/mesh/membership/system-content.js";
import { alice, bob, carol, forEachTest, mesh, system, textsAt } from "./harness.js";

forEachTest();

describe("keys", () => {
  const renewed = keyPairFromSeed(Buffer.alloc(32, 99));

  it("[ASP-STAT-05] a changed key that the endpoint confirms is accepted, reported, and fetched at most once in five minutes", async () => {
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
    alice.agent.context.usePair(renewed);
    await alice.agent.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
  });

  it("a changed key is accepted although a forged message caused the fetch, and in every common swarm", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const den = await mesh.swarm(alice, bob);
    alice.agent.context.usePair(renewed);
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: alice.endpoint },
    };
    expect(await bob.answer(forged)).toBe(401);
    for (const swarm_id of [lab, den]) {
      expect(await bob.answer(alice.message({ swarm_id }, { pair: renewed }))).toBe(200);
    }
  });

  it("a replaced key does not return because the endpoint served it minutes ago", async () => {
    const lab = await mesh.swarm(alice, bob);
    // Any peer can make bob fetch the key from alice's endpoint.
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: alice.endpoint },
    };
    expect(await bob.answer(forged)).toBe(401);
    await alice.agent.rotateKey({ pair: renewed, install: () => undefined });
    await mesh.settle();
    mesh.clock.jump(240_000);
    expect(await bob.answer(alice.message({ swarm_id: lab }, { pair: alice.pair }))).toBe(401);
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("two concurrent messages after a key change are both accepted in the end", async () => {
    const lab = await mesh.swarm(alice, bob);
    alice.agent.context.usePair(renewed);
    const answers = [0, 1].map(() => bob.answer(alice.message({ swarm_id: lab }, { pair: renewed })));
    expect((await Promise.all(answers)).sort()).toEqual([200, 503]);
  });

  it("a rotation reaches members that were unreachable longer than a timestamp is valid, also with pinned keys", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.agent.rotateKey({ pair: renewed, install: () => undefined });
    await mesh.pass(30 * 3_600_000);
    mesh.down.clear();
    await mesh.pass(3 * 3_600_000);
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("a fetched key does not undo a rotation that was announced during the fetch", async () => {
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
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("[ASP-STAT-06] a key older than a day is fetched in the background; a different one is reported, not accepted", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(90_000_000);
    expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
    await mesh.settle();
    expect(bob.agent.context.view.keys.get("alice")).toMatchObject({
      publicKey: alice.pair.publicKey.text,
      fetchedAt: mesh.clock.now(),
    });
    mesh.clock.jump(90_000_000);
    alice.agent.context.usePair(renewed);
    expect(await bob.answer(alice.message({ swarm_id: lab }))).toBe(200);
    await mesh.settle();
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("with the policy `pin` only a rotation message changes a key", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    alice.agent.context.usePair(renewed);
    expect(await bob.answer(alice.message({ swarm_id: lab }, { pair: renewed }))).toBe(401);
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("messages pending during a key change are still delivered, also to members that pin keys", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.agent.send({ swarmId: lab, to: "bob", content: "before" });
    await mesh.settle();
    await alice.agent.rotateKey({ pair: renewed, install: () => undefined });
    await alice.agent.send({ swarmId: lab, to: "bob", content: "after" });
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect((await textsAt(bob)).sort()).toEqual(["after", "before"]);
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("a key is changed in all swarms or in none", async () => {
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
    await expect(alice.agent.rotateKey(next)).rejects.toThrow("the disk is full");
    alice.store.commit = commit;
    await mesh.settle();
    expect(installed).toBe(false);
    const keys = [bob.agent.swarm(first), carol.agent.swarm(second), alice.agent.swarm(first)].map(
      ({ members }) => members.get("alice")?.publicKey,
    );
    expect(new Set(keys)).toEqual(new Set([alice.pair.publicKey.text]));
  });

  it("a rotation is announced with the old key, proven by the new one, and accepted by all members", async () => {
    const bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    let installed = false;
    await alice.agent.rotateKey({
      pair: renewed,
      install: () => {
        installed = true;
      },
    });
    await alice.agent.send({ swarmId: lab, to: "bob", content: "after" });
    await mesh.settle();
    expect(installed).toBe(true);
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
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
