/** What somebody who knows the id of a swarm, or has an invite, cannot make of it. */
import { describe, expect, it } from "vitest";
import { signInvite } from "../../src/mesh/invite/token.js";
import { formatInviteUrl } from "../../src/mesh/invite/url.js";
import { signFields } from "../../src/mesh/signature.js";
import { type Agent, alice, bob, carol, forEachTest, joinBody, membersAt, mesh, tokenOf } from "./harness.js";

forEachTest();

describe("an invite to a swarm that we are in, signed by somebody who calls himself its master", () => {
  /** Mallory's invite to a swarm that is not his, and his answer to who takes it. */
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
  ])("changes nothing for $who", async ({ victim, master }) => {
    const lab = await mesh.swarm(alice, bob);
    const url = await invited(lab, victim(), master);
    mesh.calls.length = 0;
    await expect(victim().node.join(url)).rejects.toMatchObject({ code: "join_refused" });
    const { master: leads, members, name } = victim().node.swarm(lab);
    expect([leads, name]).toEqual(["alice", "Lab"]);
    expect(members.get("alice")).toMatchObject({
      endpoint: alice.endpoint,
      publicKey: alice.pair.publicKey.text,
    });
    expect(membersAt(victim(), lab)).toEqual(["alice", "bob"]);
    expect(mesh.calls.filter((call) => call.url.includes("mallory"))).toEqual([]);
  });
});

it("a request that was rejected holds the name of nobody", async () => {
  const { id } = await alice.node.create("Lab", { requireApproval: true });
  const invite = await alice.node.invite(id);
  const mallory = await mesh.agent("mallory");
  mesh.foreign.set("mallory.example.com", () => ({ status: 404, body: "" }));
  const asBob = joinBody(mallory, tokenOf(invite), { agent_id: "bob" });
  expect((await alice.post("/swarm/join", asBob)).status).toBe(202);
  await alice.node.reject(id, "bob");
  await expect(bob.node.join(invite)).rejects.toMatchObject({ code: "pending" });
  expect(alice.node.pending(id)).toMatchObject([{ agentId: "bob", publicKey: bob.pair.publicKey.text }]);
});

it("8.10: where joiners must be confirmed, a signature does not make another's endpoint one's own", async () => {
  const strict = await mesh.agent("strict", { checkJoiners: "required" });
  const { id } = await strict.node.create("Lab");
  const token = tokenOf(await strict.node.invite(id));
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

it("8.13: somebody's invite does not make a member fetch the list of members for him", async () => {
  const lab = await mesh.swarm(alice, bob);
  const { endpoint, pair } = await mesh.agent("mallory");
  const fetched: number[] = [];
  mesh.foreign.set("mallory.example.com", async ({ body }) => {
    // He hands on what he is sent, to the real master.
    fetched.push((await alice.post("/swarm/join", body)).status);
    return { status: 500, body: "" };
  });
  const issuedAt = Math.floor(mesh.clock.now() / 1_000);
  const token = signInvite({ swarmId: lab, master: "alice", endpoint, issuedAt }, pair);
  await expect(bob.node.join(formatInviteUrl(lab, endpoint, token))).rejects.toMatchObject({
    code: "join_refused",
  });
  expect(fetched).toEqual([]);
});
