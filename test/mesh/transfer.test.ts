/** Who takes a swarm over says so, and says it again to who has not heard. */
import { expect, it } from "vitest";
import { type Agent, alice, bob, bodyOf, carol, forEachTest, membersAt, mesh } from "./harness.js";

forEachTest();

it("the answer to an offered mastership is accepted, for as long as it is true", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  const handOver = async (from: Agent, to: Agent) => {
    await from.node.transfer(lab, to.name);
    await mesh.settle();
    for (const { node } of [alice, bob, carol]) expect(node.swarm(lab).master).toBe(to.name);
  };
  await handOver(alice, bob);
  const offer = mesh.calls.find(({ body }) => body.includes("master_transfer"));
  const { headers = {}, body = "" } = offer ?? {};
  const again = async () => bodyOf(await bob.post("/swarm/message", body, headers)).status;

  expect(await again()).toBe("accepted");
  // Bob has it no more, but alice has it neither: that is what the answer is about.
  await handOver(bob, carol);
  expect(await again()).toBe("accepted");
  await handOver(carol, alice);
  expect(await again()).toBe("queued");
});

it("is offered to one member at a time, and a member that comes back late does not become a second master", async () => {
  const lab = await mesh.swarm(alice, bob, carol);
  mesh.down.add("bob.example.com");
  await alice.node.transfer(lab, "bob");
  await mesh.settle();
  await expect(alice.node.transfer(lab, "carol")).rejects.toMatchObject({ code: "transfer_open" });
  await alice.node.kick(lab, "bob");
  await alice.node.transfer(lab, "carol");
  mesh.down.clear();
  await mesh.pass(4 * 3_600_000);
  for (const { node } of [alice, carol]) expect(node.swarm(lab).master).toBe("carol");
  expect(bob.node.swarms).toEqual([]);
});

it("is not crossed by another operation: who was just handed the swarm is not kicked by the old master", async () => {
  const { store } = alice;
  const lab = await mesh.swarm(alice, bob);
  const commit = store.commit.bind(store);
  let kicked: Promise<unknown> | undefined;
  // In the moment in which bob's answer is made durable.
  store.commit = (batch) => {
    if (batch.rows?.some(({ kind }) => kind === "outbox.finish")) {
      kicked ??= alice.node.kick(lab, "bob").catch((error: unknown) => error);
    }
    return commit(batch);
  };
  await alice.node.transfer(lab, "bob");
  await mesh.settle();
  expect(await kicked).toMatchObject({ code: "not_master" });
  expect(alice.node.swarm(lab).master).toBe("bob");
  const [record] = (await store.mesh.view()).filter((write) => write.kind === "mesh.swarm.put");
  expect(record?.swarm.master).toBe("bob");
  expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
});
