/** Creating a swarm, joining it, and attacks on joining. */
import { describe, expect, it } from "vitest";
import {
  type Agent,
  alice,
  bob,
  bodyOf,
  carol,
  forEachTest,
  joinBody,
  membersAt,
  mesh,
  notesAt,
  tokenOf,
} from "./harness.js";

forEachTest();

describe("creating", () => {
  it("[ASP-OPER-01] creating a swarm sends nothing and makes its creator the master and only member", async () => {
    mesh.calls.length = 0;
    const swarm = await alice.agent.create("Lab", { requireApproval: true });
    await mesh.settle();
    expect(mesh.calls).toEqual([]);
    expect(swarm).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      name: "Lab",
      master: "alice",
      settings: { allowMemberInvite: false, requireApproval: true },
    });
    expect([...swarm.members.values()]).toEqual([
      {
        agentId: "alice",
        endpoint: alice.endpoint,
        publicKey: alice.pair.publicKey.text,
        joinedAt: mesh.clock.now(),
      },
    ]);
    await expect(alice.agent.create("")).rejects.toMatchObject({ code: "invalid_name" });
    await expect(alice.agent.create("x".repeat(257))).rejects.toMatchObject({ code: "invalid_name" });
  });
});

describe("joining", () => {
  it("[ASP-OPER-04, ASP-OPER-05] the joining agent receives the whole record, the members a signed announcement with its key", async () => {
    const { id } = await alice.agent.create("Lab");
    await bob.agent.join(await alice.agent.invite(id));
    const response = await alice.post("/swarm/join", joinBody(carol, tokenOf(await alice.agent.invite(id))));
    expect(response.status).toBe(200);
    expect(bodyOf(response)).toMatchObject({
      status: "accepted",
      swarm_id: id,
      swarm_name: "Lab",
      members: [{ agent_id: "alice" }, { agent_id: "bob" }, { agent_id: "carol" }],
    });
    await mesh.settle();
    const [announcement] = mesh.calls
      .filter(({ url }) => url === "https://bob.example.com/swarm/message")
      .map(({ body }) => JSON.parse(body));
    expect(announcement.type).toBe("system");
    expect(JSON.parse(announcement.content)).toMatchObject({
      action: "member_joined",
      swarm_id: id,
      agent_id: "carol",
      endpoint: carol.endpoint,
      joined_at: expect.stringMatching(/Z$/),
      public_key: carol.pair.publicKey.text,
    });
    expect(membersAt(bob, id)).toEqual(["alice", "bob", "carol"]);
  });

  it("the response to a join does not wait for unreachable members", async () => {
    const lab = await mesh.swarm(alice, bob);
    let hangUp = () => {};
    const nothing = new Promise<{ status: number; body: string }>((resolve) => {
      hangUp = () => resolve({ status: 503, body: "" });
    });
    mesh.foreign.set("bob.example.com", () => nothing);
    await carol.agent.join(await alice.agent.invite(lab));
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.foreign.clear();
    hangUp();
    await mesh.pass(60_000);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("joining again changes nothing: the swarm keeps its alias unless another is given", async () => {
    const lab = await mesh.swarm(alice);
    const invite = await alice.agent.invite(lab);
    expect(await bob.agent.join(invite)).toMatchObject({ wasMember: false, swarm: { alias: "lab" } });
    const { joinedAt } = bob.agent.swarm(lab);
    await mesh.pass(60_000);
    for (const url of [invite, await alice.agent.invite(lab)])
      expect(await bob.agent.join(url)).toMatchObject({ wasMember: true, swarm: { alias: "lab", joinedAt } });
    expect(await bob.agent.join(invite, { alias: "den" })).toMatchObject({ swarm: { alias: "den" } });
    expect(await bob.agent.join(invite, { alias: "den" })).toMatchObject({ swarm: { alias: "den" } });
    // The alias that the operator chose is also kept.
    expect(await bob.agent.join(invite)).toMatchObject({ wasMember: true, swarm: { alias: "den" } });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
  });

  it("joining under the alias of another swarm is refused before the master is asked", async () => {
    await bob.agent.create("Lab");
    const lab = await mesh.swarm(alice);
    const invite = await alice.agent.invite(lab);
    await expect(bob.agent.join(invite, { alias: "lab" })).rejects.toMatchObject({ code: "alias_taken" });
    expect(membersAt(alice, lab)).toEqual(["alice"]);
    await bob.agent.join(invite);
    await expect(bob.agent.join(invite, { alias: "lab" })).rejects.toMatchObject({ code: "alias_taken" });
    expect(bob.agent.swarm(lab).alias).toBe("lab-2");
  });

  it("joining again with the same key changes nothing; with another key it is refused without the member list", async () => {
    const { id } = await alice.agent.create("Lab");
    const token = tokenOf(await alice.agent.invite(id, { maxUses: 2 }));
    await alice.post("/swarm/join", joinBody(bob, token));
    await mesh.settle();
    const notes = (await notesAt(alice)).length;
    expect((await alice.post("/swarm/join", joinBody(bob, token))).status).toBe(200);
    expect((await notesAt(alice)).length).toBe(notes);
    expect([...alice.agent.swarm(id).invites.values()].map(({ uses }) => uses)).toEqual([1]);
    const response = await alice.post(
      "/swarm/join",
      joinBody(bob, token, { public_key: carol.pair.publicKey.text }),
    );
    expect(response.status).toBe(403);
    expect(response.body).not.toContain("members");
  });

  it("[ASP-OPER-09, ASP-ENDP-03] with approval a request is pending, is listed, and is accepted when repeated after the approval", async () => {
    const { id } = await alice.agent.create("Lab", { requireApproval: true });
    const url = await alice.agent.invite(id, { maxUses: 1 });
    await expect(bob.agent.join(url)).rejects.toMatchObject({ code: "pending" });
    expect(alice.agent.pending(id)).toMatchObject([{ agentId: "bob", endpoint: bob.endpoint }]);
    // The use is reserved, so no other agent can take it in between.
    await expect(carol.agent.join(url)).rejects.toThrow(/TOKEN_EXHAUSTED/);
    await alice.agent.approve(id, "bob");
    await bob.agent.join(url);
    expect(membersAt(bob, id)).toEqual(["alice", "bob"]);
  });

  it("a rejected request stays refused and releases its use of the invite", async () => {
    const { id } = await alice.agent.create("Lab", { requireApproval: true });
    const url = await alice.agent.invite(id, { maxUses: 1 });
    await expect(bob.agent.join(url)).rejects.toMatchObject({ code: "pending" });
    await alice.agent.reject(id, "bob");
    await expect(bob.agent.join(url)).rejects.toThrow(/NOT_AUTHORIZED/);
    await expect(carol.agent.join(url)).rejects.toMatchObject({ code: "pending" });
    // Only once: rejecting bob's request again releases nothing.
    await expect(alice.agent.reject(id, "bob")).rejects.toMatchObject({ code: "member_not_found" });
    const dave = await mesh.agent("dave");
    await expect(dave.agent.join(url)).rejects.toThrow(/TOKEN_EXHAUSTED/);
    // It cannot be approved later, after carol used the invite.
    await alice.agent.approve(id, "carol");
    await expect(alice.agent.approve(id, "bob")).rejects.toMatchObject({ code: "invalid_invite" });
    expect(membersAt(alice, id)).toEqual(["alice", "carol"]);
  });

  it("a kicked agent cannot return with its old invite, nor under another id with its key", async () => {
    const { id } = await alice.agent.create("Lab");
    const url = await alice.agent.invite(id);
    await bob.agent.join(url);
    await alice.agent.kick(id, "bob");
    await mesh.settle();
    await expect(bob.agent.join(url)).rejects.toThrow(/NOT_AUTHORIZED/);
    expect(
      (await alice.post("/swarm/join", joinBody(bob, tokenOf(url), { agent_id: "robert" }))).status,
    ).toBe(403);
    await alice.agent.unban(id, "bob");
    await bob.agent.join(await alice.agent.invite(id));
    expect(membersAt(alice, id)).toEqual(["alice", "bob"]);
  });

  it.each(["broadcast", "bobmessage", "a b", "x\u001b[2J"])(
    "the agent id %j cannot join",
    async (agent_id) => {
      const { id } = await alice.agent.create("Lab");
      const token = tokenOf(await alice.agent.invite(id));
      expect((await alice.post("/swarm/join", joinBody(bob, token, { agent_id }))).status).toBe(400);
    },
  );

  it.each(["garbage", "", `AQ${"A".repeat(41)}=`])("the key %j cannot join", async (public_key) => {
    const { id } = await alice.agent.create("Lab");
    const token = tokenOf(await alice.agent.invite(id));
    expect((await alice.post("/swarm/join", joinBody(bob, token, { public_key }))).status).toBe(400);
  });

  it("an agent cannot join with another agent's endpoint", async () => {
    const { id } = await alice.agent.create("Lab");
    const token = tokenOf(await alice.agent.invite(id));
    const stolen = joinBody(carol, token, { endpoint: bob.endpoint });
    expect((await alice.post("/swarm/join", stolen)).status).toBe(403);
    const otherKey = joinBody(carol, token, { public_key: bob.pair.publicKey.text });
    expect((await alice.post("/swarm/join", otherKey)).status).toBe(403);
  });

  it("a joining agent rejects a response about another swarm, and a master whose key did not sign the invite", async () => {
    const { id } = await alice.agent.create("Lab");
    const url = await alice.agent.invite(id);
    const listed = ({ name, endpoint, pair }: Agent) => ({
      agent_id: name,
      endpoint,
      public_key: pair.publicKey.text,
    });
    const answer = (fields: object) => ({
      status: 200,
      body: JSON.stringify({
        status: "accepted",
        swarm_id: id,
        swarm_name: "Lab",
        members: [listed(alice), listed(bob)],
        ...fields,
      }),
    });
    const wrong = [
      { swarm_id: crypto.randomUUID() },
      { members: [] },
      { members: [listed(alice)] },
      { members: [listed(bob)] },
      { members: [listed({ ...alice, pair: carol.pair }), listed(bob)] },
      { members: [listed({ ...alice, endpoint: "https://evil.example" }), listed(bob)] },
      { members: [listed(alice), listed({ ...bob, pair: carol.pair })] },
    ];
    for (const fields of wrong) {
      mesh.foreign.set("alice.example.com", () => answer(fields));
      await expect(bob.agent.join(url)).rejects.toMatchObject({ code: "join_refused" });
      expect(bob.agent.swarms).toEqual([]);
    }
    mesh.foreign.set("alice.example.com", () => answer({}));
    await bob.agent.join(url);
    expect(membersAt(bob, id)).toEqual(["alice", "bob"]);
  });

  it("a message that arrives before the response to a join is asked to retry", async () => {
    const { id } = await alice.agent.create("Lab");
    const url = await alice.agent.invite(id);
    let early: number | undefined;
    mesh.foreign.set("alice.example.com", async () => {
      early = await bob.answer(alice.message({ swarm_id: id }));
      return { status: 500, body: "" };
    });
    await expect(bob.agent.join(url)).rejects.toThrow();
    expect(early).toBe(503);
  });
});

it("[MESH-M-11] a swarm admits 10,000 members: the next one is rejected, and nothing is announced", async () => {
  const { id } = await alice.agent.create("Lab");
  await bob.agent.join(await alice.agent.invite(id));
  const { members } = alice.agent.context.view.swarms.get(id) ?? {};
  if (members === undefined) throw new Error("no swarm");
  const { endpoint, publicKey, joinedAt } = alice.agent.context.self;
  for (let count = members.size; count < 10_000; count += 1) {
    members.set(`member-${count}`, { agentId: `member-${count}`, endpoint, publicKey, joinedAt });
  }
  await expect(carol.agent.join(await alice.agent.invite(id))).rejects.toMatchObject({
    code: "join_refused",
    message: expect.stringContaining("10000 members, which is the limit"),
  });
  expect(members.size).toBe(10_000);
  // The list of a full swarm can be read.
  await bob.agent.sync(id);
  expect(bob.agent.swarm(id).members.size).toBe(10_000);
});
