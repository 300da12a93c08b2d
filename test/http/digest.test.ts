/** Tasks in figures: what the digest says follows from the journal. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fieldOf, gate, type Harness, startServer } from "./harness.js";
import { captureSwarm } from "./swarm.js";

const ANN = "user-token-ann";
const ADMIN = "admin-token-root";

let harness: Harness;
let held: ReturnType<typeof gate>;
beforeEach(async () => {
  held = gate();
  harness = await startServer({ room: { swarm: captureSwarm({ hold: () => held.opened }) } });
});
afterEach(async () => {
  held.open();
  await harness.close();
});

async function post(taskId: string, body: string, more = {}): Promise<void> {
  await harness.call("/message", { token: ANN, json: { body, task_id: taskId, ...more } });
}

async function digestOf(task: string): Promise<Record<string, unknown>> {
  const { body } = await harness.call("/tasks/digest", { token: ANN, json: { tasks: [task] } });
  const [digest] = [fieldOf(body, "digests")].flat();
  if (typeof digest !== "object" || digest === null) throw new Error(`no digest of ${task}`);
  return { ...digest };
}

describe("a digest", () => {
  it("counts what the journal has", async () => {
    await post("t", "[action] Tokyo");
    const { body } = await harness.call("/tasks/t/journal", { token: ANN });
    const entries = [fieldOf(body, "entries")].flat();
    const kinds = (kind: string) => entries.filter((entry) => fieldOf(entry, "t") === kind).length;
    const digest = await digestOf("t");
    const steps = await harness.mailroom.runtime.read(String(fieldOf(body, "key")), (state) => state.steps);
    expect(digest).toMatchObject({
      task_id: "t",
      number: entries.length,
      turns: kinds("turn"),
      failed_turns: 0,
      actions: kinds("action_started"),
      failed_actions: 0,
      steps,
      agents: ["supervisor", "weather"],
      open: [],
      held: null,
      paused_at: null,
      cost: null,
      answerers: ["user:user-ann"],
    });
    expect([digest.lanes].flat(1)).toHaveLength(kinds("turn"));
    // One more round is added to what is known.
    await post("t", "[raise]");
    expect(await digestOf("t")).toMatchObject({ failed_turns: 1, turns: kinds("turn") + 1 });
  });

  it("says what waits for a person, and since when", async () => {
    await post("t", "[two] breakpoints");
    const digest = await digestOf("t");
    expect(digest).toMatchObject({
      paused_at: expect.any(Number),
      open: [
        { agent: "weather", name: "ask_human", arguments: JSON.stringify({ question: "umbrella?" }) },
        { agent: "weather", name: "ask_human" },
      ],
    });
    expect([digest.lanes].flat(1).at(-1)).toMatchObject({ 3: 4 });
    const calls = [digest.open].flat();
    const results = calls.map((call) => ({ call_id: fieldOf(call, "call_id"), content: "yes" }));
    await harness.call("/tasks/t/breakpoint", { token: ANN, json: { results } });
    expect(await digestOf("t")).toMatchObject({ open: [], paused_at: null });
  });

  it("shows who works now", async () => {
    await post("t", "[hold]", { wait: false });
    let digest = await digestOf("t");
    while (Number(digest.turns) < 1) digest = await digestOf("t");
    expect(digest.agents).toEqual(["supervisor", "weather"]);
    expect([digest.lanes].flat(1).at(-1)).toMatchObject({ 0: 1, 3: 2 });
  });

  it("is bounded however long the task is", async () => {
    for (let round = 0; round < 60; round++) await post("t", "[action] Tokyo");
    const digest = await digestOf("t");
    expect(Number(digest.turns)).toBeGreaterThan(200);
    expect([digest.lanes].flat(1).length).toBeLessThanOrEqual(120);
  });

  it("leaves out what is not the caller's", async () => {
    await post("t", "[direct] secret");
    const bob = await harness.call("/tasks/digest", {
      token: "user-token-bob",
      json: { tasks: ["t", "none"] },
    });
    expect(bob.body).toEqual({ digests: [] });
    const key = String((await digestOf("t")).key);
    const admin = await harness.call("/admin/tasks/digest", { token: ADMIN, json: { keys: [key, "none"] } });
    expect(admin.body).toMatchObject({ digests: [{ key, turns: 1 }] });
    expect((await harness.call("/tasks/digest", { token: ANN, json: { tasks: [] } })).status).toBe(400);
    const many = Array.from({ length: 101 }, (_, n) => `t${n}`);
    expect((await harness.call("/tasks/digest", { token: ANN, json: { tasks: many } })).status).toBe(400);
  });
});
