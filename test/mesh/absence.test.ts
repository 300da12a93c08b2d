/** Members that were away, agents that crashed, and what is remembered for them: everybody agrees in the end. */
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

/** Carol joins, and bob never hears of it: the master's announcement gets lost for good. */
async function carolJoinsUnheard(lab: string): Promise<void> {
  mesh.foreign.set("bob.example.com", () => ({ status: 400, body: "{}" }));
  await carol.node.join(await alice.node.invite(lab));
  await mesh.settle();
  mesh.foreign.clear();
  expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
}

describe("members that were away", () => {
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
    expect(await textsAt(dave)).toEqual(["back again"]);
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
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
  });

  it("an unknown sender makes us ask the master, at most once a minute", async () => {
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
    // Whether he is in by now is not known, so that is no refusal.
    expect(await answersToDave()).toEqual([503, 503, 503]);
    expect(mesh.calls).toEqual([]);
    mesh.clock.jump(60_000);
    expect(await answersToDave()).toEqual([403, 503, 503]);
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://alice.example.com/swarm/join"]);
  });

  it("a member that missed everything for good finds out when it asks its masters, as servers do at their start", async () => {
    const lab = await mesh.swarm(alice, bob);
    await carolJoinsUnheard(lab);
    await bob.node.syncAll();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("a message whose answer was lost counts once, also when it is signed anew two days later", async () => {
    const lab = await mesh.swarm(alice, bob);
    let told = 0;
    bob.node.onMessage(() => {
      told += 1;
      mesh.down.add("bob.example.com");
    });
    await alice.node.send({ swarmId: lab, to: "bob", content: "pay once" });
    await mesh.pass(2 * DAY);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect(told).toBe(1);
    expect(await alice.store.mesh.sentCounts(lab)).toMatchObject({ sent: 0, failed: 0 });
  });

  it("replay records are forgotten when they no longer matter", async () => {
    const lab = await mesh.swarm(alice, bob);
    const message = alice.message({ swarm_id: lab });
    expect(await bob.answer(message)).toBe(200);
    expect(await bob.store.mesh.seen(lab, "alice", message.message_id)).toBe(true);
    await mesh.pass(17 * DAY);
    expect(await bob.store.mesh.seen(lab, "alice", message.message_id)).toBe(false);
    // It is too old to be taken again.
    expect(await bob.answer(message)).toBe(400);
  });

  it("what waits for a peer is bounded", async () => {
    const dave = await mesh.agent("dave", { maxWaiting: 2 });
    const lab = await mesh.swarm(dave, bob);
    mesh.down.add("bob.example.com");
    await dave.node.send({ swarmId: lab, content: "one" });
    await dave.node.send({ swarmId: lab, content: "two" });
    await expect(dave.node.send({ swarmId: lab, content: "three" })).rejects.toMatchObject({
      code: "overloaded",
    });
    // It keeps nobody from joining, the others from hearing, nor the master from kicking it.
    await carol.node.join(await dave.node.invite(lab));
    expect(await dave.node.send({ swarmId: lab, content: "three" })).toMatchObject({
      recipients: ["carol"],
      leftOut: ["bob"],
    });
    await dave.node.kick(lab, "bob");
    await mesh.settle();
    expect(membersAt(carol, lab)).toEqual(["carol", "dave"]);
    expect(await textsAt(carol)).toEqual(["three"]);
  });

  it("members behind one place that is full do not keep the others from hearing", async () => {
    const dave = await mesh.agent("dave", { maxWaiting: 3 });
    const lab = await mesh.swarm(dave, bob);
    for (const agentId of ["one", "other"]) {
      const endpoint = `https://away.example.com/${agentId}/swarm`;
      const member = { agentId, endpoint, publicKey: carol.pair.publicKey.text, joinedAt: 0 };
      await dave.node.core.commit([{ kind: "mesh.member.put", swarmId: lab, member }], lab);
    }
    await dave.node.send({ swarmId: lab, content: "first" });
    await mesh.settle();
    expect((await dave.node.send({ swarmId: lab, content: "second" })).leftOut).toEqual(["other"]);
    await mesh.settle();
    expect(await textsAt(bob)).toEqual(["second", "first"]);
  });

  it("who leaves and joins again is in, whatever of its leaving is still on its way", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("alice.example.com");
    await bob.node.send({ swarmId: lab, to: "alice", content: "are you there?" });
    await mesh.pass(2 * 3_600_000);
    mesh.down.clear();
    await bob.node.leave(lab);
    await bob.node.join(await alice.node.invite(lab));
    await mesh.pass(2 * 3_600_000);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
    expect(await bob.node.sync(lab)).toEqual({ conflicts: [] });
  });

  it("a kick by a new master reaches who was away, in whatever order what was missed comes", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dave = await mesh.agent("dave");
    await dave.node.join(await alice.node.invite(lab));
    await mesh.settle();
    mesh.down.add("carol.example.com");
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    await bob.node.kick(lab, "dave");
    await mesh.pass(3 * 3_600_000);
    // Carol is back, but alice, who has to tell her of the new master, is away for some minutes.
    mesh.down.clear();
    mesh.down.add("alice.example.com");
    await mesh.pass(1_800_000);
    mesh.down.clear();
    await mesh.pass(2 * DAY);
    expect(carol.node.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    expect(await bob.store.mesh.sentCounts(lab)).toMatchObject({ sent: 0, failed: 0 });
  });

  it("synchronising works with an invite that has expired, because it is signed", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(2 * 86_400_000);
    expect(await bob.node.sync(lab)).toEqual({ conflicts: [] });
    const expired = tokenOf(await alice.node.invite(lab, { lifetime: -1 }));
    const unsigned = await alice.post("/swarm/join", joinBody(bob, expired));
    expect([unsigned.status, bodyOf(unsigned).error?.code]).toEqual([401, "TOKEN_EXPIRED"]);
  });

  it("what was accepted before a crash is delivered after it, once", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await alice.node.send({ swarmId: lab, to: "bob", content: "survivor" });
    await mesh.settle();
    const again = await mesh.agent("alice", {}, mesh.crash(alice));
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(await textsAt(bob)).toEqual(["survivor"]);
    expect(membersAt(again, lab)).toEqual(["alice", "bob"]);
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
