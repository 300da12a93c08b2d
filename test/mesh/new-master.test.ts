/** Members learn of a new master, in any order of messages and with any member offline. */
import { describe, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import {
  type Agent,
  alice,
  bob,
  bodyOf,
  carol,
  forEachTest,
  membersAt,
  mesh,
  system,
  textsAt,
} from "./harness.js";

forEachTest();

const HOUR = 3_600_000;

async function waitingAt({ store }: Agent): Promise<number> {
  return (await store.outbox.counts("mesh")).waiting;
}

describe("[MESH-M-2] refused lifecycle messages", () => {
  it("a kick before a transfer reaches the new master first, and nothing waits behind it", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dora = await mesh.agent("dora");
    await dora.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    mesh.down.add("bob.example.com");
    await alice.agent.kick(lab, "dora");
    await mesh.pass(60_000);
    await alice.agent.transfer(lab, "bob");
    await mesh.pass(60_000);
    mesh.down.clear();
    await alice.agent.send({ swarmId: lab, to: "bob", content: "do you hear me?" });
    await mesh.pass(180_000);
    for (const agent of [alice, bob, carol]) {
      expect(membersAt(agent, lab)).toEqual(["alice", "bob", "carol"]);
      expect(agent.agent.swarm(lab).master).toBe("bob");
      expect(await waitingAt(agent)).toBe(0);
    }
    expect(await textsAt(bob)).toEqual(["do you hear me?"]);
  });

  it("a refused lifecycle message lets others pass, is tried again, and is abandoned after the window", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const refused: string[] = [];
    mesh.foreign.set("bob.example.com", ({ body }) => {
      const { type, content } = JSON.parse(body);
      refused.push(content);
      return type === "system" ? { status: 403, body: "{}" } : { status: 200, body: "{}" };
    });
    await alice.agent.kick(lab, "carol");
    await alice.agent.send({ swarmId: lab, to: "bob", content: "hello" });
    await mesh.settle();
    expect(await alice.store.mesh.sent({ swarmId: lab, limit: 1 })).toMatchObject([
      { content: "hello", status: "delivered" },
    ]);
    // Waiting survives a restart.
    const again = await mesh.agent("alice", {}, mesh.crash(alice));
    await mesh.pass(1_800_000);
    expect(await waitingAt(again)).toBe(1);
    expect(refused.filter((content) => content.includes("member_kicked")).length).toBeGreaterThan(3);
    await mesh.pass(HOUR);
    expect(await waitingAt(again)).toBe(0);
    const kicks = (await again.store.mesh.sent({ swarmId: lab, limit: 9 })).filter(
      ({ content, recipientId }) => content.includes("member_kicked") && recipientId === "bob",
    );
    expect(kicks).toMatchObject([{ status: "failed", error: expect.stringContaining("status 403") }]);
  });
});

describe("[MESH-M-2] a new master whose predecessor is gone", () => {
  it("announces itself with the old master's proof, and its own messages are accepted", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dora = await mesh.agent("dora");
    mesh.down.add("carol.example.com");
    await alice.agent.transfer(lab, "bob");
    await mesh.pass(60_000);
    mesh.crash(alice);
    mesh.down.clear();
    await dora.agent.join(await bob.agent.invite(lab));
    await bob.agent.send({ swarmId: lab, to: "carol", content: "do you hear me?" });
    await dora.agent.send({ swarmId: lab, to: "carol", content: "I am new" });
    await mesh.pass(180_000);
    expect(carol.agent.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol", "dora"]);
    expect((await textsAt(carol)).sort()).toEqual(["I am new", "do you hear me?"]);
    // Only alice has not received everything.
    expect([...(await bob.store.outbox.waitingByTarget("mesh")).keys()]).toEqual([
      "https://alice.example.com",
    ]);
  });

  it("is believed even by a member that did not know it, over several changes", async () => {
    const lab = await mesh.swarm(alice, carol);
    mesh.down.add("carol.example.com");
    const dora = await mesh.agent("dora");
    await bob.agent.join(await alice.agent.invite(lab));
    await dora.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    await alice.agent.transfer(lab, "bob");
    await mesh.pass(60_000);
    await bob.agent.transfer(lab, "dora");
    await mesh.pass(60_000);
    mesh.crash(alice);
    mesh.crash(bob);
    mesh.down.clear();
    await mesh.pass(HOUR);
    expect(carol.agent.swarm(lab).master).toBe("dora");
    expect(membersAt(carol, lab)).toEqual(["alice", "bob", "carol", "dora"]);
    // Also after a restart, with the proofs for others.
    const again = await mesh.agent("carol", {}, mesh.crash(carol));
    expect(again.agent.swarm(lab).handovers?.map(({ from, to }) => [from, to])).toEqual([
      ["alice", "bob"],
      ["bob", "dora"],
    ]);
  });

  it("introduces itself again to a member that lost the announcement", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    mesh.foreign.set("carol.example.com", () => ({ status: 400, body: "{}" }));
    await alice.agent.transfer(lab, "bob");
    await mesh.pass(60_000);
    mesh.foreign.clear();
    mesh.crash(alice);
    expect(carol.agent.swarm(lab).master).toBe("alice");
    const dora = await mesh.agent("dora");
    await dora.agent.join(await bob.agent.invite(lab));
    await mesh.pass(60_000);
    expect(carol.agent.swarm(lab).master).toBe("bob");
    expect(membersAt(carol, lab)).toContain("dora");
  });

  it("cannot be forged: by another member, with another key, or with a proof from before a later change", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    const proofs = bob.agent.swarm(lab).handovers?.map(({ proof }) => proof);
    await bob.agent.transfer(lab, "alice");
    await mesh.settle();
    for (const { agent } of [alice, bob, carol]) expect(agent.swarm(lab).master).toBe("alice");
    const content = { action: "master_changed", new_master: "bob", agent_id: "bob", handovers: proofs };
    // Bob was the master once: an old announcement has no effect.
    expect(await carol.answer(system(bob, lab, content))).toBe(200);
    // A new member has not seen the changes, but they are older than its membership.
    await mesh.pass(HOUR);
    const dora = await mesh.agent("dora");
    await dora.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    expect(await dora.answer(system(bob, lab, content))).toBe(200);
    // Signed with another key.
    const forger = keyPairFromSeed(Buffer.alloc(32, 7));
    const [proof] = proofs ?? [];
    const forged = {
      ...proof,
      content: proof?.content.replace(
        /"changed_at":"[^"]+"/u,
        `"changed_at":"${new Date(mesh.clock.now()).toISOString()}"`,
      ),
    };
    for (const pair of [bob.pair, forger]) {
      const signature = pair.sign(Buffer.alloc(32)).toString("base64");
      const lie = { ...content, handovers: [{ ...forged, signature }] };
      expect(await carol.answer(system(bob, lab, lie))).toBe(403);
    }
    for (const { agent } of [carol, dora]) expect(agent.swarm(lab).master).toBe("alice");
  });

  it("a kicked agent that was offered the swarm has no proof", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    mesh.foreign.set("bob.example.com", () => ({ status: 503, body: "{}" }));
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    const offer = mesh.calls.findLast(({ body }) => body.includes("master_transfer"));
    await alice.agent.kick(lab, "bob");
    await mesh.settle();
    const { message_id, timestamp, recipient, content, signature } = JSON.parse(offer?.body ?? "{}");
    const handovers = [{ sender: "alice", message_id, timestamp, recipient, content, signature }];
    const claim = { action: "master_changed", new_master: "bob", agent_id: "bob", handovers };
    expect(await carol.answer(system(bob, lab, claim))).toBeGreaterThanOrEqual(403);
    expect(carol.agent.swarm(lab).master).toBe("alice");
  });
});

describe("[MESH-M-2] a new master that learns late what its predecessor announced", () => {
  /** Bob takes over before the last announcement of alice reaches him, and the others have his list already. */
  async function takeOverBefore(lab: string, delayed: RegExp, change: () => Promise<unknown>): Promise<void> {
    mesh.down.add("bob.example.com");
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    await change();
    await mesh.settle();
    mesh.down.clear();
    mesh.foreign.set("bob.example.com", ({ url, method, body, headers }) => {
      if (delayed.test(body)) return { status: 503, body: "{}" };
      const { pathname } = new URL(url);
      return method === "GET" ? bob.get(pathname) : bob.post(pathname, body, headers);
    });
    await mesh.pass(60_000);
    for (const { agent } of [alice, carol]) {
      expect(agent.swarm(lab).master).toBe("bob");
      await agent.sync(lab);
    }
  }

  it("tells everybody of a join, also those that have dropped the member", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    const dora = await mesh.agent("dora");
    await takeOverBefore(lab, /member_joined/u, async () => dora.agent.join(await alice.agent.invite(lab)));
    for (const one of [alice, bob, carol]) expect(membersAt(one, lab)).toEqual(["alice", "bob", "carol"]);
    mesh.foreign.clear();
    // Less than the time after which members ask again by themselves.
    await mesh.pass(600_000);
    for (const one of [alice, bob, carol, dora]) {
      expect(membersAt(one, lab)).toEqual(["alice", "bob", "carol", "dora"]);
      expect(await waitingAt(one)).toBe(0);
    }
  });

  it("tells everybody of a kick, also those that have added the member again", async () => {
    const dora = await mesh.agent("dora");
    const lab = await mesh.swarm(alice, bob, carol, dora);
    await takeOverBefore(lab, /member_kicked/u, () => alice.agent.kick(lab, "dora"));
    for (const one of [alice, bob, carol]) expect(membersAt(one, lab)).toContain("dora");
    mesh.foreign.clear();
    // Less than the time after which members ask again by themselves.
    await mesh.pass(600_000);
    for (const one of [alice, bob, carol]) {
      expect(membersAt(one, lab)).toEqual(["alice", "bob", "carol"]);
      expect(one.agent.swarm(lab).bans.has("dora")).toBe(true);
      expect(await waitingAt(one)).toBe(0);
    }
  });

  it("tells when the member was kicked, so that its later join counts", async () => {
    const dora = await mesh.agent("dora");
    const lab = await mesh.swarm(alice, bob, carol, dora);
    await takeOverBefore(lab, /member_kicked|member_joined/u, async () => {
      await alice.agent.kick(lab, "dora");
      await mesh.pass(1_000);
      await alice.agent.unban(lab, "dora");
      await dora.agent.join(await alice.agent.invite(lab));
    });
    mesh.foreign.clear();
    await mesh.pass(600_000);
    for (const one of [alice, bob, carol, dora]) {
      expect(membersAt(one, lab)).toEqual(["alice", "bob", "carol", "dora"]);
      expect(await waitingAt(one)).toBe(0);
    }
  });
});

it("[MESH-M-2] a member that got an old key of the master checks its proof with the key that its endpoint serves", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  mesh.down.add("alice.example.com");
  const pair = keyPairFromSeed(Buffer.alloc(32, 6));
  await bob.agent.rotateKey({ pair, install: () => undefined });
  await mesh.settle();
  mesh.down.clear();
  // Alice has not heard of the new key and gives the old one to dora, which also loses what bob says as the master.
  const dora = await mesh.agent("dora");
  await dora.agent.join(await alice.agent.invite(lab));
  mesh.foreign.set("dora.example.com", ({ from, url, body, headers }) =>
    from === "bob" ? { status: 400, body: "{}" } : dora.post(new URL(url).pathname, body, headers),
  );
  await alice.agent.transfer(lab, "bob");
  await mesh.pass(60_000);
  mesh.foreign.clear();
  expect(dora.agent.swarm(lab).master).toBe("bob");
  expect(dora.agent.swarm(lab).members.get("bob")?.publicKey).toBe(bob.pair.publicKey.text);
  await bob.agent.transfer(lab, "carol");
  await mesh.pass(2 * HOUR);
  expect(dora.agent.swarm(lab).master).toBe("carol");
  expect(dora.agent.swarm(lab).members.get("bob")?.publicKey).toBe(pair.publicKey.text);
  for (const one of [bob, carol]) expect(await waitingAt(one)).toBe(0);
});

describe("[MESH-M-13] a clock that is ahead", () => {
  it("delays messages and leaves until it is right, and loses none", async () => {
    const lab = await mesh.swarm(alice, bob);
    const { clock } = mesh;
    const real = clock.now.bind(clock);
    let ahead = 0;
    const wrong = await mesh.agent("carol", {}, mesh.crash(carol));
    await wrong.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    Object.defineProperty(wrong.agent.context, "now", { get: () => real() + ahead });
    ahead = 600_000;
    await wrong.agent.send({ swarmId: lab, to: "alice", content: "from the future" });
    await mesh.pass(30_000);
    expect(await textsAt(alice)).toEqual([]);
    expect(await wrong.store.mesh.sentCounts(lab)).toMatchObject({ sent: 1, failed: 0 });
    await wrong.agent.leave(lab);
    ahead = 0;
    await mesh.pass(900_000);
    expect(await textsAt(alice)).toEqual(["from the future"]);
    for (const agent of [alice, bob]) expect(membersAt(agent, lab)).toEqual(["alice", "bob"]);
  });
});

describe("[MESH-M-18] a leave", () => {
  it("that a member forwards after the agent joined again has no effect, however short the time between", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    mesh.down.add("bob.example.com");
    mesh.clock.jump(1_000);
    await carol.agent.leave(lab);
    await mesh.settle();
    const leave = mesh.calls.findLast(({ body }) => body.includes("member_left"))?.body ?? "";
    mesh.clock.jump(1_000);
    await carol.agent.join(await alice.agent.invite(lab));
    mesh.down.clear();
    await mesh.pass(60_000);
    expect(await bob.answer(JSON.parse(leave))).toBe(200);
    for (const agent of [alice, bob, carol]) expect(membersAt(agent, lab)).toEqual(["alice", "bob", "carol"]);
  });
});

it("[MESH-M-20] an offer by a member that is not the master is not answered with `accepted`", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  const offer = { action: "master_transfer", new_master: "alice", agent_id: "alice" };
  const response = await alice.post("/swarm/message", system(bob, lab, offer, { recipient: "alice" }));
  expect([response.status, bodyOf(response).status]).toEqual([403, undefined]);
});

it("[MESH-M-14] a rotation also renews the cached key", async () => {
  const lab = await mesh.swarm(alice, bob);
  const pair = keyPairFromSeed(Buffer.alloc(32, 5));
  await alice.agent.rotateKey({ pair, install: () => undefined });
  await mesh.settle();
  expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(pair.publicKey.text);
  expect(bob.agent.context.view.keys.get("alice")?.publicKey).toBe(pair.publicKey.text);
});
