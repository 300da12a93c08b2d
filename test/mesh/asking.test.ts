/** Fetching the member list: every member can, whatever happened since it joined. */
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

describe("fetching the member list", () => {
  it("a member can fetch the member list from a master that took over the swarm", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    expect(await carol.agent.sync(lab)).toEqual({ conflicts: [] });
  });

  it("a member can fetch the member list from a master that changed its key", async () => {
    const lab = await mesh.swarm(alice, bob);
    await alice.agent.rotateKey({ pair: keyPairFromSeed(Buffer.alloc(32, 77)), install: () => undefined });
    await mesh.settle();
    expect(await bob.agent.sync(lab)).toEqual({ conflicts: [] });
  });

  it("a member can fetch the member list even if its address has no joins left in the hour", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.agent.invite(lab));
    const stranger = () => alice.post("/swarm/join", joinBody(carol, `${token}x`), {}, "from bob");
    for (let index = 0; index < 11; index += 1) await stranger();
    expect((await stranger()).status).toBe(429);
    expect(await bob.agent.sync(lab)).toEqual({ conflicts: [] });
  });
});

it("a member list request does not admit an agent that has left", async () => {
  const lab = await mesh.swarm(alice, bob);
  const token = tokenOf(await alice.agent.invite(lab));
  const asking = { ...joinBody(carol, token), asks_only: true };
  const answer = await alice.post("/swarm/join", asking);
  expect([answer.status, bodyOf(answer).error?.code]).toEqual([403, "NOT_AUTHORIZED"]);
  expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
  expect((await alice.post("/swarm/join", joinBody(carol, token))).status).toBe(200);
});

describe("a new member whose announcement was missed", () => {
  it("a message from an unannounced member is accepted after the swarm changed its master", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    await alice.agent.transfer(lab, "bob");
    await mesh.settle();
    const dave = await mesh.agent("dave");
    mesh.down.add("carol.example.com");
    await dave.agent.join(await bob.agent.invite(lab));
    await mesh.pass(120_000);
    mesh.down.clear();
    await dave.agent.send({ swarmId: lab, to: "carol", content: "hello" });
    await mesh.pass(3_600_000);
    expect(await textsAt(carol)).toEqual(["hello"]);
  });

  it("a message from an unannounced member is accepted while the master is asked about another, and during startup", async () => {
    const lab = await mesh.swarm(alice, bob);
    const dave = await mesh.agent("dave");
    mesh.down.add("bob.example.com");
    await carol.agent.join(await alice.agent.invite(lab));
    await dave.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    mesh.down.clear();
    const asking = bob.agent.syncAll();
    const answers = [carol, dave].map((agent) => bob.answer(agent.message({ swarm_id: lab })));
    expect(await Promise.all(answers)).toEqual([200, 200]);
    await asking;
  });

  it("a message from an unannounced member is accepted later when the master is unreachable", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    mesh.down.clear();
    mesh.down.add("alice.example.com");
    await carol.agent.send({ swarmId: lab, to: "bob", content: "is anybody there?" });
    await mesh.pass(600_000);
    expect(await textsAt(bob)).toEqual([]);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect(await textsAt(bob)).toEqual(["is anybody there?"]);
  });
});

describe("an outdated member list", () => {
  /** Delays the master's first response until after an event that it does not include. */
  function whileItAnswers(happens: () => Promise<void>): void {
    let isFirst = true;
    mesh.foreign.set("alice.example.com", async ({ url, body }) => {
      const answer = await alice.post(new URL(url).pathname, body, {}, "from bob");
      if (isFirst && url.endsWith("/join")) {
        isFirst = false;
        await happens();
      }
      return answer;
    });
  }

  it("an outdated member list does not undo a join that was announced since", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.agent.invite(lab));
    whileItAnswers(async () => {
      await alice.post("/swarm/join", joinBody(carol, token));
      await alice.agent.quiet();
    });
    await bob.agent.sync(lab);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("an outdated member list does not undo a kick that was announced since", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    whileItAnswers(async () => {
      await alice.agent.kick(lab, "carol");
      await alice.agent.quiet();
    });
    await bob.agent.sync(lab);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    expect([...bob.agent.swarm(lab).bans.keys()]).toEqual(["carol"]);
  });

  it("a member list from before a join does not decide whether a message of the new member is accepted", async () => {
    const lab = await mesh.swarm(alice, bob);
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(403);
    mesh.down.add("bob.example.com");
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.pass(5_000);
    mesh.down.clear();
    await carol.agent.send({ swarmId: lab, to: "bob", content: "hello" });
    await mesh.pass(3_600_000);
    expect(await textsAt(bob)).toEqual(["hello"]);
  });
});
