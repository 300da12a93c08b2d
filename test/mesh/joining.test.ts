/** Checklist items 41, 44 and 46–50: making a swarm, and who gets in how, with the attacks of section 8 on joining. */
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
  it("[ASP-OPER-01] is told to nobody, and makes its creator the master and only member", async () => {
    mesh.calls.length = 0;
    const swarm = await alice.node.create("Lab", { requireApproval: true });
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
    await expect(alice.node.create("")).rejects.toMatchObject({ code: "invalid_name" });
    await expect(alice.node.create("x".repeat(257))).rejects.toMatchObject({ code: "invalid_name" });
  });
});

describe("joining", () => {
  it("[ASP-OPER-04, ASP-OPER-05] 41, 50. the joiner gets the whole record, the others a signed announcement with the key", async () => {
    const { id } = await alice.node.create("Lab");
    await bob.node.join(await alice.node.invite(id));
    const response = await alice.post("/swarm/join", joinBody(carol, tokenOf(await alice.node.invite(id))));
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

  it("50. the answer does not wait for dead members (8.21)", async () => {
    const lab = await mesh.swarm(alice, bob);
    let hangUp = () => {};
    const nothing = new Promise<{ status: number; body: string }>((resolve) => {
      hangUp = () => resolve({ status: 503, body: "" });
    });
    mesh.foreign.set("bob.example.com", () => nothing);
    await carol.node.join(await alice.node.invite(lab));
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.foreign.clear();
    hangUp();
    await mesh.pass(60_000);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("again changes nothing here: the swarm keeps its alias, unless another is asked for", async () => {
    const lab = await mesh.swarm(alice);
    const invite = await alice.node.invite(lab);
    expect(await bob.node.join(invite)).toMatchObject({ wasMember: false, swarm: { alias: "lab" } });
    const { joinedAt } = bob.node.swarm(lab);
    await mesh.pass(60_000);
    for (const url of [invite, await alice.node.invite(lab)])
      expect(await bob.node.join(url)).toMatchObject({ wasMember: true, swarm: { alias: "lab", joinedAt } });
    expect(await bob.node.join(invite, { alias: "den" })).toMatchObject({ swarm: { alias: "den" } });
    expect(await bob.node.join(invite, { alias: "den" })).toMatchObject({ swarm: { alias: "den" } });
    // The name that the operator chose stays, too.
    expect(await bob.node.join(invite)).toMatchObject({ wasMember: true, swarm: { alias: "den" } });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
  });

  it("under an alias that another swarm has is refused before the master is asked", async () => {
    await bob.node.create("Lab");
    const lab = await mesh.swarm(alice);
    const invite = await alice.node.invite(lab);
    await expect(bob.node.join(invite, { alias: "lab" })).rejects.toMatchObject({ code: "alias_taken" });
    expect(membersAt(alice, lab)).toEqual(["alice"]);
    await bob.node.join(invite);
    await expect(bob.node.join(invite, { alias: "lab" })).rejects.toMatchObject({ code: "alias_taken" });
    expect(bob.node.swarm(lab).alias).toBe("lab-2");
  });

  it("44. joining again with the same key changes nothing, with another key it is refused without the list (8.13)", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id, { maxUses: 2 }));
    await alice.post("/swarm/join", joinBody(bob, token));
    await mesh.settle();
    const notes = (await notesAt(alice)).length;
    expect((await alice.post("/swarm/join", joinBody(bob, token))).status).toBe(200);
    expect((await notesAt(alice)).length).toBe(notes);
    expect([...alice.node.swarm(id).invites.values()].map(({ uses }) => uses)).toEqual([1]);
    const response = await alice.post(
      "/swarm/join",
      joinBody(bob, token, { public_key: carol.pair.publicKey.text }),
    );
    expect(response.status).toBe(403);
    expect(response.body).not.toContain("members");
  });

  it("[ASP-OPER-09, ASP-ENDP-03] 46. with approval the request waits, is listed, and is accepted when it comes again", async () => {
    const { id } = await alice.node.create("Lab", { requireApproval: true });
    const url = await alice.node.invite(id, { maxUses: 1 });
    await expect(bob.node.join(url)).rejects.toMatchObject({ code: "pending" });
    expect(alice.node.pending(id)).toMatchObject([{ agentId: "bob", endpoint: bob.endpoint }]);
    // The use is reserved: nobody slips in between.
    await expect(carol.node.join(url)).rejects.toThrow(/TOKEN_EXHAUSTED/);
    await alice.node.approve(id, "bob");
    await bob.node.join(url);
    expect(membersAt(bob, id)).toEqual(["alice", "bob"]);
  });

  it("46. a rejected request is refused from then on, and gives its use back", async () => {
    const { id } = await alice.node.create("Lab", { requireApproval: true });
    const url = await alice.node.invite(id, { maxUses: 1 });
    await expect(bob.node.join(url)).rejects.toMatchObject({ code: "pending" });
    await alice.node.reject(id, "bob");
    await expect(bob.node.join(url)).rejects.toThrow(/NOT_AUTHORIZED/);
    await expect(carol.node.join(url)).rejects.toMatchObject({ code: "pending" });
    // Once: rejected again, bob's request gives nothing back.
    await expect(alice.node.reject(id, "bob")).rejects.toMatchObject({ code: "member_not_found" });
    const dave = await mesh.agent("dave");
    await expect(dave.node.join(url)).rejects.toThrow(/TOKEN_EXHAUSTED/);
    // Nor is it let in after all, when carol has taken its place.
    await alice.node.approve(id, "carol");
    await expect(alice.node.approve(id, "bob")).rejects.toMatchObject({ code: "invalid_invite" });
    expect(membersAt(alice, id)).toEqual(["alice", "carol"]);
  });

  it("47. a kicked agent cannot come back with its old invite, nor under another name with its key", async () => {
    const { id } = await alice.node.create("Lab");
    const url = await alice.node.invite(id);
    await bob.node.join(url);
    await alice.node.kick(id, "bob");
    await mesh.settle();
    await expect(bob.node.join(url)).rejects.toThrow(/NOT_AUTHORIZED/);
    expect(
      (await alice.post("/swarm/join", joinBody(bob, tokenOf(url), { agent_id: "robert" }))).status,
    ).toBe(403);
    await alice.node.unban(id, "bob");
    await bob.node.join(await alice.node.invite(id));
    expect(membersAt(alice, id)).toEqual(["alice", "bob"]);
  });

  it.each(["broadcast", "bobmessage", "a b", "x\u001b[2J"])("48. nobody joins as %j", async (agent_id) => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id));
    expect((await alice.post("/swarm/join", joinBody(bob, token, { agent_id }))).status).toBe(400);
  });

  it.each(["garbage", "", `AQ${"A".repeat(41)}=`])(
    "8.9: nobody joins with the key %j",
    async (public_key) => {
      const { id } = await alice.node.create("Lab");
      const token = tokenOf(await alice.node.invite(id));
      expect((await alice.post("/swarm/join", joinBody(bob, token, { public_key }))).status).toBe(400);
    },
  );

  it("8.10: nobody joins with another's endpoint", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id));
    const stolen = joinBody(carol, token, { endpoint: bob.endpoint });
    expect((await alice.post("/swarm/join", stolen)).status).toBe(403);
    const otherKey = joinBody(carol, token, { public_key: bob.pair.publicKey.text });
    expect((await alice.post("/swarm/join", otherKey)).status).toBe(403);
  });

  it("8.15: a joiner believes neither an answer about another swarm nor a master whose key did not sign", async () => {
    const { id } = await alice.node.create("Lab");
    const url = await alice.node.invite(id);
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
      await expect(bob.node.join(url)).rejects.toMatchObject({ code: "join_refused" });
      expect(bob.node.swarms).toEqual([]);
    }
    mesh.foreign.set("alice.example.com", () => answer({}));
    await bob.node.join(url);
    expect(membersAt(bob, id)).toEqual(["alice", "bob"]);
  });

  it("a message that comes before the answer to our join is asked to wait", async () => {
    const { id } = await alice.node.create("Lab");
    const url = await alice.node.invite(id);
    let early: number | undefined;
    mesh.foreign.set("alice.example.com", async () => {
      early = await bob.answer(alice.message({ swarm_id: id }));
      return { status: 500, body: "" };
    });
    await expect(bob.node.join(url)).rejects.toThrow();
    expect(early).toBe(503);
  });
});
