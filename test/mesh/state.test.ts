/** Checklist items 60–62: `state.json`, export, import and merge. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { readStateFile } from "../../src/mesh/state/file.js";
import { type Agent, alice, bob, carol, forEachTest, membersAt, mesh } from "./harness.js";

forEachTest({ onDisk: true });
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob);
});

const exported = (agent: Agent) => JSON.parse(JSON.stringify(agent.node.exportState()));

describe("state.json", () => {
  it("[ASP-STAT-01, ASP-STAT-02] 60. follows every change, is valid, private, and whole", async () => {
    const path = join(bob.directory, "state.json");
    const read = () => readStateFile(readFileSync(path, "utf8"));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(read()).toMatchObject({ schema_version: "1.0.0", agent_id: "bob" });
    expect(Object.keys(JSON.parse(readFileSync(path, "utf8")))).toEqual([
      "schema_version",
      "agent_id",
      "swarms",
      "muted_swarms",
      "muted_agents",
      "public_keys",
    ]);
    await bob.node.mute("agent", "eve");
    expect(read().muted_agents).toEqual(["eve"]);
    await bob.node.leave(lab);
    expect(read().swarms).toEqual({});
    expect(statSync(join(bob.directory, "invites")).mode & 0o777).toBe(0o700);
  });

  it("[ASP-STAT-04] keys that were fetched are in it with when and where they came from, also after a restart", async () => {
    const content = JSON.stringify({
      action: "member_joined",
      swarm_id: lab,
      agent_id: "carol",
      endpoint: carol.endpoint,
      joined_at: new Date(mesh.clock.now()).toISOString(),
    });
    await bob.post("/swarm/message", alice.message({ swarm_id: lab, type: "system", content }));
    const fetched = {
      public_key: carol.pair.publicKey.text,
      fetched_at: new Date(mesh.clock.now()).toISOString(),
      endpoint: carol.endpoint,
    };
    const keysAt = ({ directory }: Agent) =>
      JSON.parse(readFileSync(join(directory, "state.json"), "utf8")).public_keys;
    expect(keysAt(bob)).toEqual({ carol: fetched });
    expect(keysAt(await mesh.agent("bob", {}, mesh.crash(bob)))).toEqual({ carol: fetched });
  });

  it("[ASP-STAT-07, ASP-STAT-08] 61. an export says when; an import takes that away, and refuses what it does not know", async () => {
    const state = exported(bob);
    expect(state.exported_at).toBe(new Date(mesh.clock.now()).toISOString());
    await bob.node.importState(JSON.stringify(state), { mode: "replace" });
    expect(readFileSync(join(bob.directory, "state.json"), "utf8")).not.toContain("exported_at");
    expect(membersAt(bob, lab)).toEqual(["alice", "bob"]);
    const wrong = [
      { ...state, schema_version: "3.0.0" },
      { ...state, agent_id: "mallory" },
      { ...state, swarms: { [lab]: { ...state.swarms[lab], master: "nobody" } } },
      { ...state, swarms: { [crypto.randomUUID()]: state.swarms[lab] } },
      { ...state, swarms: { [lab]: { ...state.swarms[lab], members: [] } } },
      {
        ...state,
        swarms: {
          [lab]: { ...state.swarms[lab], members: [{ ...state.swarms[lab].members[0], public_key: "x" }] },
        },
      },
      { ...state, muted_agents: ["a\nb"] },
    ];
    const before = exported(bob);
    for (const file of wrong) {
      await expect(bob.node.importState(JSON.stringify(file), { mode: "replace" })).rejects.toMatchObject({
        code: "invalid_state_file",
      });
    }
    await expect(bob.node.importState("{", { mode: "replace" })).rejects.toMatchObject({
      code: "invalid_state_file",
    });
    expect(exported(bob)).toEqual(before);
  });

  it("61. an import that the store refuses changes nothing (8.24)", async () => {
    const before = exported(bob);
    const commit = bob.store.commit.bind(bob.store);
    bob.store.commit = () => Promise.reject(new Error("disk full"));
    await expect(
      bob.node.importState(JSON.stringify({ ...before, muted_agents: ["eve"] }), { mode: "replace" }),
    ).rejects.toThrow("disk full");
    bob.store.commit = commit;
    expect(exported(bob)).toEqual(before);
  });

  it("62. a merge keeps what the file does not have, and never changes keys or masters silently", async () => {
    const state = exported(bob);
    await carol.node.join(await alice.node.invite(lab));
    await mesh.settle();
    const swarm = state.swarms[lab];
    swarm.master = "bob";
    swarm.members[0] = { ...swarm.members[0], agent_id: "alice", public_key: carol.pair.publicKey.text };
    const { conflicts } = await bob.node.importState(JSON.stringify(state), { mode: "merge" });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(conflicts).toHaveLength(2);
    expect(bob.node.swarm(lab).master).toBe("alice");
    expect(bob.node.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("62. a 2.0.0 export of the reference is taken, its messages once", async () => {
    const at = "2026-11-16T01:28:35.664000+00:00";
    const message = {
      message_id: crypto.randomUUID(),
      swarm_id: lab,
      sender_id: "alice",
      recipient_id: "bob",
      message_type: "message",
      content: "old",
      received_at: at,
      status: "read",
      read_at: at,
      deleted_at: null,
    };
    const reference = { ...exported(bob), schema_version: "2.0.0", inbox: [message], outbox: [] };
    const first = await bob.node.importState(JSON.stringify(reference), { mode: "merge" });
    expect(first.counts.inbox).toBe(1);
    await bob.node.importState(JSON.stringify(reference), { mode: "merge" });
    expect(await bob.store.mesh.inbox({ limit: 9, box: "read" })).toMatchObject([{ content: "old" }]);
  });

  it("62. a 1.0.0 file with message_queue is taken; what waited in it is shown, and not processed", async () => {
    const queued = (content: string, status: string) => ({
      message_id: crypto.randomUUID(),
      swarm_id: lab,
      sender_id: "alice",
      type: "message",
      content,
      received_at: "2026-11-16T01:28:35.664000+00:00",
      status,
    });
    const message_queue = [queued("waiting", "pending"), queued("done", "completed")];
    await bob.node.importState(JSON.stringify({ ...exported(bob), message_queue }), { mode: "merge" });
    const inbox = (await bob.store.mesh.inbox({ limit: 9 })).filter(({ type }) => type === "message");
    expect(inbox.map(({ content, box }) => [content, box]).sort()).toEqual([
      ["done", "read"],
      ["waiting", "unread"],
    ]);
    expect(await bob.store.mesh.queued("pending", 9)).toEqual([]);
  });

  it("[ASP-AGNT-03] the tables are the truth: a node that is opened again knows what it knew", async () => {
    await bob.node.mute("swarm", lab, "quiet please");
    const before = exported(bob);
    const again = await mesh.agent("bob", {}, mesh.crash(bob));
    expect(exported(again)).toEqual(before);
    expect(again.node.core.view.mutedSwarms.get(lab)?.reason).toBe("quiet please");
  });
});
