/** `state.json`, export, import and merge. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { readStateDocument } from "../../src/mesh/state/format.js";
import { type Agent, alice, bob, carol, forEachTest, membersAt, mesh } from "./harness.js";

forEachTest({ onDisk: true });
let lab: string;
beforeEach(async () => {
  lab = await mesh.swarm(alice, bob);
});

const exported = (agent: Agent) => JSON.parse(JSON.stringify(agent.agent.exportState()));

describe("state.json", () => {
  it("[ASP-STAT-01, ASP-STAT-02] the state file follows every change, and is valid, private and complete", async () => {
    const path = join(bob.directory, "state.json");
    const read = () => readStateDocument(readFileSync(path, "utf8"), mesh.clock.now());
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
    await bob.agent.mute("agent", "eve");
    expect(read().muted_agents).toEqual(["eve"]);
    await bob.agent.leave(lab);
    expect(read().swarms).toEqual({});
    expect(statSync(join(bob.directory, "invites")).mode & 0o777).toBe(0o700);
  });

  it("[ASP-STAT-04] the state file has fetched keys with their time and endpoint, also after a restart", async () => {
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

  it("[ASP-STAT-07, ASP-STAT-08] an export has its time; an import drops it, and refuses unknown versions", async () => {
    const state = exported(bob);
    expect(state.exported_at).toBe(new Date(mesh.clock.now()).toISOString());
    await bob.agent.importState(JSON.stringify(state), { mode: "replace" });
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
      await expect(bob.agent.importState(JSON.stringify(file), { mode: "replace" })).rejects.toMatchObject({
        code: "invalid_state_file",
      });
    }
    await expect(bob.agent.importState("{", { mode: "replace" })).rejects.toMatchObject({
      code: "invalid_state_file",
    });
    expect(exported(bob)).toEqual(before);
  });

  it("an import that the store refuses changes nothing", async () => {
    const before = exported(bob);
    const commit = bob.store.commit.bind(bob.store);
    bob.store.commit = () => Promise.reject(new Error("disk full"));
    await expect(
      bob.agent.importState(JSON.stringify({ ...before, muted_agents: ["eve"] }), { mode: "replace" }),
    ).rejects.toThrow("disk full");
    bob.store.commit = commit;
    expect(exported(bob)).toEqual(before);
  });

  it("a merge keeps what the file lacks, and never changes keys or masters silently", async () => {
    const state = exported(bob);
    await carol.agent.join(await alice.agent.invite(lab));
    await mesh.settle();
    const swarm = state.swarms[lab];
    swarm.master = "bob";
    swarm.members[0] = { ...swarm.members[0], agent_id: "alice", public_key: carol.pair.publicKey.text };
    const { conflicts } = await bob.agent.importState(JSON.stringify(state), { mode: "merge" });
    expect(membersAt(bob, lab)).toEqual(["alice", "bob", "carol"]);
    expect(conflicts).toHaveLength(2);
    expect(bob.agent.swarm(lab).master).toBe("alice");
    expect(bob.agent.swarm(lab).members.get("alice")?.publicKey).toBe(alice.pair.publicKey.text);
  });

  it("a 2.0.0 export of the reference is imported, its messages once", async () => {
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
    const first = await bob.agent.importState(JSON.stringify(reference), { mode: "merge" });
    expect(first.counts.inbox).toBe(1);
    await bob.agent.importState(JSON.stringify(reference), { mode: "merge" });
    expect(await bob.store.mesh.inbox({ limit: 9, box: "read" })).toMatchObject([{ content: "old" }]);
  });

  it("a 1.0.0 file with message_queue is imported; its pending messages are shown, and not processed", async () => {
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
    await bob.agent.importState(JSON.stringify({ ...exported(bob), message_queue }), { mode: "merge" });
    const inbox = (await bob.store.mesh.inbox({ limit: 9 })).filter(({ type }) => type === "message");
    expect(inbox.map(({ content, box }) => [content, box]).sort()).toEqual([
      ["done", "read"],
      ["waiting", "unread"],
    ]);
    expect(await bob.store.mesh.queued("pending", 9)).toEqual([]);
  });

  it("[ASP-AGNT-03] the tables are the truth: a reopened agent has the same state", async () => {
    await bob.agent.mute("swarm", lab, "quiet please");
    const before = exported(bob);
    const again = await mesh.agent("bob", {}, mesh.crash(bob));
    expect(exported(again)).toEqual(before);
    expect(again.agent.context.view.mutedSwarms.get(lab)?.reason).toBe("quiet please");
  });
});

describe("[MESH-M-19] contradictions in a state file", () => {
  type Exported = ReturnType<typeof exported>;
  const cases: [string, (state: Exported) => void, string][] = [
    [
      "an agent twice",
      (state) =>
        state.swarms[lab].members.push({
          ...state.swarms[lab].members[0],
          public_key: carol.pair.publicKey.text,
        }),
      "lists an agent twice",
    ],
    [
      "a swarm under two spellings",
      (state) => {
        state.swarms[lab.toUpperCase()] = state.swarms[lab];
      },
      "occurs twice",
    ],
    [
      "a swarm without this agent",
      (state) => {
        state.swarms[lab].members = state.swarms[lab].members.filter(
          (one: { agent_id: string }) => one.agent_id !== "bob",
        );
      },
      "does not list bob",
    ],
    [
      "a join in the year 9999",
      (state) => {
        state.swarms[lab].members[0].joined_at = "9999-12-31T00:00:00.000Z";
      },
      "in the future",
    ],
    [
      "an id with escapes in public_keys",
      (state) => {
        state.public_keys["\u001b[2Jeve"] = {
          public_key: carol.pair.publicKey.text,
          fetched_at: state.exported_at,
        };
      },
      "public_keys",
    ],
  ];
  it.each(cases)("%s is refused, and nothing changes", async (_, change, reason) => {
    const state = exported(bob);
    const before = JSON.stringify({ ...state, exported_at: "" });
    change(state);
    for (const mode of ["merge", "replace"] as const) {
      await expect(bob.agent.importState(JSON.stringify(state), { mode })).rejects.toMatchObject({
        code: "invalid_state_file",
        message: expect.stringContaining(reason),
      });
    }
    expect(JSON.stringify({ ...exported(bob), exported_at: "" })).toBe(before);
  });

  it("a key fetched in the future is fetched again in time", async () => {
    const state = exported(bob);
    state.public_keys.eve = { public_key: carol.pair.publicKey.text, fetched_at: "9999-12-31T00:00:00.000Z" };
    await bob.agent.importState(JSON.stringify(state), { mode: "merge" });
    expect(bob.agent.context.view.keys.get("eve")?.fetchedAt).toBe(mesh.clock.now());
  });
});
