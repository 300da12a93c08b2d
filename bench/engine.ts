/** The engine: messages, tasks, latency, start-up, recovery, memory, and what a large store costs. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentAnswer, AgentFunction } from "../src/engine/agent.js";
import type { SwarmDefinition } from "../src/engine/definition.js";
import { type Durability, defineSwarm, Mailroom, type MailroomOptions } from "../src/index.js";
import { groupCommits, openForgetfulStore, seconds, singleCommits } from "./commits.js";
import { percentile, Report } from "./report.js";

const report = new Report("engine");
const QUICK = process.argv.includes("--quick");
const LIMITS = { turns: 1024, turnsPerInstance: 1024 } as const;

let calls = 0;
const call = (name: string, args: Record<string, unknown>): AgentAnswer => ({
  calls: [{ id: `c${++calls}`, name, args }],
});

function agent(name: string, commTargets: string[], canCompleteTasks: boolean, run: AgentFunction) {
  return {
    name,
    commTargets,
    canCompleteTasks,
    enableEntrypoint: canCompleteTasks,
    enableInterswarm: false,
    toolFormat: "responses" as const,
    actions: [],
    excludeTools: [],
    mind: { kind: "local" as const, run },
  };
}

/** Two agents that count, each hop a message; the body is the number, so that no two messages are alike. */
function pingPong(hops: number): SwarmDefinition {
  const player =
    (other: string, tool: string): AgentFunction =>
    ({ messages: [{ message }] }) => {
      const count = Number(message.body);
      if (tool === "send_request" && count >= hops)
        return call("task_complete", { finish_message: message.body });
      return call(tool, { target: other, subject: "count", body: String(count + 1) });
    };
  return defineSwarm({
    name: "pingpong",
    agents: [
      agent("ping", ["pong"], true, player("pong", "send_request")),
      agent("pong", ["ping"], false, player("ping", "send_response")),
    ],
  });
}

/** supervisor → weather → supervisor → complete. */
function threeHops(): SwarmDefinition {
  return defineSwarm({
    name: "threehops",
    agents: [
      agent("supervisor", ["weather"], true, ({ messages: [{ msg_type, message }] }) =>
        msg_type === "response"
          ? call("task_complete", { finish_message: message.body })
          : call("send_request", { target: "weather", subject: "Forecast", body: message.body }),
      ),
      agent("weather", ["supervisor"], false, () =>
        call("send_response", { target: "supervisor", subject: "Re: Forecast", body: "sunny, 21 °C" }),
      ),
    ],
  });
}

async function withMailroom<T>(
  swarm: SwarmDefinition,
  durability: Durability,
  use: (mailroom: Mailroom) => Promise<T>,
  limits: MailroomOptions["limits"] = LIMITS,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const mailroom = await Mailroom.open({ swarm, data: directory, durability, limits });
  try {
    return await use(mailroom);
  } finally {
    await mailroom.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function messagesPerSecond(tasks: number, hops: number, durability: Durability): Promise<number> {
  return withMailroom(pingPong(hops), durability, (mailroom) => askAll(mailroom, tasks, hops));
}

async function askAll(mailroom: Mailroom, tasks: number, hops: number): Promise<number> {
  const took = await seconds(() =>
    Promise.all(Array.from({ length: tasks }, (_, n) => mailroom.user(`user-${n % 16}`).ask("0"))),
  );
  return (tasks * hops) / took;
}

/** The engine alone: the same messages with nothing written. */
async function withoutStore(tasks: number, hops: number): Promise<number> {
  const store = await openForgetfulStore();
  const mailroom = await Mailroom.open({ swarm: pingPong(hops), store, limits: LIMITS });
  try {
    return await askAll(mailroom, tasks, hops);
  } finally {
    await mailroom.close();
    await store.close();
  }
}

/** One thread does both, so the time of a message is that of the engine and that of the store together. */
async function manyTasks(durability: Durability): Promise<void> {
  const where = { store: "sqlite", durability };
  const hops = QUICK ? 200 : 800;
  for (const tasks of [64, 256]) {
    const engine = await withoutStore(tasks, hops);
    const store = await groupCommits(durability, tasks, hops);
    const value = await messagesPerSecond(tasks, hops, durability);
    const limit = 1 / (1 / engine + 1 / store);
    const whole = (rate: number) => Math.round(rate).toLocaleString("en");
    report.add({
      ...where,
      what: `messages, ping-pong over ${tasks} tasks`,
      value,
      unit: "/s",
      note: `${Math.round((100 * value) / limit)} % of ${whole(limit)}: the engine alone ${whole(engine)}, the store alone ${whole(store)}`,
    });
  }
}

async function speed(): Promise<void> {
  // What is measured is a process that has run for a while, not the compiler.
  await messagesPerSecond(64, 200, "fast");
  for (const durability of ["fsync", "fast"] as const) {
    const where = { store: "sqlite", durability };
    const hops = durability === "fsync" ? 2_000 : 10_000;
    // Before and after, because a shared disk changes its mind.
    const before = await singleCommits(durability, hops);
    const alone = await messagesPerSecond(1, hops, durability);
    const after = await singleCommits(durability, hops);
    const bare = (before + after) / 2;
    report.add({ ...where, what: "single-row commits, one after the other", value: bare, unit: "/s" });
    const share = `${Math.round((100 * alone) / bare)} % of single-row commits`;
    report.add({ ...where, what: "messages, ping-pong in 1 task", value: alone, unit: "/s", note: share });
    await manyTasks(durability);
    await taskSpeed(durability);
  }
}

async function taskSpeed(durability: Durability): Promise<void> {
  const where = { store: "sqlite", durability };
  await withMailroom(threeHops(), durability, async (mailroom) => {
    const count = QUICK ? 2_000 : 20_000;
    for (const atOnce of [1, 64]) {
      const total = atOnce === 1 ? count / 20 : count;
      const latencies: number[] = [];
      let left = total;
      const worker = async (n: number) => {
        const user = mailroom.user(`user-${n}`);
        while (left-- > 0) {
          const start = performance.now();
          await user.ask("What is the weather in Tokyo?");
          latencies.push(performance.now() - start);
        }
      };
      const took = await seconds(() => Promise.all(Array.from({ length: atOnce }, (_, n) => worker(n))));
      latencies.sort((a, b) => a - b);
      const what = `three-hop tasks, ${atOnce} at once`;
      report.add({ ...where, what, value: latencies.length / took, unit: "tasks/s" });
      report.add({
        ...where,
        what: `${what}: post to answer, p50`,
        value: percentile(latencies, 0.5),
        unit: "ms",
      });
      report.add({
        ...where,
        what: `${what}: post to answer, p99`,
        value: percentile(latencies, 0.99),
        unit: "ms",
      });
    }
  });
}

/** A process that imports the library, opens an empty mailroom and answers one task. */
function startUp(): void {
  const script = fileURLToPath(new URL("./start-up.js", import.meta.url));
  const times = Array.from({ length: 7 }, () => {
    const start = performance.now();
    const { status, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    return performance.now() - start;
  }).sort((a, b) => a - b);
  const where = { store: "sqlite", durability: "fsync" };
  report.add({
    ...where,
    what: "process start to first answer, median",
    value: percentile(times, 0.5),
    unit: "ms",
  });
}

async function recovery(): Promise<void> {
  const count = QUICK ? 1_000 : 10_000;
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const never: AgentFunction = () => new Promise(() => {});
  const stuck = defineSwarm({ name: "threehops", agents: [agent("supervisor", [], true, never)] });
  const first = await Mailroom.open({ swarm: stuck, data: directory });
  for (let done = 0; done < count; done += 500) {
    await Promise.all(Array.from({ length: 500 }, () => first.user("ann").post("What is the weather?")));
  }
  await first.close({ grace: 0 });
  const done = defineSwarm({
    name: "threehops",
    agents: [agent("supervisor", [], true, () => call("task_complete", { finish_message: "done" }))],
  });
  let mailroom: Mailroom | undefined;
  const opened = await seconds(async () => {
    mailroom = await Mailroom.open({ swarm: done, data: directory, limits: LIMITS });
  });
  const where = { store: "sqlite", durability: "fsync" };
  report.add({
    ...where,
    what: `recovery of ${count.toLocaleString("en")} unfinished tasks`,
    value: opened * 1000,
    unit: "ms",
  });
  await mailroom?.close();
  rmSync(directory, { recursive: true, force: true });
}

/** With the limits that everybody has, under which tasks wait for each other, and before anything else has been run. */
async function memory(): Promise<void> {
  const where = { store: "sqlite", durability: "fast" };
  const rss = () => {
    globalThis.gc?.();
    return process.memoryUsage().rss / 2 ** 20;
  };
  const use = async (mailroom: Mailroom): Promise<void> => {
    let done = 0;
    for (const goal of QUICK ? [0, 1_000, 10_000] : [0, 10_000, 100_000]) {
      while (done < goal) {
        const batch = Math.min(500, goal - done);
        await Promise.all(
          Array.from({ length: batch }, (_, n) => mailroom.user(`user-${n}`).ask("weather?")),
        );
        done += batch;
      }
      const what = `resident memory after ${goal.toLocaleString("en")} completed tasks`;
      const note = `${mailroom.runtime.figures.liveTasks} in memory`;
      report.add({ ...where, what, value: rss(), unit: "MB", note });
    }
  };
  await withMailroom(threeHops(), "fast", use, {});
}

/** Runs tasks of 100 messages until there are so many more. */
async function runMessages(mailroom: Mailroom, messages: number): Promise<void> {
  const tasks = Math.ceil(messages / 100);
  for (let n = 0; n < tasks; n += 256) {
    const batch = Math.min(256, tasks - n);
    await Promise.all(Array.from({ length: batch }, (_, k) => mailroom.user(`user-${k}`).ask("0")));
  }
}

/** A small and a large store, measured in turns, because a shared disk changes its speed from minute to minute. */
async function largeStore(): Promise<void> {
  const large = QUICK ? 50_000 : 1_000_000;
  const sample = 25_600;
  const rates: { small: number[]; large: number[] } = { small: [], large: [] };
  await withMailroom(pingPong(100), "fsync", async (big) => {
    await runMessages(big, large);
    for (let round = 0; round < 5; round++) {
      await withMailroom(pingPong(100), "fsync", async (small) => {
        await runMessages(small, 1_000);
        rates.small.push(sample / (await seconds(() => runMessages(small, sample))));
      });
      rates.large.push(sample / (await seconds(() => runMessages(big, sample))));
    }
  });
  const median = (all: number[]) =>
    percentile(
      all.sort((a, b) => a - b),
      0.5,
    );
  const [few, many] = [median(rates.small), median(rates.large)];
  const where = { store: "sqlite", durability: "fsync", unit: "/s" };
  report.add({ ...where, what: "messages over 256 tasks, 1,000 stored before", value: few });
  report.add({
    ...where,
    what: `messages over 256 tasks, ${large.toLocaleString("en")} stored before`,
    value: many,
    note: `${Math.round((100 * many) / few)} % of that with few`,
  });
}

await memory();
await speed();
startUp();
await recovery();
await largeStore();
report.write();
