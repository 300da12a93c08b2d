/** Checklist items 51–59: who may announce what about a swarm, and what follows: kicks, transfers, mutes and notes. */
import { beforeEach, describe, expect, it } from "vitest";
import { alice, bob, bodyOf, carol, forEachTest, membersAt, mesh, notesAt, system } from "./harness.js";

forEachTest();

describe("lifecycle", () => {
  let lab: string;
  beforeEach(async () => {
    lab = await mesh.swarm(alice, bob, carol);
  });

  it.each([
    {
      action: "member_joined",
      agent_id: "eve",
      endpoint: "https://eve.example.com",
      public_key: "IVL40Zt5HSRFMkLhXy6rbLfP+ntqXtMAl5YOBpiB2xI=",
    },
    { action: "member_kicked", agent_id: "alice" },
    { action: "member_kicked", agent_id: "bob" },
    { action: "kicked", agent_id: "bob" },
    { action: "master_changed", new_master: "carol", agent_id: "carol" },
    { action: "master_transfer", new_master: "bob", agent_id: "bob" },
    { action: "swarm_dissolved", agent_id: "carol" },
    { action: "member_left", agent_id: "alice" },
  ])("51, 52, 55. $action of $agent_id by a mere member is refused (8.6)", async (content) => {
    const response = await bob.post("/swarm/message", system(carol, lab, content));
    expect(response.status).toBe(403);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(bob.node.swarm(lab).master).toBe("alice");
  });

  it("8.6: even the master's key cannot remove the master", async () => {
    for (const action of ["member_kicked", "member_left"]) {
      expect(await bob.answer(system(alice, lab, { action, agent_id: "alice" }))).toBe(403);
    }
  });

  it("52. an old leave that is replayed after a new join has no effect (8.4)", async () => {
    mesh.calls.length = 0;
    await carol.node.leave(lab);
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    const leave = mesh.calls.find(({ url }) => url.includes("bob.example.com"))?.body ?? "";
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(await bob.answer(leave)).toBe(200);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("53. a reference announcement, without headers and key, adds the member after a look at its info", async () => {
    const dave = await mesh.agent("dave");
    const content = `{"type": "system", "action": "member_joined", "swarm_id": "${lab}", "agent_id": "dave", "endpoint": "${dave.endpoint}", "joined_at": "2026-11-16T11:59:00.601Z"}`;
    const message = alice.message({ swarm_id: lab, type: "system", content });
    expect(await bob.answer(message)).toBe(200);
    expect(bob.node.swarm(lab).members.get("dave")?.publicKey).toBe(dave.pair.publicKey.text);
    const ghost = content.replaceAll("dave", "ghost");
    expect(await bob.answer(alice.message({ swarm_id: lab, type: "system", content: ghost }))).toBe(200);
    expect(bob.node.swarm(lab).members.has("ghost")).toBe(false);
    expect(await notesAt(bob)).toContainEqual(
      expect.objectContaining({ action: "member_joined", agent_id: "dave", initiated_by: "alice" }),
    );
  });

  it("while a new member's info is waited for, nothing else has to wait", async () => {
    let answerOf: (answer: { status: number; body: string }) => void = () => undefined;
    mesh.foreign.set(
      "slow.example.com",
      () =>
        new Promise((resolve) => {
          answerOf = resolve;
        }),
    );
    const joined = { action: "member_joined", agent_id: "slow", endpoint: "https://slow.example.com/swarm" };
    const taken = bob.answer(system(alice, lab, joined));
    const den = await bob.node.create("Den");
    await carol.node.join(await bob.node.invite(den.id));
    expect(membersAt(bob, den.id)).toEqual(["bob", "carol"]);
    answerOf({ status: 503, body: "" });
    expect(await taken).toBe(200);
    expect(bob.node.swarm(lab).members.has("slow")).toBe(false);
  });

  it("47. who was kicked stays out under the next master, until that one has let it in again", async () => {
    await alice.node.kick(lab, "carol");
    await mesh.settle();
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    const invite = await bob.node.invite(lab);
    await expect(carol.node.join(invite)).rejects.toThrow(/NOT_AUTHORIZED/);
    await bob.node.unban(lab, "carol");
    await carol.node.join(invite);
    await mesh.settle();
    await bob.node.transfer(lab, "alice");
    await mesh.settle();
    await carol.node.leave(lab);
    await mesh.settle();
    // Alice has heard that the ban is over.
    await carol.node.join(await alice.node.invite(lab));
    expect(membersAt(alice, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("[ASP-OURS-05] 8.8: an announcement never replaces a key that is known", async () => {
    const content = {
      action: "member_joined",
      agent_id: "carol",
      endpoint: "https://evil.example.com",
      public_key: alice.pair.publicKey.text,
    };
    await bob.post("/swarm/message", system(alice, lab, content));
    expect(bob.node.swarm(lab).members.get("carol")).toMatchObject({
      endpoint: carol.endpoint,
      publicKey: carol.pair.publicKey.text,
    });
  });

  it("[ASP-OPER-07] 54. a kick with quotes in its reason is valid JSON, and an unreachable target is out all the same (8.22)", async () => {
    mesh.down.add("carol.example.com");
    mesh.calls.length = 0;
    await alice.node.kick(lab, "carol", 'said "hi"\n{"action":"x"}');
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    const told = mesh.calls.find(({ url }) => url.includes("bob"))?.body ?? "{}";
    expect(JSON.parse(JSON.parse(told).content)).toEqual({
      action: "member_kicked",
      agent_id: "carol",
      reason: 'said "hi"\n{"action":"x"}',
    });
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(403);
    // When it is back it is told, and forgets the swarm.
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(carol.node.swarms).toEqual([]);
  });

  it("[ASP-OPER-08] 56. after a transfer the new master rules, the old invites are dead, and all agree", async () => {
    const old = await alice.node.invite(lab);
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    for (const agent of [alice, bob, carol]) expect(agent.node.swarm(lab).master).toBe("bob");
    const dave = await mesh.agent("dave");
    await expect(dave.node.join(old)).rejects.toThrow(/NOT_MASTER/);
    await expect(alice.node.invite(lab)).rejects.toMatchObject({ code: "not_allowed" });
    await expect(alice.node.kick(lab, "carol")).rejects.toMatchObject({ code: "not_master" });
    await dave.node.join(await bob.node.invite(lab));
    await bob.node.kick(lab, "carol");
    await mesh.settle();
    for (const agent of [alice, bob, dave]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "dave"]);
    await alice.node.leave(lab);
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["bob", "dave"]);
  });

  it("56. a transfer to an agent that is away takes effect when it is back; a member that was away follows", async () => {
    mesh.down.add("bob.example.com");
    await alice.node.transfer(lab, "bob");
    await mesh.pass(10_000);
    expect(alice.node.swarm(lab).master).toBe("alice");
    mesh.down.clear();
    mesh.down.add("carol.example.com");
    await mesh.pass(120_000);
    expect([alice, bob].map(({ node }) => node.swarm(lab).master)).toEqual(["bob", "bob"]);
    expect(carol.node.swarm(lab).master).toBe("alice");
    // The new master's first act overtakes the news of its mastership.
    mesh.down.clear();
    await bob.node.kick(lab, "alice");
    await mesh.pass(3_600_000);
    expect(carol.node.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toEqual(["bob", "carol"]);
    expect(alice.node.swarms).toEqual([]);
  });

  it("57. the master cannot leave, but can dissolve", async () => {
    await expect(alice.node.leave(lab)).rejects.toMatchObject({ code: "is_master" });
    await alice.node.dissolve(lab, "done");
    await mesh.settle();
    for (const agent of [alice, bob, carol]) expect(agent.node.swarms).toEqual([]);
  });

  it.each(["agent", "swarm"] as const)(
    "[ASP-SECU-04, ASP-STAT-03] 58. what a muted %s says is answered like anything else and leaves nothing",
    async (of) => {
      await bob.node.mute(of, of === "agent" ? "carol" : lab, "noise");
      const woken: string[] = [];
      bob.node.onMessage(({ messageId }) => woken.push(messageId));
      const message = carol.message({ swarm_id: lab });
      const response = await bob.post("/swarm/message", message);
      expect([response.status, bodyOf(response)]).toEqual([
        200,
        { status: "queued", message_id: message.message_id },
      ]);
      expect(await bob.store.mesh.byMessageId(message.message_id)).toBeUndefined();
      expect(woken).toEqual([]);
      // A mute is about noise, not about membership.
      await bob.post("/swarm/message", system(carol, lab, { action: "member_left", agent_id: "carol" }));
      expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
      // And what was said under the mute cannot be replayed after it.
      expect(await bob.node.unmute(of, of === "agent" ? "carol" : lab)).toBe(true);
      await carol.node.leave(lab);
      await carol.node.join(await alice.node.invite(lab));
      await mesh.settle();
      await bob.post("/swarm/message", message);
      expect(await bob.store.mesh.byMessageId(message.message_id)).toBeUndefined();
    },
  );

  it("58. what a muted agent says costs what anything else costs, so that its sender cannot tell: one commit", async () => {
    const { store } = bob;
    const commit = store.commit.bind(store);
    let commits = 0;
    store.commit = (batch) => {
      commits += 1;
      return commit(batch);
    };
    const costOf = async (): Promise<number> => {
      const before = commits;
      expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(200);
      return commits - before;
    };
    const unmuted = await costOf();
    await bob.node.mute("agent", "carol");
    expect([unmuted, await costOf()]).toEqual([1, 1]);
  });

  it("[ASP-OPER-11, ASP-OPER-12] 59. five kinds of lifecycle notes appear, and one that cannot be stored fails nothing", async () => {
    await alice.node.mute("agent", "bob", "loud");
    await alice.node.unmute("agent", "bob");
    await carol.node.leave(lab);
    await mesh.settle();
    await alice.node.kick(lab, "bob", "gone");
    const notes = await notesAt(alice);
    expect(new Set(notes.map(({ action }) => action))).toEqual(
      new Set(["member_joined", "member_muted", "member_unmuted", "member_left", "member_kicked"]),
    );
    expect(notes.find(({ action }) => action === "member_kicked")).toEqual({
      type: "system",
      action: "member_kicked",
      swarm_id: lab,
      agent_id: "bob",
      initiated_by: "alice",
      reason: "gone",
    });
    const commit = alice.store.commit.bind(alice.store);
    alice.store.commit = (batch) =>
      batch.rows?.length === 1 && batch.rows[0]?.kind === "mesh.queue.put"
        ? Promise.reject(new Error("disk full"))
        : commit(batch);
    await alice.node.mute("agent", "x");
    await alice.node.mute("swarm", lab);
    expect(alice.node.core.view.mutedSwarms.has(lab)).toBe(true);
    expect(alice.problems.map(({ code }) => code)).toContain("mesh_note_failed");
  });
});
