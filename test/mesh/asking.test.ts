/** Asking the master who is in: whoever is a member can, whatever has happened since it joined. */
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

describe("a member can ask", () => {
  it("a master that took the swarm over", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    expect(await carol.node.sync(lab)).toEqual({ conflicts: [] });
  });

  it("a master that has changed its key", async () => {
    const lab = await mesh.swarm(alice, bob);
    await alice.node.rotateKey({ pair: keyPairFromSeed(Buffer.alloc(32, 77)), install: () => undefined });
    await mesh.settle();
    expect(await bob.node.sync(lab)).toEqual({ conflicts: [] });
  });

  it("even when strangers at its address have used up the joins of an hour", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.node.invite(lab));
    const stranger = () => alice.post("/swarm/join", joinBody(carol, `${token}x`), {}, "from bob");
    for (let index = 0; index < 11; index += 1) await stranger();
    expect((await stranger()).status).toBe(429);
    expect(await bob.node.sync(lab)).toEqual({ conflicts: [] });
  });
});

it("who only asks is not let in again after it has left", async () => {
  const lab = await mesh.swarm(alice, bob);
  const token = tokenOf(await alice.node.invite(lab));
  const asking = { ...joinBody(carol, token), asks_only: true };
  const answer = await alice.post("/swarm/join", asking);
  expect([answer.status, bodyOf(answer).error?.code]).toEqual([403, "NOT_AUTHORIZED"]);
  expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
  expect((await alice.post("/swarm/join", joinBody(carol, token))).status).toBe(200);
});

describe("a newcomer of whom nobody has told us is heard", () => {
  it("after the swarm has got another master", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    await alice.node.transfer(lab, "bob");
    await mesh.settle();
    const dave = await mesh.agent("dave");
    mesh.down.add("carol.example.com");
    await dave.node.join(await bob.node.invite(lab));
    await mesh.pass(120_000);
    mesh.down.clear();
    await dave.node.send({ swarmId: lab, to: "carol", content: "hello" });
    await mesh.pass(3_600_000);
    expect(await textsAt(carol)).toEqual(["hello"]);
  });

  it("also while the master is being asked about another, and at our own start", async () => {
    const lab = await mesh.swarm(alice, bob);
    const dave = await mesh.agent("dave");
    mesh.down.add("bob.example.com");
    await carol.node.join(await alice.node.invite(lab));
    await dave.node.join(await alice.node.invite(lab));
    await mesh.settle();
    mesh.down.clear();
    const asking = bob.node.syncAll();
    const answers = [carol, dave].map((agent) => bob.answer(agent.message({ swarm_id: lab })));
    expect(await Promise.all(answers)).toEqual([200, 200]);
    await asking;
  });

  it("later, when the master cannot be asked at once", async () => {
    const lab = await mesh.swarm(alice, bob);
    mesh.down.add("bob.example.com");
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    mesh.down.clear();
    mesh.down.add("alice.example.com");
    await carol.node.send({ swarmId: lab, to: "bob", content: "is anybody there?" });
    await mesh.pass(600_000);
    expect(await textsAt(bob)).toEqual([]);
    mesh.down.clear();
    await mesh.pass(3_600_000);
    expect(await textsAt(bob)).toEqual(["is anybody there?"]);
  });
});

describe("what a master says about its members", () => {
  /** The master's first answer is on its way while something happens that it does not know of. */
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

  it("undoes no join that was announced since", async () => {
    const lab = await mesh.swarm(alice, bob);
    const token = tokenOf(await alice.node.invite(lab));
    whileItAnswers(async () => {
      await alice.post("/swarm/join", joinBody(carol, token));
      await alice.node.quiet();
    });
    await bob.node.sync(lab);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
  });

  it("undoes no kick that was announced since", async () => {
    const lab = await mesh.swarm(alice, bob, carol);
    whileItAnswers(async () => {
      await alice.node.kick(lab, "carol");
      await alice.node.quiet();
    });
    await bob.node.sync(lab);
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    expect([...bob.node.swarm(lab).bans.keys()]).toEqual(["carol"]);
  });

  it("a moment before somebody joined is not the last word about who that is", async () => {
    const lab = await mesh.swarm(alice, bob);
    expect(await bob.answer(carol.message({ swarm_id: lab }))).toBe(403);
    mesh.down.add("bob.example.com");
    await carol.node.join(await alice.node.invite(lab));
    await mesh.pass(5_000);
    mesh.down.clear();
    await carol.node.send({ swarmId: lab, to: "bob", content: "hello" });
    await mesh.pass(3_600_000);
    expect(await textsAt(bob)).toEqual(["hello"]);
  });
});
