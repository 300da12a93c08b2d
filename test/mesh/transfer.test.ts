/** Transfers of the master role and their confirmation. */
import { expect, it } from "vitest";
import { type Agent, alice, bob, bodyOf, carol, forEachTest, membersAt, mesh } from "./harness.js";

forEachTest();

it("the offer of mastership is confirmed with `accepted`, also when repeated, as long as it is true", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  const handOver = async (from: Agent, to: Agent) => {
    await from.agent.transfer(lab, to.name);
    await mesh.settle();
    for (const { agent } of [alice, bob, carol]) expect(agent.swarm(lab).master).toBe(to.name);
  };
  await handOver(alice, bob);
  const offer = mesh.calls.find(({ body }) => body.includes("master_transfer"));
  const { headers = {}, body = "" } = offer ?? {};
  const again = async () => bodyOf(await bob.post("/swarm/message", body, headers)).status;

  expect(await again()).toBe("accepted");
  // Bob has transferred it again, but not to alice: the response is still correct.
  await handOver(bob, carol);
  expect(await again()).toBe("accepted");
  await handOver(carol, alice);
  expect(await again()).toBe("queued");
});

it("mastership is offered to one member at a time, and a late acceptance does not make a second master", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  mesh.down.add("bob.example.com");
  await alice.agent.transfer(lab, "bob");
  await mesh.settle();
  await expect(alice.agent.transfer(lab, "carol")).rejects.toMatchObject({ code: "transfer_open" });
  await alice.agent.kick(lab, "bob");
  await alice.agent.transfer(lab, "carol");
  mesh.down.clear();
  await mesh.pass(4 * 3_600_000);
  for (const { agent } of [alice, carol]) expect(agent.swarm(lab).master).toBe("carol");
  expect(bob.agent.swarms).toEqual([]);
});

it("a transfer is not interleaved with other operations: the old master cannot kick the new one", async () => {
  const { store } = alice;
  const lab = await mesh.swarm(alice, bob);
  const commit = store.commit.bind(store);
  let kicked: Promise<unknown> | undefined;
  // At the moment when bob's acceptance is committed.
  store.commit = (batch) => {
    if (batch.rows?.some(({ kind }) => kind === "outbox.finish")) {
      kicked ??= alice.agent.kick(lab, "bob").catch((error: unknown) => error);
    }
    return commit(batch);
  };
  await alice.agent.transfer(lab, "bob");
  await mesh.settle();
  expect(await kicked).toMatchObject({ code: "not_master" });
  expect(alice.agent.swarm(lab).master).toBe("bob");
  const [record] = (await store.mesh.view()).filter((write) => write.kind === "mesh.swarm.put");
  expect(record?.swarm.master).toBe("bob");
  expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
});
