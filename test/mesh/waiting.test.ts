/** What the operator learns about waiting messages and members, and can do about them. */
import { beforeEach, describe, expect, it } from "vitest";
import { operate } from "../../src/mesh/admin/operate.js";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import {
  type Agent,
  alice,
  bob,
  carol,
  forEachTest,
  membersAt,
  mesh,
  notesAt,
  system,
  textsAt,
  tokenOf,
} from "./harness.js";

forEachTest();
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob, carol);
});

const ask = ({ agent, store, directory }: Agent, name: string, given: object = {}) =>
  operate({ agent, reads: store.mesh, directory }, name, given);

const CUT = "https://bob.example.com/swarm/message: the network is cut";
const at = (ms: number) => new Date(ms).toISOString();

describe("[MESH-M-10] waiting messages", () => {
  it("mesh sent and mesh status say for whom, since when and why a message waits", async () => {
    mesh.down.add("bob.example.com");
    const sentAt = mesh.clock.now();
    const { messageId } = await alice.agent.send({ swarmId: lab, to: "bob", content: "one" });
    await alice.agent.send({ swarmId: lab, to: "bob", content: "two" });
    await mesh.pass(10_000);
    const { messages } = await ask(alice, "sent", { limit: 2 });
    const why = {
      status: "waiting",
      recipient: "bob",
      since: at(sentAt),
      abandoned_at: at(sentAt + 14 * 86_400_000),
    };
    expect(messages).toMatchObject([
      {
        ...why,
        content: "two",
        attempts: 0,
        reason: `earlier messages are delivered first: ${CUT}`,
      },
      { ...why, content: "one", attempts: 4, reason: CUT, next_attempt: expect.any(String) },
    ]);
    const status = await ask(alice, "status");
    expect(status.waiting).toEqual([
      expect.objectContaining({
        recipient: "bob",
        swarm: "lab",
        since: at(sentAt),
        attempts: 4,
        reason: CUT,
        message_id: messageId,
      }),
    ]);
    mesh.down.clear();
    await mesh.pass(60_000);
    expect((await ask(alice, "status")).waiting).toEqual([]);
    expect((await ask(alice, "sent", { limit: 2 })).messages).toMatchObject([
      { status: "delivered" },
      { status: "delivered" },
    ]);
  });

  it("a waiting message can be dropped, and those behind it are delivered", async () => {
    mesh.down.add("bob.example.com");
    const { messageId } = await alice.agent.send({ swarmId: lab, content: "to all" });
    await alice.agent.send({ swarmId: lab, to: "bob", content: "later" });
    await mesh.pass(60_000);
    expect(await ask(alice, "drop", { message_id: messageId })).toEqual({
      status: "dropped",
      message_id: messageId,
      recipients: ["bob"],
    });
    await expect(ask(alice, "drop", { message_id: messageId })).rejects.toMatchObject({
      code: "message_not_found",
    });
    mesh.down.clear();
    await mesh.pass(600_000);
    expect(await textsAt(bob)).toEqual(["later"]);
    expect(await textsAt(carol)).toEqual(["to all"]);
    const sent = await alice.store.mesh.sentById(messageId);
    expect(sent.map(({ recipientId, status, error }) => [recipientId, status, error])).toEqual([
      ["bob", "failed", "dropped by the operator"],
      ["carol", "delivered", undefined],
    ]);
  });

  it("a dropped offer leaves the swarm with its master, and it can be offered to another member", async () => {
    mesh.down.add("bob.example.com");
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    const [offer] = (await ask(alice, "sent", { limit: 1 })).messages as { message_id: string }[];
    await ask(alice, "drop", { message_id: offer?.message_id });
    await alice.agent.transfer(lab, "carol");
    mesh.down.clear();
    await mesh.pass(600_000);
    for (const { agent } of [alice, bob, carol]) expect(agent.swarm(lab).master).toBe("carol");
  });

  it.each([
    ["retry", {}],
    ["retry", { agent: "bob" }],
    ["ping", { agent: "bob" }],
  ])("mesh %s delivers at once to a member that is back", async (name, given) => {
    mesh.down.add("bob.example.com");
    await alice.agent.send({ swarmId: lab, to: "bob", content: "hello" });
    await mesh.pass(3_600_000);
    mesh.down.clear();
    await ask(alice, name, given);
    await mesh.settle();
    expect(await textsAt(bob)).toEqual(["hello"]);
  });

  it("mesh ping tells whether the member serves the known key, and why it is unreachable", async () => {
    expect(await ask(alice, "ping", { agent: "bob" })).toMatchObject({ status: "reachable", key: "matches" });
    await bob.agent.rotateKey({ pair: keyPairFromSeed(Buffer.alloc(32, 3)), install: () => undefined });
    mesh.down.add("carol.example.com");
    await expect(ask(alice, "ping", { agent: "carol" })).rejects.toMatchObject({
      code: "peer_unreachable",
      message: "carol cannot be reached: https://carol.example.com/swarm/info: the network is cut",
    });
    await expect(ask(alice, "ping", { agent: "nobody" })).rejects.toMatchObject({ code: "member_not_found" });
  });
});

describe("the member list", () => {
  it("mesh sync fetches it from the master and tells what changed", async () => {
    const view = bob.agent.context.view.swarms.get(lab);
    view?.members.delete("carol");
    expect(await ask(bob, "sync")).toMatchObject({
      status: "synchronized",
      added: ["carol"],
      removed: [],
      conflicts: [],
    });
    await expect(ask(alice, "sync")).rejects.toMatchObject({ code: "is_master" });
  });

  it("the master sees which invite a member used, and hears it again with the kick", async () => {
    const dora = await mesh.agent("dora");
    const url = await alice.agent.invite(lab, { maxUses: 5 });
    await dora.agent.join(url);
    const invite = [...alice.agent.swarm(lab).invites.values()].find(({ maxUses }) => maxUses === 5)?.key;
    const { swarms } = (await ask(alice, "list", { members: true })) as { swarms: { members: object[] }[] };
    expect(swarms[0]?.members).toContainEqual(expect.objectContaining({ agent_id: "dora", invite }));
    // Also after a restart.
    const again = await mesh.agent("alice", {}, mesh.crash(alice));
    expect(await ask(again, "kick", { agent: "dora" })).toMatchObject({ status: "kicked", invite });
  });

  it("[MESH-M-14] a new key revokes open invites and says how many", async () => {
    const url = await alice.agent.invite(lab);
    await alice.agent.invite(lab, { lifetime: -1 });
    const pair = keyPairFromSeed(Buffer.alloc(32, 4));
    const open = [...alice.agent.swarm(lab).invites.values()].filter(
      ({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > mesh.clock.now(),
    );
    expect(await alice.agent.rotateKey({ pair, install: () => undefined })).toEqual({
      revokedInvites: open.length,
    });
    const { swarms } = (await ask(alice, "list")) as { swarms: { invites: { revoked: boolean }[] }[] };
    expect(swarms[0]?.invites.filter(({ revoked }) => !revoked)).toHaveLength(1);
    const dora = await mesh.agent("dora");
    await expect(dora.agent.join(url)).rejects.toMatchObject({ code: "join_refused" });
  });
});

describe("another endpoint", () => {
  it("is announced to all members, who then call it; members that are away learn it later", async () => {
    mesh.down.add("carol.example.com");
    const moved = "https://bob-moved.example.com/swarm";
    mesh.agents.set("bob-moved.example.com", bob);
    mesh.agents.delete("bob.example.com");
    let installed = "";
    await bob.agent.changeEndpoint(moved, () => {
      installed = moved;
    });
    await mesh.settle();
    expect(installed).toBe(moved);
    expect(alice.agent.swarm(lab).members.get("bob")?.endpoint).toBe(moved);
    await alice.agent.send({ swarmId: lab, to: "bob", content: "found you" });
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(carol.agent.swarm(lab).members.get("bob")?.endpoint).toBe(moved);
    expect(await textsAt(bob)).toEqual(["found you"]);
    expect(JSON.parse((await bob.get("/swarm/info")).body).endpoint).toBe(moved);
    mesh.agents.delete("bob-moved.example.com");
    mesh.agents.set("bob.example.com", bob);
  });

  it("of another agent cannot be announced", async () => {
    const content = {
      action: "endpoint_changed",
      agent_id: "carol",
      endpoint: "https://mallory.example.com/swarm",
    };
    expect(await alice.answer(system(bob, lab, content))).toBe(403);
    expect(await alice.answer(system(bob, lab, { ...content, agent_id: "bob", endpoint: "http://x" }))).toBe(
      400,
    );
  });
});

describe("approval", () => {
  it("reaches the agent that asked: it joins by itself, and its operator is notified", async () => {
    const { id } = await alice.agent.create("Club", { requireApproval: true });
    const url = await alice.agent.invite(id);
    await expect(bob.agent.join(url)).rejects.toMatchObject({ code: "pending" });
    expect((await ask(bob, "status")).pending_joins).toEqual([id]);
    // A stranger's message causes one request at most, and no answer before the approval.
    const before = mesh.calls.length;
    for (let count = 0; count < 3; count += 1)
      expect(await bob.answer(carol.message({ swarm_id: id }))).toBe(503);
    await mesh.settle();
    expect(mesh.calls.length - before).toBe(1);
    await mesh.pass(60_000);
    await alice.agent.approve(id, "bob");
    await mesh.pass(60_000);
    expect(membersAt(bob, id)).toEqual(["alice", "bob"]);
    expect(await notesAt(bob)).toContainEqual(
      expect.objectContaining({
        action: "member_joined",
        agent_id: "bob",
        initiated_by: "alice",
        swarm_id: id,
      }),
    );
    expect((await ask(bob, "status")).pending_joins).toEqual([]);
    expect((await alice.store.outbox.counts("mesh")).waiting).toBe(0);
  });

  it("that never comes is asked for hourly, and a rejection ends the request", async () => {
    const { id } = await alice.agent.create("Club", { requireApproval: true });
    const token = await alice.agent.invite(id);
    await expect(bob.agent.join(token)).rejects.toMatchObject({ code: "pending" });
    await alice.agent.reject(id, "bob");
    await mesh.pass(2 * 3_600_000);
    expect((await ask(bob, "status")).pending_joins).toEqual([]);
    expect(bob.problems.map(({ code }) => code)).toContain("mesh_join");
    expect(tokenOf(token)).not.toBe("");
  });
});

it("[MESH-M-20] the receiving server logs why it refused a message, once a minute for each caller and reason", async () => {
  const message = alice.message({ swarm_id: lab });
  for (let count = 0; count < 3; count += 1) {
    const forged = { ...message, content: "forged" };
    expect((await bob.post("/swarm/message", forged, { "x-agent-id": "alice" })).status).toBe(401);
  }
  expect(
    bob.problems.filter(({ code }) => code === "mesh_request_refused").map((one) => one.message),
  ).toEqual([expect.stringContaining("refused /swarm/message from alice at 198.51.100.7 with 401")]);
});
