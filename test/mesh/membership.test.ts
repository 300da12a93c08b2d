/** Checklist items 41–59 and 62–64, with the attacks of section 8 that aim at membership, invites and keys. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { signInvite } from "../../src/mesh/invite/token.js";
import { rotationText } from "../../src/mesh/membership/rotation.js";
import { signDraft } from "../../src/mesh/message/build.js";
import { type Agent, bodyOf, Mesh } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let carol: Agent;

beforeEach(async () => {
  mesh = new Mesh();
  alice = await mesh.agent("alice");
  bob = await mesh.agent("bob");
  carol = await mesh.agent("carol");
});
afterEach(() => mesh.close());

const tokenOf = (url: string): string => url.split("token=")[1] ?? "";
const joinBody = (agent: Agent, token: string, sender: Record<string, string> = {}) => ({
  type: "system",
  action: "join_request",
  invite_token: token,
  sender: {
    agent_id: agent.name,
    endpoint: agent.endpoint,
    public_key: agent.pair.publicKey.text,
    ...sender,
  },
});
const membersAt = (agent: Agent, swarmId: string): string[] =>
  [...agent.node.swarm(swarmId).members.keys()].sort();
const system = (agent: Agent, swarm_id: string, content: unknown, fields = {}) =>
  agent.message({ swarm_id, type: "system", content: JSON.stringify(content), ...fields });
const notesAt = async (agent: Agent) =>
  (await agent.store.mesh.inbox({ limit: 100 }))
    .filter(({ recipientId }) => recipientId === undefined)
    .map(({ content }) => JSON.parse(content));

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
    expect(bodyOf(response)).toMatchObject({ status: "accepted", swarm_id: id, swarm_name: "Lab" });
    expect(
      (bodyOf(response).members as { agent_id: string }[]).map(({ agent_id }) => agent_id).sort(),
    ).toEqual(["alice", "bob", "carol"]);
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
    mesh.down.add("bob.example.com");
    await carol.node.join(await alice.node.invite(lab));
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.down.clear();
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

  it("[ASP-OPER-03] 42. a single-use invite admits one of twenty who come at once (8.11)", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id, { maxUses: 1 }));
    const joiners = Array.from({ length: 20 }, (_, index) => {
      const pair = keyPairFromSeed(Buffer.alloc(32, index + 1));
      const sender = {
        agent_id: `joiner-${index}`,
        endpoint: `https://j${index}.example.com`,
        public_key: pair.publicKey.text,
      };
      return alice.post("/swarm/join", joinBody(bob, token, sender), {}, `198.51.100.${index}`);
    });
    const answers = (await Promise.all(joiners)).map((response) => [
      response.status,
      bodyOf(response).error?.code,
    ]);
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1);
    expect(answers.filter(([, code]) => code === "TOKEN_EXHAUSTED")).toHaveLength(19);
    expect(membersAt(alice, id)).toHaveLength(2);
  });

  it("42. the store itself refuses a use too many, and takes the member that came with it back", async () => {
    const { id } = await alice.node.create("Lab");
    const invite = { key: "k", swarmId: id, maxUses: 1, createdAt: 0 };
    const admit = (agent: Agent) => {
      const member = { ...agent.node.core.self, agentId: agent.name };
      const rows = [
        { kind: "mesh.invite.use", invite },
        { kind: "mesh.member.put", swarmId: id, member },
      ];
      return alice.store.commit({ appends: [], rows });
    };
    const answers = await Promise.allSettled([admit(bob), admit(carol)]);
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    await alice.node.core.load();
    expect(membersAt(alice, id)).toEqual(["alice", "bob"]);
  });

  it("43. another spelling of a token is no second token (8.12)", async () => {
    const { id } = await alice.node.create("Lab");
    const token = tokenOf(await alice.node.invite(id, { maxUses: 1 }));
    expect((await alice.post("/swarm/join", joinBody(bob, `${token}==`))).status).toBe(400);
    expect((await alice.post("/swarm/join", joinBody(bob, token))).status).toBe(200);
    expect((await alice.post("/swarm/join", joinBody(carol, token))).status).toBe(403);
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

  it("[ASP-ENDP-05, ASP-ENDP-06, ASP-ENDP-07] 45. the wrong place, swarm, time, algorithm and signer each have their answer (8.14)", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.node.invite(lab));
    const at = async (agent: Agent, invite: string) => {
      const response = await agent.post("/swarm/join", joinBody(carol, invite));
      return [response.status, bodyOf(response).error?.code];
    };
    expect(await at(bob, token)).toEqual([403, "NOT_MASTER"]);
    expect(await at(carol, token)).toEqual([404, "SWARM_NOT_FOUND"]);
    const short = tokenOf(await alice.node.invite(lab, { lifetime: 1_000 }));
    mesh.clock.jump(1_001);
    expect(await at(alice, short)).toEqual([401, "TOKEN_EXPIRED"]);
    const [, payload = "", signature = ""] = token.split(".");
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${payload}.${signature}`;
    expect(await at(alice, none)).toEqual([400, "INVALID_TOKEN"]);
    const forged = signInvite(
      {
        swarmId: lab,
        master: "alice",
        endpoint: alice.endpoint,
        issuedAt: Math.floor(mesh.clock.now() / 1_000),
      },
      carol.pair,
    );
    expect(await at(alice, forged)).toEqual([401, "INVALID_SIGNATURE"]);
    const revoked = await alice.node.invite(lab);
    await alice.node.revoke(lab, revoked);
    expect(await at(alice, tokenOf(revoked))).toEqual([403, "NOT_AUTHORIZED"]);
    expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
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
    const answer = (fields: object) => ({
      status: 200,
      body: JSON.stringify({
        status: "accepted",
        swarm_id: id,
        swarm_name: "Lab",
        members: [
          { agent_id: "alice", endpoint: alice.endpoint, public_key: alice.pair.publicKey.text },
          { agent_id: "bob", endpoint: bob.endpoint, public_key: bob.pair.publicKey.text },
        ],
        ...fields,
      }),
    });
    const wrong = [
      { swarm_id: crypto.randomUUID() },
      { members: [] },
      {
        members: [
          { agent_id: "alice", endpoint: alice.endpoint, public_key: carol.pair.publicKey.text },
          { agent_id: "bob", endpoint: bob.endpoint, public_key: bob.pair.publicKey.text },
        ],
      },
      {
        members: [
          { agent_id: "alice", endpoint: "https://evil.example", public_key: alice.pair.publicKey.text },
        ],
      },
      { members: [{ agent_id: "alice", endpoint: alice.endpoint, public_key: alice.pair.publicKey.text }] },
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

  it("[ASP-OPER-10, ASP-SECU-03] members may invite where the swarm allows it, and nowhere else", async () => {
    const open = await alice.node.create("Open", { allowMemberInvite: true });
    await bob.node.join(await alice.node.invite(open.id));
    await carol.node.join(await bob.node.invite(open.id));
    expect(membersAt(alice, open.id)).toEqual(["alice", "bob", "carol"]);
    const closed = await mesh.swarm(alice, bob);
    await expect(bob.node.invite(closed)).rejects.toMatchObject({ code: "not_allowed" });
    const forced = signInvite(
      {
        swarmId: closed,
        master: "alice",
        endpoint: alice.endpoint,
        issuedAt: Math.floor(mesh.clock.now() / 1_000),
        issuer: "bob",
      },
      bob.pair,
    );
    const response = await alice.post("/swarm/join", joinBody(carol, forced));
    expect(bodyOf(response).error?.code).toBe("INVITES_DISABLED");
  });

  it("a message that comes before the answer to our join is asked to wait", async () => {
    const { id } = await alice.node.create("Lab");
    const url = await alice.node.invite(id);
    mesh.foreign.set("alice.example.com", () => ({ status: 500, body: "" }));
    let early: number | undefined;
    mesh.foreign.set("alice.example.com", () => {
      void bob.post("/swarm/message", alice.message({ swarm_id: id })).then(({ status }) => (early = status));
      return { status: 500, body: "" };
    });
    await expect(bob.node.join(url)).rejects.toThrow();
    await mesh.settle();
    expect(early).toBe(503);
  });
});

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
      expect(
        (await bob.post("/swarm/message", system(alice, lab, { action, agent_id: "alice" }))).status,
      ).toBe(403);
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
    expect((await bob.post("/swarm/message", leave)).status).toBe(200);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("53. a reference announcement, without headers and key, adds the member after a look at its info", async () => {
    const dave = await mesh.agent("dave");
    const content = `{"type": "system", "action": "member_joined", "swarm_id": "${lab}", "agent_id": "dave", "endpoint": "${dave.endpoint}", "joined_at": "2026-11-16T11:59:00.601Z"}`;
    const message = alice.message({ swarm_id: lab, type: "system", content });
    expect((await bob.post("/swarm/message", message)).status).toBe(200);
    expect(bob.node.swarm(lab).members.get("dave")?.publicKey).toBe(dave.pair.publicKey.text);
    const ghost = content.replaceAll("dave", "ghost");
    expect(
      (await bob.post("/swarm/message", alice.message({ swarm_id: lab, type: "system", content: ghost })))
        .status,
    ).toBe(200);
    expect(bob.node.swarm(lab).members.has("ghost")).toBe(false);
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
    expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(403);
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
      expect((await bob.post("/swarm/message", carol.message({ swarm_id: lab }))).status).toBe(200);
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
});

describe("keys", () => {
  const renewed = keyPairFromSeed(Buffer.alloc(32, 99));

  it("[ASP-STAT-05] 63. a key that its endpoint confirms is taken, logged, and asked for at most once in five minutes (8.26)", async () => {
    const lab = await mesh.swarm(alice, bob);
    const forged = {
      ...carol.message({ swarm_id: lab }),
      sender: { agent_id: "alice", endpoint: "https://evil.example.com" },
    };
    mesh.calls.length = 0;
    for (let index = 0; index < 4; index += 1) {
      expect((await bob.post("/swarm/message", { ...forged, message_id: crypto.randomUUID() })).status).toBe(
        401,
      );
    }
    expect(mesh.calls.map(({ url }) => url)).toEqual(["https://alice.example.com/swarm/info"]);
    mesh.clock.jump(300_001);
    alice.node.core.usePair(renewed);
    await alice.node.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
  });

  it("a key that an endpoint shows does not undo what was announced while the endpoint was asked", async () => {
    const lab = await mesh.swarm(alice, bob);
    const shown = keyPairFromSeed(Buffer.alloc(32, 98));
    mesh.foreign.set("alice.example.com", async () => {
      const proof = renewed.sign(rotationText(lab, "alice", renewed.publicKey.text)).toString("base64");
      const content = { public_key: renewed.publicKey.text, proof };
      const rotation = { type: "system", action: "key_rotated", agent_id: "alice", ...content };
      expect((await bob.post("/swarm/message", system(alice, lab, rotation))).status).toBe(200);
      const info = { agent_id: "alice", endpoint: alice.endpoint, public_key: shown.publicKey.text };
      return { status: 200, body: JSON.stringify(info) };
    });
    const signer = { agentId: "alice", endpoint: alice.endpoint, pair: shown };
    const draft = {
      message_id: crypto.randomUUID(),
      recipient: "bob",
      type: "message",
      content: "hi",
    } as const;
    const message = signDraft({ ...draft, swarm_id: lab }, signer, mesh.clock.now());
    expect((await bob.post("/swarm/message", message)).status).toBe(401);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
  });

  it("[ASP-STAT-06] 63. a key older than a day is looked up in the background; another one is reported, not taken", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.clock.jump(90_000_000);
    await bob.post("/swarm/message", alice.message({ swarm_id: lab }));
    await mesh.settle();
    expect(bob.node.core.view.keys.get("alice")).toMatchObject({
      publicKey: alice.pair.publicKey.text,
      fetchedAt: mesh.clock.now(),
    });
    mesh.clock.jump(90_000_000);
    alice.node.core.usePair(renewed);
    await bob.post("/swarm/message", alice.message({ swarm_id: lab }));
    await mesh.settle();
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_key_changed");
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("with the policy `pin` only a rotation message changes a key", async () => {
    bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    alice.node.core.usePair(renewed);
    const { messageId } = await alice.node.send({ swarmId: lab, to: "bob", content: "new key" });
    await mesh.settle();
    expect((await alice.store.mesh.sentById(messageId))[0]?.status).toBe("failed");
  });

  it("a rotation is announced with the old key, proven by the new one, and believed by all", async () => {
    bob = await mesh.agent("bob", { keyPolicy: "pin" });
    const lab = await mesh.swarm(alice, bob);
    let installed = false;
    await alice.node.rotateKey(renewed, () => {
      installed = true;
    });
    await alice.node.send({ swarmId: lab, to: "bob", content: "after" });
    await mesh.settle();
    expect(installed).toBe(true);
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(renewed.publicKey.text);
    expect((await bob.store.mesh.inbox({ limit: 9 })).map(({ content }) => content)).toContain("after");
    const unproven = system(bob, lab, {
      action: "key_rotated",
      agent_id: "bob",
      public_key: carol.pair.publicKey.text,
      proof: bob.pair.sign(Buffer.from("x")).toString("base64"),
    });
    expect((await alice.post("/swarm/message", unproven)).status).toBe(401);
  });
});
