/** Unreachable members and crashed agents: all members agree in the end. */
import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import {
  alice,
  bob,
  bodyOf,
  carol,
  forEachTest,
  joinBody,
  membersAt,
  mesh,
  textsAt,
  tokenOf,
} from "./harness.js";

forEachTest();

const DAY = 86_400_000;

/** Carol joins, and bob never receives the announcement. */
async function carolJoinsUnheard(lab: string): Promise<void> {
  mesh.foreign.set("bob.example.com", () => ({ status: 400, body: "{}" }));
  await carol.agent.join(await alice.agent.invite(lab));
  await mesh.settle();
  mesh.foreign.clear();
  expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
}

describe("unreachable members", () => {
  it("[ASP-OURS-04] a member that missed a join, a kick and a transfer agrees with the others when it returns", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dave = await mesh.agent("dave");
    mesh.down.add("carol.example.com");
    await dave.agent.join(await alice.agent.invite(lab));
    await alice.agent.kick(lab, "bob");
    await mesh.pass(60_000);
    await alice.agent.transfer(lab, "dave");
    await mesh.pass(60_000);
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    for (const agent of [alice, carol, dave]) {
      expect(membersAt(agent, lab)).toEqual(["alice", "carol", "dave"]);
      expect(agent.agent.swarm(lab).master).toBe("dave");
    }
    await carol.agent.send({ swarmId: lab, content: "back again" });
    await mesh.settle();
    expect(await textsAt(dave)).toEqual(["back again"]);
  });

  it("[ASP-OURS-11] another key of a member at the master is reported and not accepted", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const known = bob.agent.swarm(lab).members.get("carol")?.publicKey;
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
    expect(await bob.agent.sync(lab)).toEqual({ conflicts: ["carol"] });
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_conflict");
    expect(bob.agent.swarm(lab).members.get("carol")?.publicKey).toBe(known);
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
  });

  it("a message from an unknown sender makes the agent ask the master, at most once a minute", async () => {
    const lab = await mesh.swarm(alice, bob);
    await carolJoinsUnheard(lab);
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    const dave = await mesh.agent("dave");
    const answersToDave = async (): Promise<number[]> => {
      mesh.calls.length = 0;
      const answers: number[] = [];
      for (let index = 0; index < 3; index += 1)
        answers.push(await bob.answer(dave.message({ swarm_id: lab })));
      return answers;
    };
    // Whether the sender has joined is unknown, so the message is not refused permanently.
    expect(await answersToDave()).toEqual([503, 503, 503]);
    expect(mesh.calls).toEqual([]);
    mesh.clock.jump(60_000);
    expect(await answersToDave()).toEqual([403, 503, 503]);
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://alice.example.com/swarm/join"]);
  });

  it("an agent that missed all announcements learns the members when it asks its masters at startup", async () => {
    const lab = await mesh.swarm(alice, bob);
    await carolJoinsUnheard(lab);
    await bob.agent.syncAll();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("a message whose response was lost counts once, even if it is re-signed two days later", async () => {
    const lab = await mesh.swarm(alice, bob);
    let told = 0;
    bob.agent.onMessage(() => {
      told += 1;
      mesh.down.add("bob.example.com");
    });
    await alice.agent.send({ swarmId: lab, to: "bob", content: "pay once" });
    await mesh.pass(2 * DAY);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect(told).toBe(1);
    expect(await alice.store.mesh.sentCounts(lab)).toMatchObject({ sent: 0, failed: 0 });
  });

  it("replay records are removed when they expire", async () => {
    const lab = await mesh.swarm(alice, bob);
    const message = alice.message({ swarm_id: lab });
    expect(await bob.answer(message)).toBe(200);
    expect(await bob.store.mesh.seen(lab, "alice", message.message_id)).toBe(true);
    await mesh.pass(17 * DAY);
    expect(await bob.store.mesh.seen(lab, "alice", message.message_id)).toBe(false);
    // The message is too old to be accepted again.
    expect(await bob.answer(message)).toBe(400);
  });

  it("the number of pending messages for a peer is limited", async () => {
    const dave = await mesh.agent("dave", { maxWaiting: 2 });
    const lab = await mesh.swarm(dave, bob);
    mesh.down.add("bob.example.com");
    await dave.agent.send({ swarmId: lab, content: "one" });
    await dave.agent.send({ swarmId: lab, content: "two" });
    await expect(dave.agent.send({ swarmId: lab, content: "three" })).rejects.toMatchObject({
      code: "overloaded",
    });
    // The full queue does not block joins, messages to other members or the kick of the member.
    await carol.agent.join(await dave.agent.invite(lab));
    expect(await dave.agent.send({ swarmId: lab, content: "three" })).toMatchObject({
      recipients: ["carol"],
      leftOut: ["bob"],
    });
    await dave.agent.kick(lab, "bob");
    await mesh.settle();
    expect(membersAt(carol, lab)).toEqual(["carol", "dave"]);
    expect(await textsAt(carol)).toEqual(["three"]);
  });

  it("a full delivery target does not block messages to other members", async () => {
    const dave = await mesh.agent("dave", { maxWaiting: 3 });
    const lab = await mesh.swarm(dave, bob);
    for (const agentId of ["one", "other"]) {
      const endpoint = `https://away.example.com/${agentId}/swarm`;
      const member = { agentId, endpoint, publicKey: carol.pair.publicKey.text, joinedAt: 0 };
      await dave.agent.context.commit([{ kind: "mesh.member.put", swarmId: lab, member }], lab);
    }
    await dave.agent.send({ swarmId: lab, content: "first" });
    await mesh.settle();
    expect((await dave.agent.send({ swarmId: lab, content: "second" })).leftOut).toEqual(["other"]);
    await mesh.settle();
    expect(await textsAt(bob)).toEqual(["second", "first"]);
  });

  it("an agent that leaves and joins again stays a member, even if its leave message arrives late", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("alice.example.com");
    await bob.agent.send({ swarmId: lab, to: "alice", content: "are you there?" });
    await mesh.pass(2 * 3_600_000);
    mesh.down.clear();
    await bob.agent.leave(lab);
    await bob.agent.join(await alice.agent.invite(lab));
    await mesh.pass(2 * 3_600_000);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
    expect(await bob.agent.sync(lab)).toEqual({ conflicts: [] });
  });

  it("a new master's kick reaches a member that was unreachable, in whatever order the missed messages arrive", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dave = await mesh.agent("dave");
    await dave.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    mesh.down.add("carol.example.com");
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    await bob.agent.kick(lab, "dave");
    await mesh.pass(3 * 3_600_000);
    // Carol returns, but alice, who announces the new master, is unreachable for some minutes.
    mesh.down.clear();
    mesh.down.add("alice.example.com");
    await mesh.pass(1_800_000);
    mesh.down.clear();
    await mesh.pass(2 * DAY);
    expect(carol.agent.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    expect(await bob.store.mesh.sentCounts(lab)).toMatchObject({ sent: 0, failed: 0 });
  });

  it("synchronization works with an expired invite, because the request is signed", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(2 * 86_400_000);
    expect(await bob.agent.sync(lab)).toEqual({ conflicts: [] });
    const expired = tokenOf(await alice.agent.invite(lab, { lifetime: -1 }));
    const unsigned = await alice.post("/swarm/join", joinBody(bob, expired));
    expect([unsigned.status, bodyOf(unsigned).error?.code]).toEqual([401, "TOKEN_EXPIRED"]);
  });

  it("a message accepted before a crash is delivered once after it", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.agent.send({ swarmId: lab, to: "bob", content: "survivor" });
    await mesh.settle();
    const again = await mesh.agent("alice", {}, mesh.crash(alice));
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(await textsAt(bob)).toEqual(["survivor"]);
    expect(membersAt(again, lab)).toEqual(["alice", "bob"]);
  });

  it("masters that run Mailroom are not asked every hour", async () => {
    for (let swarm = 0; swarm < 4; swarm++) {
      const { id } = await alice.agent.create(`Swarm ${swarm}`);
      await bob.agent.join(await alice.agent.invite(id));
    }
    const asked = () => mesh.calls.filter(({ from, url }) => from === "bob" && url.endsWith("/join")).length;
    // The first time this is unknown.
    await mesh.pass(2 * 3_600_000);
    const before = asked();
    await mesh.pass(24 * 3_600_000);
    expect(asked()).toBe(before);
  });
});
