/** Recorded requests of the reference implementation, replayed to an agent. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Agent, bodyOf, Mesh, membersAt } from "./harness.js";

const Part = z.object({
  state: z.object({ swarms: z.record(z.string(), z.unknown()) }).loose(),
  sent: z.array(z.object({ path: z.string(), headers: z.record(z.string(), z.string()), body: z.string() })),
});
const Wire = z.object({
  agents: z.record(z.string(), z.object({ endpoint: z.string(), public_key: z.string() })),
  lab: Part,
  den: Part,
  exported: z.object({ agent_id: z.string() }).loose(),
});
type Part = z.output<typeof Part>;

const file = new URL("../data/reference-wire.json", import.meta.url);
const { agents, lab, den, exported } = Wire.parse(JSON.parse(readFileSync(file, "utf8")));
const LAST = "2026-11-16T13:07:00.000Z";

let mesh: Mesh;
let alice: Agent;

beforeEach(async () => {
  mesh = new Mesh();
  mesh.clock.jump(Date.parse(LAST) - mesh.clock.now());
  alice = await mesh.agent("alice");
  // Info requests are answered as the recorded agents answered them.
  mesh.foreign.set("localhost", ({ url }) => {
    const [agent_id, info] =
      Object.entries(agents).find(([, { endpoint }]) => url === `${endpoint}/info`) ?? [];
    const known = info !== undefined && agent_id !== "alice";
    return known
      ? { status: 200, body: JSON.stringify({ agent_id, ...info }) }
      : { status: 200, body: JSON.stringify({ status: "queued" }) };
  });
});
afterEach(() => mesh.close());

async function beforeThe({ state }: Part): Promise<string> {
  await alice.agent.importState(JSON.stringify(state), { mode: "replace" });
  return Object.keys(state.swarms)[0] ?? "";
}

async function play({ sent }: Part, from = 0, to = sent.length): Promise<number[]> {
  const statuses: number[] = [];
  for (const { path, headers, body } of sent.slice(from, to)) {
    statuses.push((await alice.post(path, body, headers)).status);
  }
  return statuses;
}

describe("recorded requests of the reference", () => {
  it("recorded joins, messages of every kind and a leave are accepted by a master", async () => {
    const swarmId = await beforeThe(lab);
    expect(await play(lab, 0, 2)).toEqual([200, 200]);
    expect(membersAt(alice, swarmId)).toEqual(["alice", "remy", "rosa"]);
    expect(alice.agent.swarm(swarmId).members.get("remy")?.publicKey).toBe(agents.remy?.public_key);

    expect(await play(lab, 2)).toEqual(lab.sent.slice(2).map(() => 200));
    const taken = (await alice.store.mesh.inbox({ limit: 100 })).filter(({ type }) => type === "message");
    expect(taken.map(({ content }) => content).sort()).toEqual(
      ['direct: ✓ "quoted"\nsecond line', "to all of you", "with everything", "I agree"].sort(),
    );
    const everything = taken.find(({ content }) => content === "with everything");
    expect(JSON.parse(everything?.envelope ?? "")).toMatchObject({
      priority: "high",
      attachments: [{ type: "url" }, { type: "inline", mime_type: "text/plain", content: "aGVsbG8=" }],
      references: [
        { type: "github_issue", repo: "octo/cat", number: 7, action: "claimed" },
        { type: "url", url: "https://example.com/b" },
      ],
      metadata: { topic: "lunch", count: 3, yes: true, none: null },
    });
    expect(taken.find(({ content }) => content === "I agree")).toMatchObject({
      inReplyTo: expect.any(String),
      threadId: expect.any(String),
    });
    expect(membersAt(alice, swarmId)).toEqual(["alice", "rosa"]);
  });

  it("recorded announcements and kicks are accepted by a member, including one whose reason broke its JSON", async () => {
    const swarmId = await beforeThe(den);
    const contents = den.sent.map(({ body }) => String(JSON.parse(body).content));
    const broken = contents.findIndex((content) => content.includes('"too loud"'));
    expect(() => JSON.parse(contents[broken] ?? "")).toThrow(SyntaxError);

    expect(await play(den, 0, broken)).toEqual([200, 200]);
    expect(membersAt(alice, swarmId)).toEqual(["alice", "bob", "remy", "rosa"]);
    expect(alice.agent.swarm(swarmId).members.get("rosa")?.publicKey).toBe(agents.rosa?.public_key);
    expect(await play(den, broken, broken + 1)).toEqual([200]);
    expect(membersAt(alice, swarmId)).toEqual(["alice", "bob", "remy"]);
    expect(await play(den, broken + 1, broken + 2)).toEqual([200]);
    expect(membersAt(alice, swarmId)).toEqual(["alice", "remy"]);
    expect(await play(den, broken + 2)).toEqual([200]);
    expect(alice.agent.swarms).toEqual([]);
  });

  it("a recorded message is refused when a signed field is changed", async () => {
    const swarmId = await beforeThe(den);
    const members = membersAt(alice, swarmId);
    for (const { path, headers, body } of den.sent) {
      const message = JSON.parse(body);
      const changed = { ...message, content: message.content.replace("agent_id", "agent_id ") };
      const response = await alice.post(path, changed, headers);
      expect([response.status, bodyOf(response).error?.code]).toEqual([401, "INVALID_SIGNATURE"]);
    }
    expect(membersAt(alice, swarmId)).toEqual(members);
  });

  it("a recorded export can be imported by its agent", async () => {
    const rosa = await mesh.agent(exported.agent_id);
    const { conflicts, counts } = await rosa.agent.importState(JSON.stringify(exported), { mode: "replace" });
    expect({ conflicts, counts }).toMatchObject({ conflicts: [], counts: { swarms: 2, mutedAgents: 1 } });
    expect(rosa.agent.swarms.map(({ name, master }) => [name, master]).sort()).toEqual([
      ["Den", "remy"],
      ["Lab", "alice"],
    ]);
  });
});
