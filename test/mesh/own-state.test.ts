/** Importing an agent's own export: nothing that was decided since is undone. */
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
  lab = (await alice.agent.create("Lab")).id;
});
afterEach(() => mesh.close());

const exported = () => JSON.stringify(alice.agent.exportState());
const replacedBy = (state: string) => alice.agent.importState(state, { mode: "replace" });

it("a revoked invite stays revoked after an import", async () => {
  const invite = await alice.agent.invite(lab);
  await alice.agent.revoke(lab, invite);
  await replacedBy(exported());
  await expect(bob.agent.join(invite)).rejects.toMatchObject({ code: "join_refused" });
  expect(membersAt(alice, lab)).toEqual(["alice"]);
});

it("a used up invite stays used up after an import", async () => {
  const invite = await alice.agent.invite(lab, { maxUses: 1 });
  await bob.agent.join(invite);
  await replacedBy(exported());
  await expect(carol.agent.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("a pending join stays pending after an import", async () => {
  const { id } = await alice.agent.create("Club", { requireApproval: true });
  await expect(bob.agent.join(await alice.agent.invite(id))).rejects.toMatchObject({ code: "pending" });
  await replacedBy(exported());
  expect(alice.agent.pending(id)).toMatchObject([{ agentId: "bob" }]);
});

it("a kicked member stays out, even with a file from before the kick", async () => {
  const invite = await alice.agent.invite(lab);
  await bob.agent.join(invite);
  const before = exported();
  await alice.agent.kick(lab, "bob");
  await mesh.settle();
  for (const mode of ["replace", "merge"] as const) {
    const { conflicts } = await alice.agent.importState(before, { mode });
    expect(conflicts).toEqual([expect.stringContaining("bob was kicked")]);
    expect(membersAt(alice, lab)).toEqual(["alice"]);
  }
  await expect(bob.agent.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("a swarm that is not in the file is removed with its invites and bans", async () => {
  const before = exported();
  const { id } = await alice.agent.create("Other");
  const invite = await alice.agent.invite(id);
  await replacedBy(before);
  expect(alice.agent.swarms.map((swarm) => swarm.id)).toEqual([lab]);
  const left = (await alice.store.mesh.view()).filter((write) => write.kind === "mesh.invite.put");
  expect(left).toEqual([]);
  await expect(bob.agent.join(invite)).rejects.toMatchObject({ code: "join_refused" });
});

it("a file from before a key change leaves the master able to invite, and keeps the time of joining", async () => {
  const joinedAt = alice.agent.swarm(lab).members.get("alice")?.joinedAt;
  const before = exported();
  mesh.clock.jump(1_000);
  const pair = keyPairFromSeed(Buffer.alloc(32, 77));
  await alice.agent.rotateKey({ pair, install: () => undefined });
  for (const mode of ["replace", "merge"] as const) {
    expect((await alice.agent.importState(before, { mode })).conflicts).toEqual([]);
    const self = alice.agent.swarm(lab).members.get("alice");
    expect(self).toMatchObject({ publicKey: pair.publicKey.text, joinedAt });
  }
  await bob.agent.join(await alice.agent.invite(lab));
  expect(membersAt(alice, lab)).toEqual(["alice", "bob"]);
});

it("every valid swarm name and id survives an export and import", async () => {
  await alice.agent.create("😀".repeat(200));
  await replacedBy(exported());
  expect(alice.agent.swarms.map(({ name }) => [...name].length)).toContain(200);
  const odd = "11111111-1111-1111-1111-111111111111";
  await replacedBy(exported().replaceAll(lab, odd));
  expect(alice.agent.swarm(odd).name).toBe("Lab");
});

it("only valid agent ids can be muted, so that an export can be imported", async () => {
  await expect(alice.agent.mute("agent", "bob@lab")).rejects.toMatchObject({ code: "invalid_request" });
  await alice.agent.mute("agent", "bob");
  await replacedBy(exported());
  expect([...alice.agent.context.view.mutedAgents.keys()]).toEqual(["bob"]);
});

it.each(["merge", "replace"] as const)(
  "an agent kicked by the master stays out for an ordinary member (%s)",
  async (mode) => {
    for (const agent of [bob, carol]) await agent.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    const before = JSON.stringify(bob.agent.exportState());
    await alice.agent.kick(lab, "carol");
    await mesh.settle();
    const { conflicts } = await bob.agent.importState(before, { mode });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    expect(conflicts.join()).toContain("carol");
  },
);

it("a swarm of the same name gets another alias, wherever it is in the file", async () => {
  const state = alice.agent.exportState();
  const other = crypto.randomUUID();
  const text = JSON.stringify(state).replace(
    /"swarms":\{("[^"]+"):(\{.*?\}\})/u,
    (whole, id: string, swarm: string) =>
      whole.replace(`${id}:`, `"${other}":${swarm.replaceAll(lab, other)},${id}:`),
  );
  await replacedBy(text);
  expect(new Map(alice.agent.swarms.map(({ id, alias }) => [id, alias]))).toEqual(
    new Map([
      [lab, "lab"],
      [other, "lab-2"],
    ]),
  );
});
