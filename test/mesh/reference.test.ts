/** 49. Agents of ours and agents of the reference in one swarm, whoever is its master. */
import { beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_MESH_OPTIONS } from "../../src/mesh/options.js";
import { alice, bob, carol, forEachTest, membersAt, mesh, textsAt } from "./harness.js";
import { type ReferencePeer, signedBy } from "./reference-peer.js";

// As they come: sealing included.
forEachTest(DEFAULT_MESH_OPTIONS);
let remy: ReferencePeer;
beforeEach(() => {
  remy = mesh.reference("remy");
});

const chatOf = (peer: ReferencePeer) =>
  peer.inbox.filter(({ type }) => type === "message").map(({ sender_id, content }) => [sender_id, content]);

const membersOf = (peer: ReferencePeer, swarmId: string) =>
  [...(peer.swarms.get(swarmId)?.members.keys() ?? [])].sort();

const VERSIONS = [
  { version: "one that verifies nothing", later: false },
  { version: "one that verifies", later: true },
];

describe("49. a reference agent in a swarm of ours", () => {
  it.each(VERSIONS)("joins, is announced, sends, receives and leaves: $version", async ({ later }) => {
    remy = mesh.reference("remy", { later });
    const lab = await mesh.swarm(alice, bob);
    expect(await remy.join(await alice.node.invite(lab, { maxUses: 1 }))).toBe(lab);
    await mesh.settle();
    for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "remy"]);
    expect(membersOf(remy, lab)).toEqual(["alice", "bob", "remy"]);

    expect(await remy.send(lab, "to all of you ✓")).toEqual([200, 200]);
    expect(await remy.send(lab, "to alice", "alice")).toEqual([200]);
    expect((await textsAt(alice)).sort()).toEqual(["to alice", "to all of you ✓"]);
    expect(await textsAt(bob)).toEqual(["to all of you ✓"]);

    mesh.calls.length = 0;
    const extras = { priority: "normal", metadata: { topic: "lunch" } } as const;
    await alice.node.send({ swarmId: lab, to: "remy", content: "hello", extras });
    await bob.node.send({ swarmId: lab, content: "hello all" });
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

    // Somebody who comes later is known to it after the announcement, which it checks at the newcomer's info.
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    expect(membersOf(remy, lab)).toEqual(["alice", "bob", "carol", "remy"]);
    await alice.node.kick(lab, "carol", 'so "it" is');
    await mesh.settle();
    expect(remy.swarms.get(lab)?.members.has("carol")).toBe(false);

    await remy.leave(lab);
    for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob"]);
  });

  it("understands why it is refused", async () => {
    const lab = await mesh.swarm(alice, bob);
    const invite = await alice.node.invite(lab, { maxUses: 1 });
    await remy.join(invite);
    await expect(mesh.reference("rosa").join(invite)).rejects.toThrow("403 TOKEN_EXHAUSTED");
    await alice.node.kick(lab, "remy");
    await mesh.settle();
    expect(await remy.send(lab, "still here?")).toEqual([403, 403]);
  });

  it("is not made the master by taking the message that offers it, as it would take any", async () => {
    const lab = await mesh.swarm(alice, bob);
    await remy.join(await alice.node.invite(lab));
    await mesh.settle();
    await alice.node.transfer(lab, "remy");
    await mesh.settle();
    expect(remy.inbox.map(({ content }) => content)).toContainEqual(
      expect.stringContaining("master_transfer"),
    );
    for (const { node } of [alice, bob]) expect(node.swarm(lab).master).toBe("alice");
    expect(alice.problems).toContainEqual({
      code: "mesh_undelivered",
      message: expect.stringContaining("may not know transfers"),
    });
    // Nothing stands in the way of handing it to somebody who does.
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    for (const { node } of [alice, bob]) expect(node.swarm(lab).master).toBe("bob");
  });

  it("waits for approval as it knows to, and is in when it asks again", async () => {
    const { id } = await alice.node.create("Den", { requireApproval: true });
    const invite = await alice.node.invite(id);
    await expect(remy.join(invite)).rejects.toThrow("pending");
    await alice.node.approve(id, "remy");
    expect(await remy.join(invite)).toBe(id);
  });
});

describe("49. agents of ours in a swarm of the reference", () => {
  it.each(VERSIONS)("join, learn of each other, talk, are kicked and leave: $version", async ({ later }) => {
    remy = mesh.reference("remy", { later });
    const lab = remy.create("Lab Swarm");
    expect((await alice.node.join(remy.invite(lab))).swarm.name).toBe("Lab Swarm");
    // The list does not say since when, and the announcement has no headers, and no key: alice asks bob for it.
    await bob.node.join(remy.invite(lab));
    await mesh.settle();
    for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "remy"]);
    expect(alice.node.swarm(lab).members.get("bob")?.publicKey).toBe(bob.pair.publicKey.text);
    expect(alice.node.swarm(lab).members.get("remy")?.joinedAt).toBe(mesh.clock.now());

    await alice.node.send({ swarmId: lab, content: "from alice" });
    await mesh.settle();
    expect(await remy.send(lab, "from remy")).toEqual([200, 200]);
    expect((await textsAt(bob)).sort()).toEqual(["from alice", "from remy"]);
    expect(chatOf(remy)).toEqual([["alice", "from alice"]]);

    await bob.node.leave(lab);
    await mesh.settle();
    expect(membersOf(remy, lab)).toEqual(["alice", "remy"]);
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    await remy.kick(lab, "alice");
    expect(alice.node.swarms).toEqual([]);
  });

  it("know who was kicked, whatever the reason does to the message", async () => {
    const lab = remy.create("Lab Swarm");
    for (const { node } of [alice, bob]) await node.join(remy.invite(lab));
    await mesh.settle();
    await remy.kick(lab, "bob", 'so "it" is');
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    expect(bob.node.swarms).toEqual([]);
  });

  it("learn within the hour who was kicked while they could not be told, which they are not told again", async () => {
    const lab = remy.create("Lab Swarm");
    for (const { node } of [alice, bob]) await node.join(remy.invite(lab));
    const den = await mesh.swarm(bob, alice);
    await bob.node.send({ swarmId: den, content: "sealed" });
    await mesh.settle();
    mesh.down.add("alice.example.com");
    await remy.kick(lab, "bob");
    mesh.down.clear();
    expect(membersAt(alice, lab)).toEqual(["alice", "bob", "remy"]);
    mesh.calls.length = 0;
    await mesh.pass(3_600_000);
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    // A master that keeps its announcements until they are heard is left in peace.
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://remy.example.com/swarm/join"]);
  });

  it("hear a member whose joining was announced to nobody", async () => {
    const lab = remy.create("Lab Swarm");
    await alice.node.join(remy.invite(lab));
    mesh.down.add("alice.example.com");
    await bob.node.join(remy.invite(lab)).catch(() => undefined);
    mesh.down.clear();
    await bob.node.join(remy.invite(lab));
    expect(membersAt(alice, lab)).toEqual(["alice", "remy"]);
    await bob.node.send({ swarmId: lab, to: "alice", content: "you do not know me" });
    await mesh.settle();
    expect(await textsAt(alice)).toEqual(["you do not know me"]);
  });
});
