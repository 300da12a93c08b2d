/** Who takes a swarm over says so, and says it again to who has not heard. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Agent, bodyOf, type ThreeAgents, threeAgents } from "./harness.js";

let all: ThreeAgents;

beforeEach(async () => {
  all = await threeAgents();
});
afterEach(() => all.mesh.close());

it("the answer to an offered mastership is accepted, for as long as it is true", async () => {
  const { mesh, alice, bob, carol } = all;
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
  const { mesh, alice, bob, carol } = all;
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
