/** Members that were away, agents that crashed, and what is remembered for them: everybody agrees in the end. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { type Agent, joinBody, type Mesh, membersAt, threeAgents, tokenOf } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let carol: Agent;

beforeEach(async () => {
  ({ mesh, alice, bob, carol } = await threeAgents());
});
afterEach(() => mesh.close());

describe("partitions", () => {
  it("[ASP-OURS-04] a member that missed a join, a kick and a transfer agrees with everybody when it is back", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dave = await mesh.agent("dave");
    mesh.down.add("carol.example.com");
    await dave.node.join(await alice.node.invite(lab));
    await alice.node.kick(lab, "bob");
    await mesh.pass(60_000);
    await alice.node.transfer(lab, "dave");
    await mesh.pass(60_000);
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    for (const agent of [alice, carol, dave]) {
      expect(membersAt(agent, lab)).toEqual(["alice", "carol", "dave"]);
      expect(agent.node.swarm(lab).master).toBe("dave");
    }
    await carol.node.send({ swarmId: lab, content: "back again" });
    await mesh.settle();
    expect((await dave.store.mesh.inbox({ limit: 9 })).map(({ content }) => content)).toContain("back again");
  });

  it("[ASP-OURS-11] 8.27: a master that names another key of a member is reported, and not believed", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const known = bob.node.swarm(lab).members.get("carol")?.publicKey;
    const members = [alice, bob, carol].map(({ name, endpoint, pair }) => ({
      agent_id: name,
      endpoint,
      public_key: (name === "carol" ? keyPairFromSeed(Buffer.alloc(32, 9)) : pair).publicKey.text,
      joined_at: "2026-11-16T12:00:00.000Z",
    }));
    mesh.foreign.set("alice.example.com", () => ({
      status: 200,
      body: JSON.stringify({ status: "accepted", swarm_id: lab, swarm_name: "Lab", members }),
    }));
    expect(await bob.node.sync(lab)).toEqual({ conflicts: ["carol"] });
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_conflict");
    expect(bob.node.swarm(lab).members.get("carol")?.publicKey).toBe(known);
    expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(200);
  });

  it("an unknown sender makes us ask the master, at most once a minute", async () => {
    const lab = await mesh.swarm(alice, bob);
    // The master's announcement gets lost for good: bob must find out by itself.
    mesh.foreign.set("bob.example.com", () => ({ status: 400, body: "{}" }));
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    mesh.foreign.clear();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(200);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    const dave = await mesh.agent("dave");
    mesh.calls.length = 0;
    for (let index = 0; index < 5; index += 1) {
      expect((await bob.post("/swarm/message", dave.message({ swarm_id: lab }))).status).toBe(403);
    }
    expect(mesh.calls.length).toBeLessThanOrEqual(1);
  });

  it("a member that missed everything for good finds out at its next start", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.foreign.set("bob.example.com", () => ({ status: 400, body: "{}" }));
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    mesh.foreign.clear();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    await bob.node.syncAll();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("replay records are forgotten when they no longer matter, and what waits for a peer is bounded", async () => {
    alice = await mesh.agent("alice", { maxWaiting: 2 });
    const lab = await mesh.swarm(alice, bob);
    const message = alice.message({ swarm_id: lab });
    await bob.post("/swarm/message", message);
    await mesh.pass(3 * 86_400_000);
    expect(await bob.store.mesh.seen(lab, "alice", message.message_id)).toBe(false);
    // It is too old to be taken again.
    expect((await bob.post("/swarm/message", message)).status).toBe(400);
    mesh.down.add("bob.example.com");
    await alice.node.send({ swarmId: lab, content: "one" });
    await alice.node.send({ swarmId: lab, content: "two" });
    await expect(alice.node.send({ swarmId: lab, content: "three" })).rejects.toMatchObject({
      code: "overloaded",
    });
  });

  it("synchronising works with an invite that has expired, because it is signed", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(2 * 86_400_000);
    expect(await bob.node.sync(lab)).toEqual({ conflicts: [] });
    expect(
      (
        await alice.post(
          "/swarm/join",
          joinBody(bob, tokenOf(await alice.node.invite(lab, { lifetime: -1 }))),
        )
      ).status,
    ).toBe(401);
  });

  it("what was accepted before a crash is delivered after it, once", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.node.send({ swarmId: lab, to: "bob", content: "survivor" });
    await mesh.settle();
    const store = mesh.crash(alice);
    alice = await mesh.agent("alice", {}, store);
    mesh.down.clear();
    await mesh.pass(60_000);
    const inbox = await bob.store.mesh.inbox({ limit: 9 });
    expect(inbox.filter(({ content }) => content === "survivor")).toHaveLength(1);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
  });

  it("masters that have shown themselves to be Mailrooms are not asked every hour", async () => {
    for (let swarm = 0; swarm < 4; swarm++) {
      const { id } = await alice.node.create(`Swarm ${swarm}`);
      await bob.node.join(await alice.node.invite(id));
    }
    const asked = () => mesh.calls.filter(({ from, url }) => from === "bob" && url.endsWith("/join")).length;
    // The first time it cannot know.
    await mesh.pass(2 * 3_600_000);
    const before = asked();
    await mesh.pass(24 * 3_600_000);
    expect(asked()).toBe(before);
  });
});
