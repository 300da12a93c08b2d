/** Attacks by agents that know the id of a swarm or have an invite. */
import { describe, expect, it } from "vitest";
import { signInvite } from "../../src/mesh/invite/token.js";
import { formatInviteUrl } from "../../src/mesh/invite/url.js";
import { signFields } from "../../src/mesh/signature.js";
import { type Agent, alice, bob, carol, forEachTest, joinBody, membersAt, mesh, tokenOf } from "./harness.js";

forEachTest();

describe("a forged invite to a swarm that the agent is in", () => {
  /** Mallory's invite to another agent's swarm, and his response to an agent that uses it. */
  async function invited(lab: string, victim: Agent, master: string): Promise<string> {
    const mallory = await mesh.agent("mallory");
    const entry = ({ name, endpoint }: Agent, { pair }: Agent) => ({
      agent_id: name,
      endpoint,
      public_key: pair.publicKey.text,
    });
    const members = [entry(mallory, mallory), entry(alice, mallory), entry(victim, victim)];
    const body = JSON.stringify({ status: "accepted", swarm_id: lab, swarm_name: "Prizes", members });
    mesh.foreign.set("mallory.example.com", () => ({ status: 200, body }));
    const endpoint = master === "mallory" ? mallory.endpoint : alice.endpoint;
    if (master !== "mallory") mesh.foreign.set("alice.example.com", () => ({ status: 200, body }));
    const issuedAt = Math.floor(mesh.clock.now() / 1_000);
    return formatInviteUrl(
      lab,
      endpoint,
      signInvite({ swarmId: lab, master, endpoint, issuedAt }, mallory.pair),
    );
  }

  it.each([
    { who: "a member", victim: () => bob, master: "mallory" },
    { who: "a member, in the name of its master", victim: () => bob, master: "alice" },
    { who: "the master itself", victim: () => alice, master: "mallory" },
  ])("a forged invite changes nothing for $who", async ({ victim, master }) => {
    const lab = await mesh.swarm(alice, bob);
    const url = await invited(lab, victim(), master);
    mesh.calls.length = 0;
    await expect(victim().agent.join(url)).rejects.toMatchObject({ code: "join_refused" });
    const { master: leads, members, name } = victim().agent.swarm(lab);
    expect([leads, name]).toEqual(["alice", "Lab"]);
    expect(members.get("alice")).toMatchObject({
      endpoint: alice.endpoint,
      publicKey: alice.pair.publicKey.text,
    });
    expect(membersAt(victim(), lab)).toEqual(["alice", "bob"]);
    expect(mesh.calls.filter((call) => call.url.includes("mallory"))).toEqual([]);
  });
});

it("a rejected request does not reserve its agent id", async () => {
  const { id } = await alice.agent.create("Lab", { requireApproval: true });
  const invite = await alice.agent.invite(id);
  const mallory = await mesh.agent("mallory");
  mesh.foreign.set("mallory.example.com", () => ({ status: 404, body: "" }));
  const asBob = joinBody(mallory, tokenOf(invite), { agent_id: "bob" });
  expect((await alice.post("/swarm/join", asBob)).status).toBe(202);
  await alice.agent.reject(id, "bob");
  await expect(bob.agent.join(invite)).rejects.toMatchObject({ code: "pending" });
  expect(alice.agent.pending(id)).toMatchObject([{ agentId: "bob", publicKey: bob.pair.publicKey.text }]);
});

it("where endpoints must be confirmed, a signature does not prove another agent's endpoint", async () => {
  const strict = await mesh.agent("strict", { checkJoiners: "required" });
  const { id } = await strict.agent.create("Lab");
  const token = tokenOf(await strict.agent.invite(id));
  const message_id = crypto.randomUUID();
  const timestamp = new Date(mesh.clock.now()).toISOString();
  const content = `join_request ${token}`;
  const signed = { message_id, timestamp, swarm_id: id, recipient: "strict", type: "system", content };
  const body = (endpoint: string) => ({
    ...joinBody(carol, token, { endpoint }),
    message_id,
    timestamp,
    signature: signFields(signed, carol.pair),
  });
  expect((await strict.post("/swarm/join", body("https://victim.example.com/swarm"))).status).toBe(403);
  expect((await strict.post("/swarm/join", body(carol.endpoint))).status).toBe(200);
});

it("a foreign invite does not make a member fetch the member list for its issuer", async () => {
  const lab = await mesh.swarm(alice, bob);
  const { endpoint, pair } = await mesh.agent("mallory");
  const fetched: number[] = [];
  mesh.foreign.set("mallory.example.com", async ({ body }) => {
    // He forwards what he receives to the real master.
    fetched.push((await alice.post("/swarm/join", body)).status);
    return { status: 500, body: "" };
  });
  const issuedAt = Math.floor(mesh.clock.now() / 1_000);
  const token = signInvite({ swarmId: lab, master: "alice", endpoint, issuedAt }, pair);
  await expect(bob.agent.join(formatInviteUrl(lab, endpoint, token))).rejects.toMatchObject({
    code: "join_refused",
  });
  expect(fetched).toEqual([]);
});
