/**
 * The server: `mailroom server` as its own process, on the durable store, with tokens; load from this process.
 *
 *   npm run bench:http [-- --quick] [-- --profile DIR]
 *
 * A shared machine changes its speed from minute to minute. So every rate has beside it, from a moment before and on
 * fresh stores of the same kind, that of the library without HTTP and that of HTTP with the same commits and nothing in
 * between (bare-tasks.ts), and the processor time that one task or request cost. All of them change with what else the
 * machine does, the processor time too: compare within a line, and not between runs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Tokens } from "../src/auth/index.js";
import { loadSwarm, Mailroom } from "../src/index.js";
import { systemClock } from "../src/library/clock.js";
import { openSqliteStore } from "../src/store/index.js";
import { seconds, singleCommits } from "./commits.js";
import { type Expected, type Load, type LoadRequest, type Measured, measure } from "./http-load.js";
import { percentile, Report } from "./report.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";
import { QUESTION, writeSwarmFile } from "./three-hops.js";

const { values: flags } = parseArgs({
  options: { quick: { type: "boolean", default: false }, profile: { type: "string" } },
});
const WHERE = { store: "sqlite", durability: "fsync" } as const;
const WARM_UP = flags.quick ? 500 : 2_000;
const DURATION = flags.quick ? 1_500 : 6_000;
const CONNECTIONS = [1, 16, 64, 256] as const;
const MANY = 256;

const COMPLETED: Expected = { status: 200, contains: '"completed"' };

const report = new Report("http");
const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));

/** Real tokens, made as `mailroom token create` makes them when no server runs. */
async function makeTokens(data: string): Promise<{ admin: string; users: string[] }> {
  const store = await openSqliteStore({ directory: data });
  const tokens = new Tokens({ store, clock: systemClock });
  const admin = (await tokens.create({ role: "admin", id: "root" })).token;
  const users: string[] = [];
  for (let n = 0; n < MANY; n++) {
    users.push((await tokens.create({ role: "user", id: `user-${n}` })).token);
  }
  await tokens.close();
  await store.close();
  return { admin, users };
}

interface Server extends ServerProcess {
  /** Microseconds of processor time so far, all threads together. */
  cpu(): Promise<number>;
}

async function startServer(swarm: string, data: string, admin: string): Promise<Server> {
  const running = await startServerProcess({
    words: ["--swarm", swarm, "--data", data],
    directory,
    // The rejected token is to be the cost of a rejection, not that of being told to come back later.
    env: { MAILROOM_LIMITS_FAILED_AUTH_PER_MINUTE: "1000000000" },
    flags: flags.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${flags.profile}`],
  });
  return {
    ...running,
    cpu: async () => {
      const answer = await fetch(new URL("/metrics", running.url), {
        headers: { authorization: `Bearer ${admin}` },
      });
      const used = /^process_cpu_seconds_total (\S+)/m.exec(await answer.text())?.[1];
      return Number(used) * 1e6;
    },
  };
}

interface Speed {
  readonly perSecond: number;
  /** Microseconds of processor time for one. */
  readonly cpu: number;
}

/** Three-hop tasks of the library in this process: the same swarm, store and limits, no HTTP. */
async function libraryTasks(swarm: string, atOnce: number, users: number): Promise<Speed> {
  const data = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const { definition } = await loadSwarm(swarm);
  const mailroom = await Mailroom.open({ swarm: definition, data });
  const runFor = async (ms: number): Promise<number> => {
    const end = performance.now() + ms;
    let done = 0;
    const worker = async (n: number): Promise<void> => {
      const user = mailroom.user(`user-${n % users}`);
      for (; performance.now() < end; done++) await user.ask(QUESTION);
    };
    await Promise.all(Array.from({ length: atOnce }, (_, n) => worker(n)));
    return done;
  };
  await runFor(WARM_UP);
  const before = process.cpuUsage();
  let done = 0;
  const took = await seconds(async () => {
    done = await runFor(DURATION / 2);
  });
  const { user, system } = process.cpuUsage(before);
  await mailroom.close();
  rmSync(data, { recursive: true, force: true });
  return { perSecond: done / took, cpu: (user + system) / done };
}

type Case = Pick<Load, "connections" | "request" | "expected">;

async function underLoad(server: Server, load: Case): Promise<Speed & Measured> {
  const before = await server.cpu();
  const measured = await measure({ ...load, url: server.url, warmUp: WARM_UP, duration: DURATION });
  const cpu = ((await server.cpu()) - before) / measured.count;
  return { ...measured, cpu };
}

async function tasks(server: Server, swarm: string, tokens: readonly string[]): Promise<void> {
  for (const [who, users] of [
    ["one user", 1],
    ["many users", MANY],
  ] as const) {
    for (const connections of CONNECTIONS) {
      const what = `three-hop tasks, ${connections} connections, ${who}`;
      const library = await libraryTasks(swarm, connections, users);
      const bare = await bareTasks(connections);
      const { perSecond, latencies, cpu } = await underLoad(server, {
        connections,
        expected: COMPLETED,
        request: (n) => ({
          method: "POST",
          path: "/message",
          token: tokens[n % users] ?? "",
          body: { body: QUESTION },
        }),
      });
      const note = [
        `${percent(perSecond, bare.perSecond)} of the bare ${whole(bare.perSecond)} (p99 ${percentile(bare.latencies, 0.99).toFixed(1)} ms)`,
        `${percent(perSecond, library.perSecond)} of the library's ${whole(library.perSecond)}`,
        `cpu ${whole(cpu)} µs, the library ${whole(library.cpu)}`,
      ].join("; ");
      report.add({ ...WHERE, what, value: perSecond, unit: "tasks/s", note });
      for (const [name, share] of [
        ["p50", 0.5],
        ["p99", 0.99],
      ] as const) {
        report.add({ ...WHERE, what: `${what}: ${name}`, value: percentile(latencies, share), unit: "ms" });
      }
    }
  }
}

/** Durable three-hop tasks per second with nothing between HTTP and the store. */
async function bareTasks(connections: number): Promise<Measured> {
  const data = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const token = "a-token-of-the-benchmark";
  const bare = await startServerProcess({
    words: ["--data", data, "--token", token],
    directory,
    program: "./bare-tasks.js",
  });
  const request: LoadRequest = { method: "POST", path: "/message", token, body: { body: QUESTION } };
  const measured = await measure({
    url: bare.url,
    connections,
    request: () => request,
    expected: COMPLETED,
    warmUp: WARM_UP,
    duration: DURATION / 2,
  });
  await bare.stop();
  rmSync(data, { recursive: true, force: true });
  return measured;
}

/** Requests per second of Fastify with nothing in it. */
async function bareRequests(): Promise<number> {
  const bare = await startServerProcess({ words: [], directory, program: "./bare-server.js" });
  const { perSecond } = await measure({
    url: bare.url,
    connections: 64,
    request: () => ({ method: "GET", path: "/health" }),
    expected: { status: 200, contains: "healthy" },
    warmUp: WARM_UP,
    duration: DURATION,
  });
  await bare.stop();
  return perSecond;
}

/** What HTTP alone costs: nothing is stored. */
async function floor(server: Server): Promise<void> {
  const bare = await bareRequests();
  report.add({
    store: "none",
    durability: "none",
    what: "bare Fastify, GET, 64 connections",
    value: bare,
    unit: "req/s",
  });
  const cases: readonly { what: string; request: LoadRequest; expected: Expected }[] = [
    {
      what: "GET /health",
      request: { method: "GET", path: "/health" },
      expected: { status: 200, contains: "healthy" },
    },
    {
      what: "rejected token",
      request: { method: "POST", path: "/message", token: "mr_user_nobody", body: { body: QUESTION } },
      expected: { status: 401, contains: "unauthenticated" },
    },
  ];
  for (const { what, request, expected } of cases) {
    const load = { connections: 64, request: () => request, expected };
    const { perSecond, latencies, cpu } = await underLoad(server, load);
    const note = `p99 ${percentile(latencies, 0.99).toFixed(2)} ms; cpu ${whole(cpu)} µs`;
    report.add({ ...WHERE, what: `${what}, 64 connections`, value: perSecond, unit: "req/s", note });
  }
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");
const percent = (part: number, of: number): string => `${Math.round((100 * part) / of)} %`;

async function calibrate(when: string): Promise<void> {
  const value = await singleCommits("fsync", 2_000);
  report.add({ ...WHERE, what: `single-row commits, one after the other, ${when}`, value, unit: "/s" });
}

const swarm = writeSwarmFile(directory);
const data = join(directory, "data");
const tokens = await makeTokens(data);
const server = await startServer(swarm, data, tokens.admin);
try {
  await calibrate("before");
  await floor(server);
  await tasks(server, swarm, tokens.users);
  await calibrate("after");
} finally {
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
}
report.write();
