/** An export that comes back to the agent it was made by: nothing that was decided since may be undone. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { keyPairFromSeed } from "../../src/mesh/identity/keys.js";
import { type Agent, Mesh, membersAt } from "./harness.js";

let mesh: Mesh;
let alice: Agent;
let bob: Agent;
let carol: Agent;
let lab: string;
beforeEach(async () => {
  mesh = new Mesh();
  alice = await mesh.agent("alice");
  bob = await mesh.agent("bob");
  carol = await mesh.agent("carol");
  lab = (await alice.node.create("Lab")).id;
});
afterEach(() => mesh.close());

const exported = () => JSON.stringify(alice.node.exportState());
const replacedBy = (state: string) => alice.node.importState(state, { mode: "replace" });

it("a revoked invite stays revoked", async () => {
  const invite = await alice.node.invite(lab);
  await alice.node.revoke(lab, invite);
  await replacedBy(exported());
  await expect(bob.node.join(invite)).rejects.toMatchObject({ code: "join_refused" });
  expect(membersAt(alice, lab)).toEqual(["alice"]);
});

it("an invite that was used up stays used up", async () => {
  const invite = await alice.node.invite(lab, { maxUses: 1 });
  await bob.node.join(invite);
  await replacedBy(exported());
  await expect(carol.node.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("who waited for approval still does", async () => {
  const { id } = await alice.node.create("Club", { requireApproval: true });
  await expect(bob.node.join(await alice.node.invite(id))).rejects.toMatchObject({ code: "pending" });
  await replacedBy(exported());
  expect(alice.node.pending(id)).toMatchObject([{ agentId: "bob" }]);
});

it("who was kicked stays out, also by a file from before the kick", async () => {
  const invite = await alice.node.invite(lab);
  await bob.node.join(invite);
  const before = exported();
  await alice.node.kick(lab, "bob");
  await mesh.settle();
  for (const mode of ["replace", "merge"] as const) {
    const { conflicts } = await alice.node.importState(before, { mode });
    expect(conflicts).toEqual([expect.stringContaining("bob was kicked")]);
    expect(membersAt(alice, lab)).toEqual(["alice"]);
  }
  await expect(bob.node.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("a swarm that the file does not have is gone with its invites and bans", async () => {
  const before = exported();
  const { id } = await alice.node.create("Other");
  const invite = await alice.node.invite(id);
  await replacedBy(before);
  expect(alice.node.swarms.map((swarm) => swarm.id)).toEqual([lab]);
  const left = (await alice.store.mesh.view()).filter((write) => write.kind === "mesh.invite.put");
  expect(left).toEqual([]);
  await expect(bob.node.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("a file from before a change of keys leaves a master that can invite, a member as long as it was", async () => {
  const joinedAt = alice.node.swarm(lab).members.get("alice")?.joinedAt;
  const before = exported();
  mesh.clock.jump(1_000);
  const pair = keyPairFromSeed(Buffer.alloc(32, 77));
  await alice.node.rotateKey({ pair, install: () => undefined });
  for (const mode of ["replace", "merge"] as const) {
    expect((await alice.node.importState(before, { mode })).conflicts).toEqual([]);
    const self = alice.node.swarm(lab).members.get("alice");
    expect(self).toMatchObject({ publicKey: pair.publicKey.text, joinedAt });
  }
  await bob.node.join(await alice.node.invite(lab));
  expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
});

it("every name that a swarm may have comes back, and every id", async () => {
  await alice.node.create("😀".repeat(200));
  await replacedBy(exported());
  expect(alice.node.swarms.map(({ name }) => [...name].length)).toContain(200);
  const odd = "11111111-1111-1111-1111-111111111111";
  await replacedBy(exported().replaceAll(lab, odd));
  expect(alice.node.swarm(odd).name).toBe("Lab");
});

it("what is muted is an agent, so that an export can come back", async () => {
  await expect(alice.node.mute("agent", "bob@lab")).rejects.toMatchObject({ code: "invalid_request" });
  await alice.node.mute("agent", "bob");
  await replacedBy(exported());
  expect([...alice.node.core.view.mutedAgents.keys()]).toEqual(["bob"]);
});

it.each(["merge", "replace"] as const)(
  "who was kicked by another stays out for a mere member, too (%s)",
  async (mode) => {
    for (const agent of [bob, carol]) await agent.node.join(await alice.node.invite(lab));
    await mesh.settle();
    const before = JSON.stringify(bob.node.exportState());
    await alice.node.kick(lab, "carol");
    await mesh.settle();
    const { conflicts } = await bob.node.importState(before, { mode });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    expect(conflicts.join()).toContain("carol");
  },
);

it("a swarm of the same name gets another alias, wherever in the file it stands", async () => {
  const state = alice.node.exportState();
  const other = crypto.randomUUID();
  const text = JSON.stringify(state).replace(
    /"swarms":\{("[^"]+"):(\{.*?\}\})/u,
    (whole, id: string, swarm: string) =>
      whole.replace(`${id}:`, `"${other}":${swarm.replaceAll(lab, other)},${id}:`),
  );
  await replacedBy(text);
  expect(new Map(alice.node.swarms.map(({ id, alias }) => [id, alias]))).toEqual(
    new Map([
      [lab, "lab"],
      [other, "lab-2"],
    ]),
  );
});
