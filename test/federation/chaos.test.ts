/**
 * Two servers under load, killed at random, over connections cut at random. At the end every task has ended and every
 * message was processed exactly once. `CHAOS_SEED` repeats a run's choices, `CHAOS_TASKS` makes it longer.
 */
import { randomInt, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Entry } from "../../src/engine/task/entries.js";
import { fold } from "../../src/engine/task/evolve.js";
import { openStore } from "../../src/store/index.js";
import { type CompiledChild, compileChild } from "../crash/compile.js";
import { seededRandom } from "../kit/seeded.js";
import { freePort, ServerProcess, Wire } from "./processes.js";
import { until } from "./until.js";

const SEED = Number(process.env.CHAOS_SEED ?? randomInt(2 ** 31));
const TASKS = Number(process.env.CHAOS_TASKS ?? 500);
const random = seededRandom(SEED).next;
const between = (low: number, high: number) => low + random() * (high - low);

const SETTINGS = {
  // Longer than every outage: an undelivered message is an error here.
  deliveryTimeout: 300_000,
  attemptTimeout: 2_000,
  healthInterval: 200,
  failuresToInactive: 100_000,
  requestsPerMinute: 0,
} as const;

let child: CompiledChild;
let alpha: ServerProcess;
let beta: ServerProcess;
let wires: Wire[];

beforeAll(async () => {
  child = compileChild("federation");
  const [alphaPort, betaPort] = [await freePort(), await freePort()];
  const common = { settings: SETTINGS, slow: 20 };
  alpha = new ServerProcess(child.script, { ...common, name: "alpha", others: ["beta"], port: alphaPort });
  beta = new ServerProcess(child.script, { ...common, name: "beta", others: ["alpha"], port: betaPort });
  wires = [new Wire(alphaPort), new Wire(betaPort)];
  await Promise.all([alpha.start(), beta.start(), ...wires.map((wire) => wire.open())]);
  await alpha.register("beta", wires[1]?.url ?? "");
  await beta.register("alpha", wires[0]?.url ?? "");
});
afterAll(async () => {
  await Promise.all([alpha.kill(), beta.kill(), ...wires.map((wire) => wire.close())]);
  alpha.remove();
  beta.remove();
  child.remove();
});

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Posts each task until it is acknowledged; the key makes sure that it is one task. */
async function post(taskId: string, body: string): Promise<void> {
  for (;;) {
    try {
      const { status } = await alpha.call("/message", {
        token: "user:ann",
        headers: { "idempotency-key": taskId },
        json: { body, task_id: taskId, wait: false },
      });
      if (status === 202 || status === 200) return;
    } catch {
      // The server was killed, or is not back yet.
    }
    await pause(50);
  }
}

async function running(server: ServerProcess): Promise<number> {
  const { body } = await server.call("/admin/tasks?status=running&limit=1000", { token: "admin:root" });
  return (body as { tasks: unknown[] }).tasks.length;
}

interface Task {
  readonly id: string;
  readonly status: string;
  readonly entries: readonly Entry[];
}

/** Reads the store of a stopped server. */
async function tasksOf(server: ServerProcess): Promise<Map<string, Task[]>> {
  const store = await openStore({ directory: server.data, durability: "fast" });
  const journals = new Map<string, Entry[]>();
  for (let position = 0; ; ) {
    const rows = await store.readAll(position, 1_000);
    for (const row of rows) {
      const entries = journals.get(row.journal) ?? [];
      journals.set(row.journal, [...entries, ...(JSON.parse(row.data) as Entry[])]);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    position = last.position;
  }
  await store.close();
  const tasks = new Map<string, Task[]>();
  for (const entries of journals.values()) {
    const state = fold(entries);
    if (state === undefined) continue;
    tasks.set(state.taskId, [
      ...(tasks.get(state.taskId) ?? []),
      { id: state.taskId, status: state.status, entries },
    ]);
  }
  return tasks;
}

const sentBy = (entries: readonly Entry[], address: string, subject?: string) =>
  entries.filter(
    (entry) =>
      entry.t === "sent" &&
      entry.message.message.sender.address === address &&
      (subject === undefined || entry.message.message.subject === subject),
  );

it(`[MAIL-OURS-05] every task ends and every message is processed exactly once (CHAOS_SEED=${SEED})`, {
  timeout: 240_000,
}, async () => {
  console.info(`chaos: CHAOS_SEED=${SEED} CHAOS_TASKS=${TASKS}`);
  const ids = Array.from({ length: TASKS }, () => randomUUID());
  const wish = (index: number) => `ask ${index % 5 === 0 ? "slow@beta" : "clerk@beta"}: number ${index}`;
  let posting = true;
  let kills = 0;
  const chaos = async () => {
    while (posting || kills < 4) {
      await pause(between(50, 400));
      if (random() < 0.6) {
        wires[random() < 0.5 ? 0 : 1]?.cut();
        continue;
      }
      const victim = random() < 0.5 ? alpha : beta;
      kills++;
      await victim.kill();
      await pause(between(0, 200));
      await victim.start();
    }
  };
  const trouble = chaos();
  let next = 0;
  const poster = async () => {
    for (let index = next++; index < TASKS; index = next++) {
      await post(ids[index] ?? "", wish(index));
      // Spread the tasks over the whole run.
      await pause(between(0, 60));
    }
  };
  await Promise.all(Array.from({ length: 12 }, poster));
  posting = false;
  await trouble;
  await until(
    async () => ((await running(alpha)) === 0 ? true : undefined),
    "the end of all tasks at alpha",
    90_000,
  );
  await until(
    async () => ((await running(beta)) === 0 ? true : undefined),
    "the end of all tasks at beta",
    60_000,
  );
  await Promise.all([alpha.kill("SIGTERM"), beta.kill("SIGTERM")]);

  const [here, there] = [await tasksOf(alpha), await tasksOf(beta)];
  expect(here.size).toBe(TASKS);
  expect(there.size).toBe(TASKS);
  for (const [index, id] of ids.entries()) {
    const [own, ...others] = here.get(id) ?? [];
    const [adopted, ...more] = there.get(id) ?? [];
    if (own === undefined || adopted === undefined) throw new Error(`task ${id} is missing (seed ${SEED})`);
    const agent = index % 5 === 0 ? "slow" : "clerk";
    const body = agent === "slow" ? `late: number ${index}` : `beta says: number ${index}`;
    const completed = own.entries.filter((entry) => entry.t === "completed");
    const told = `seed ${SEED}, task ${id}: ${own.entries.map(({ t }) => t)} / ${adopted.entries.map(({ t }) => t)}`;
    expect([others.length, more.length, own.status, adopted.status], told).toEqual([
      0,
      0,
      "completed",
      "completed",
    ]);
    expect(
      completed.map((entry) => entry.message.message.body),
      told,
    ).toEqual([`${agent}@beta: ${body}`]);
    // One question left alpha and arrived at beta; one answer returned; one ending arrived at beta.
    expect(sentBy(own.entries, "boss", "Question"), told).toHaveLength(1);
    expect(sentBy(adopted.entries, "boss@alpha", "Question"), told).toHaveLength(1);
    expect(sentBy(adopted.entries, agent), told).toHaveLength(1);
    expect(sentBy(own.entries, `${agent}@beta`), told).toHaveLength(1);
    expect(
      adopted.entries.filter((entry) => entry.t === "turn"),
      told,
    ).toHaveLength(1);
    expect(
      adopted.entries.filter((entry) => entry.t === "completed"),
      told,
    ).toHaveLength(1);
    expect(
      own.entries.filter((entry) => entry.t === "carried" && !entry.ok),
      told,
    ).toEqual([]);
  }
  console.info(`chaos: ${kills} kills, ${alpha.lives} and ${beta.lives} lives`);
});
