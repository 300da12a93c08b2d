/** Which members can announce changes of a swarm, and the effects: kicks, transfers, mutes and event records. */
import { beforeEach, describe, expect, it } from "vitest";
import { gate } from "../kit/waiting.js";
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
  ])("$action of $agent_id by an ordinary member is refused", async (content) => {
    const response = await bob.post("/swarm/message", system(carol, lab, content));
    expect(response.status).toBe(403);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(bob.agent.swarm(lab).master).toBe("alice");
  });

  it("even a message signed by the master cannot remove the master", async () => {
    for (const action of ["member_kicked", "member_left"]) {
      expect(await bob.answer(system(alice, lab, { action, agent_id: "alice" }))).toBe(403);
    }
  });

  it("a leave message replayed after a new join has no effect", async () => {
    mesh.calls.length = 0;
    await carol.agent.leave(lab);
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    const leave = mesh.calls.find(({ url }) => url.includes("bob.example.com"))?.body ?? "";
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(await bob.answer(leave)).toBe(200);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("an announcement of the reference, without headers and key, adds the member after its info was fetched", async () => {
    const dave = await mesh.agent("dave");
    const content = `{"type": "system", "action": "member_joined", "swarm_id": "${lab}", "agent_id": "dave", "endpoint": "${dave.endpoint}", "joined_at": "2026-11-16T11:59:00.601Z"}`;
    const message = alice.message({ swarm_id: lab, type: "system", content });
    expect(await bob.answer(message)).toBe(200);
    expect(bob.agent.swarm(lab).members.get("dave")?.publicKey).toBe(dave.pair.publicKey.text);
    const ghost = content.replaceAll("dave", "ghost");
    expect(await bob.answer(alice.message({ swarm_id: lab, type: "system", content: ghost }))).toBe(200);
    expect(bob.agent.swarm(lab).members.has("ghost")).toBe(false);
    expect(await notesAt(bob)).toContainEqual(
      expect.objectContaining({ action: "member_joined", agent_id: "dave", initiated_by: "alice" }),
    );
  });

  it("fetching a new member's info delays nothing else", async () => {
    const asked = gate();
    const answered = gate();
    mesh.foreign.set("slow.example.com", async () => {
      asked.open();
      await answered.passed;
      return { status: 503, body: "" };
    });
    const joined = { action: "member_joined", agent_id: "slow", endpoint: "https://slow.example.com/swarm" };
    const taken = bob.answer(system(alice, lab, joined));
    await asked.passed;
    const den = await bob.agent.create("Den");
    await carol.agent.join(await bob.agent.invite(den.id));
    expect(membersAt(bob, den.id)).toEqual(["bob", "carol"]);
    answered.open();
    expect(await taken).toBe(200);
    expect(bob.agent.swarm(lab).members.has("slow")).toBe(false);
  });

  it("a kicked agent stays out under the next master until that master admits it again", async () => {
    await alice.agent.kick(lab, "carol");
    await mesh.settle();
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    const invite = await bob.agent.invite(lab);
    await expect(carol.agent.join(invite)).rejects.toThrow(/NOT_AUTHORIZED/);
    await bob.agent.unban(lab, "carol");
    await carol.agent.join(invite);
    await mesh.settle();
    await bob.agent.transfer(lab, "alice");
    await mesh.settle();
    await carol.agent.leave(lab);
    await mesh.settle();
    // Alice received that the ban has ended.
    await carol.agent.join(await alice.agent.invite(lab));
    expect(membersAt(alice, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("[ASP-OURS-05] an announcement never replaces a known key", async () => {
    const content = {
      action: "member_joined",
      agent_id: "carol",
      endpoint: "https://evil.example.com",
      public_key: alice.pair.publicKey.text,
    };
    await bob.post("/swarm/message", system(alice, lab, content));
    expect(bob.agent.swarm(lab).members.get("carol")).toMatchObject({
      endpoint: carol.endpoint,
      publicKey: carol.pair.publicKey.text,
    });
  });

  it("[ASP-OPER-07] a kick with quotes in its reason is valid JSON, and removes an unreachable member", async () => {
    mesh.down.add("carol.example.com");
    mesh.calls.length = 0;
    await alice.agent.kick(lab, "carol", 'said "hi"\n{"action":"x"}');
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
    // When it returns it is notified and removes the swarm.
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(carol.agent.swarms).toEqual([]);
  });

  it("[ASP-OPER-08] after a transfer the new master decides, the old invites are invalid, and all members agree", async () => {
    const old = await alice.agent.invite(lab);
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    for (const agent of [alice, bob, carol]) expect(agent.agent.swarm(lab).master).toBe("bob");
    const dave = await mesh.agent("dave");
    await expect(dave.agent.join(old)).rejects.toThrow(/NOT_MASTER/);
    await expect(alice.agent.invite(lab)).rejects.toMatchObject({ code: "not_allowed" });
    await expect(alice.agent.kick(lab, "carol")).rejects.toMatchObject({ code: "not_master" });
    await dave.agent.join(await bob.agent.invite(lab));
    await bob.agent.kick(lab, "carol");
    await mesh.settle();
    for (const agent of [alice, bob, dave]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "dave"]);
    await alice.agent.leave(lab);
    await mesh.settle();
    expect(membersAt(bob, lab)).toEqual(["bob", "dave"]);
  });

  it("a transfer to an unreachable agent takes effect when it returns; a member that was unreachable follows", async () => {
    mesh.down.add("bob.example.com");
    await alice.agent.transfer(lab, "bob");
    await mesh.pass(10_000);
    expect(alice.agent.swarm(lab).master).toBe("alice");
    mesh.down.clear();
    mesh.down.add("carol.example.com");
    await mesh.pass(120_000);
    expect([alice, bob].map(({ agent }) => agent.swarm(lab).master)).toEqual(["bob", "bob"]);
    expect(carol.agent.swarm(lab).master).toBe("alice");
    // The new master's first operation overtakes the announcement of its mastership.
    mesh.down.clear();
    await bob.agent.kick(lab, "alice");
    await mesh.pass(3_600_000);
    expect(carol.agent.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toEqual(["bob", "carol"]);
    expect(alice.agent.swarms).toEqual([]);
  });

  it("the master cannot leave, but can dissolve the swarm", async () => {
    await expect(alice.agent.leave(lab)).rejects.toMatchObject({ code: "is_master" });
    await alice.agent.dissolve(lab, "done");
    await mesh.settle();
    for (const agent of [alice, bob, carol]) expect(agent.agent.swarms).toEqual([]);
  });

  it.each(["agent", "swarm"] as const)(
    "[ASP-SECU-04, ASP-STAT-03] a message of a muted %s gets the usual response and is not stored",
    async (of) => {
      await bob.agent.mute(of, of === "agent" ? "carol" : lab, "noise");
      const woken: string[] = [];
      bob.agent.onMessage(({ messageId }) => woken.push(messageId));
      const message = carol.message({ swarm_id: lab });
      const response = await bob.post("/swarm/message", message);
      expect([response.status, bodyOf(response)]).toEqual([
        200,
        { status: "queued", message_id: message.message_id },
      ]);
      expect(await bob.store.mesh.byMessageId(message.message_id)).toBeUndefined();
      expect(woken).toEqual([]);
      // Mutes concern messages, not membership.
      await bob.post("/swarm/message", system(carol, lab, { action: "member_left", agent_id: "carol" }));
      expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
      // A message sent during the mute cannot be replayed after it.
      expect(await bob.agent.unmute(of, of === "agent" ? "carol" : lab)).toBe(true);
      await carol.agent.leave(lab);
      await carol.agent.join(await alice.agent.invite(lab));
      await mesh.settle();
      await bob.post("/swarm/message", message);
      expect(await bob.store.mesh.byMessageId(message.message_id)).toBeUndefined();
    },
  );

  it("a message of a muted agent costs one commit, like any other, so that its sender cannot detect the mute", async () => {
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
    await bob.agent.mute("agent", "carol");
    expect([unmuted, await costOf()]).toEqual([1, 1]);
  });

  it("[ASP-OPER-11, ASP-OPER-12] five kinds of lifecycle events are recorded, and a failing record fails no operation", async () => {
    await alice.agent.mute("agent", "bob", "loud");
    await alice.agent.unmute("agent", "bob");
    await carol.agent.leave(lab);
    await mesh.settle();
    await alice.agent.kick(lab, "bob", "gone");
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
    await alice.agent.mute("agent", "x");
    await alice.agent.mute("swarm", lab);
    expect(alice.agent.context.view.mutedSwarms.has(lab)).toBe(true);
    expect(alice.problems.map(({ code }) => code)).toContain("mesh_note_failed");
  });
});
