/** Mailroom agents and agents of the reference in one swarm, with either as the master. */
import { beforeEach, describe, expect, it } from "vitest";
import { meshOptions } from "../../src/mesh/options.js";
import { alice, bob, carol, forEachTest, membersAt, mesh, textsAt } from "./harness.js";
import { type ReferencePeer, signedBy } from "./reference-peer.js";

// With default options, including seals.
forEachTest(meshOptions());
let remy: ReferencePeer;
beforeEach(() => {
  remy = mesh.reference("remy");
});

const chatOf = (peer: ReferencePeer) =>
  peer.inbox.filter(({ type }) => type === "message").map(({ sender_id, content }) => [sender_id, content]);

const membersOf = (peer: ReferencePeer, swarmId: string) =>
  [...(peer.swarms.get(swarmId)?.members.keys() ?? [])].sort();

const VERSIONS = [
  { version: "a version that verifies nothing", later: false },
  { version: "a version that verifies", later: true },
];

describe("a reference agent in a swarm with a Mailroom master", () => {
  it.each(VERSIONS)(
    "a reference agent joins, is announced, sends, receives and leaves: $version",
    async ({ later }) => {
      remy = mesh.reference("remy", { later });
      const lab = await mesh.swarm(alice, bob);
      expect(await remy.join(await alice.agent.invite(lab, { maxUses: 1 }))).toBe(lab);
      await mesh.settle();
      for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "remy"]);
      expect(membersOf(remy, lab)).toEqual(["alice", "bob", "remy"]);

      expect(await remy.send(lab, "to all of you ✓")).toEqual([200, 200]);
      expect(await remy.send(lab, "to alice", "alice")).toEqual([200]);
      expect((await textsAt(alice)).sort()).toEqual(["to alice", "to all of you ✓"]);
      expect(await textsAt(bob)).toEqual(["to all of you ✓"]);

      mesh.calls.length = 0;
      const extras = { priority: "normal", metadata: { topic: "lunch" } } as const;
      await alice.agent.send({ swarmId: lab, to: "remy", content: "hello", extras });
      await bob.agent.send({ swarmId: lab, content: "hello all" });
      await mesh.settle();
      expect(chatOf(remy).sort()).toEqual([
        ["alice", "hello"],
        ["bob", "hello all"],
      ]);
      const bodies = mesh.calls.filter(({ url }) => url.includes("remy")).map(({ body }) => JSON.parse(body));
      for (const body of bodies) {
        const { pair } = body.sender.agent_id === "alice" ? alice : bob;
        expect(signedBy(pair.publicKey.text, body)).toBe(true);
      }
      expect(bodies).toHaveLength(2);

      // It accepts a later member after the announcement, which it verifies at the new member's info.
      await carol.agent.join(await alice.agent.invite(lab));
      await mesh.settle();
      expect(membersOf(remy, lab)).toEqual(["alice", "bob", "carol", "remy"]);
      await alice.agent.kick(lab, "carol", 'so "it" is');
      await mesh.settle();
      expect(remy.swarms.get(lab)?.members.has("carol")).toBe(false);

      await remy.leave(lab);
      for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob"]);
    },
  );

  it("a reference agent can read the reason of a refusal", async () => {
    const lab = await mesh.swarm(alice, bob);
    const invite = await alice.agent.invite(lab, { maxUses: 1 });
    await remy.join(invite);
    await expect(mesh.reference("rosa").join(invite)).rejects.toThrow("403 TOKEN_EXHAUSTED");
    await alice.agent.kick(lab, "remy");
    await mesh.settle();
    expect(await remy.send(lab, "still here?")).toEqual([403, 403]);
  });

  it("a reference agent does not become the master by accepting the offer like any other message", async () => {
    const lab = await mesh.swarm(alice, bob);
    await remy.join(await alice.agent.invite(lab));
    await mesh.settle();
    await alice.agent.transfer(lab, "remy");
    await mesh.settle();
    expect(remy.inbox.map(({ content }) => content)).toContainEqual(
      expect.stringContaining("master_transfer"),
    );
    for (const { agent } of [alice, bob]) expect(agent.swarm(lab).master).toBe("alice");
    expect(alice.problems).toContainEqual({
      code: "mesh_undelivered",
      message: expect.stringContaining("may not support transfers"),
    });
    // The swarm can still be transferred to a member that supports it.
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    for (const { agent } of [alice, bob]) expect(agent.swarm(lab).master).toBe("bob");
  });

  it("a reference agent waits for approval and is a member when it asks again", async () => {
    const { id } = await alice.agent.create("Den", { requireApproval: true });
    const invite = await alice.agent.invite(id);
    await expect(remy.join(invite)).rejects.toThrow("pending");
    await alice.agent.approve(id, "remy");
    expect(await remy.join(invite)).toBe(id);
  });
});

describe("Mailroom agents in a swarm with a reference master", () => {
  it.each(VERSIONS)(
    "Mailroom agents join, learn of each other, talk, are kicked and leave: $version",
    async ({ later }) => {
      remy = mesh.reference("remy", { later });
      const lab = remy.create("Lab Swarm");
      expect((await alice.agent.join(remy.invite(lab))).swarm.name).toBe("Lab Swarm");
      // The list has no times, and the announcement neither headers nor a key: alice fetches it from bob.
      await bob.agent.join(remy.invite(lab));
      await mesh.settle();
      for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "remy"]);
      expect(alice.agent.swarm(lab).members.get("bob")?.publicKey).toBe(bob.pair.publicKey.text);
      expect(alice.agent.swarm(lab).members.get("remy")?.joinedAt).toBe(mesh.clock.now());

      await alice.agent.send({ swarmId: lab, content: "from alice" });
      await mesh.settle();
      expect(await remy.send(lab, "from remy")).toEqual([200, 200]);
      expect((await textsAt(bob)).sort()).toEqual(["from alice", "from remy"]);
      expect(chatOf(remy)).toEqual([["alice", "from alice"]]);

      await bob.agent.leave(lab);
      await mesh.settle();
      expect(membersOf(remy, lab)).toEqual(["alice", "remy"]);
      expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
      await remy.kick(lab, "alice");
      expect(alice.agent.swarms).toEqual([]);
    },
  );

  it("Mailroom agents accept a kick whose reason breaks its JSON", async () => {
    const lab = remy.create("Lab Swarm");
    for (const { agent } of [alice, bob]) await agent.join(remy.invite(lab));
    await mesh.settle();
    await remy.kick(lab, "bob", 'so "it" is');
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    expect(bob.agent.swarms).toEqual([]);
  });

  it("Mailroom agents learn within an hour of a kick that was announced once while they were unreachable", async () => {
    const lab = remy.create("Lab Swarm");
    for (const { agent } of [alice, bob]) await agent.join(remy.invite(lab));
    const den = await mesh.swarm(bob, alice);
    await bob.agent.send({ swarmId: den, content: "sealed" });
    await mesh.settle();
    mesh.down.add("alice.example.com");
    await remy.kick(lab, "bob");
    mesh.down.clear();
    expect(membersAt(alice, lab)).toEqual(["alice", "bob", "remy"]);
    mesh.calls.length = 0;
    await mesh.pass(3_600_000);
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    // A master that stores its announcements until they are delivered is not asked.
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://remy.example.com/swarm/join"]);
  });

  it("Mailroom agents accept a member whose join was never announced", async () => {
    const lab = remy.create("Lab Swarm");
    await alice.agent.join(remy.invite(lab));
    mesh.down.add("alice.example.com");
    await bob.agent.join(remy.invite(lab)).catch(() => undefined);
    mesh.down.clear();
    await bob.agent.join(remy.invite(lab));
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    await bob.agent.send({ swarmId: lab, to: "alice", content: "you do not know me" });
    await mesh.settle();
    expect(await textsAt(alice)).toEqual(["you do not know me"]);
  });
});
