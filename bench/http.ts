/**
 * The server: `mailroom server` as its own process, on the durable store, with tokens; load from this process.
 *
 *   npm run bench:http [-- --against <folder>] [--quick] [--rounds 5] [--profile <folder>]
 *
 * The speed of a shared machine changes from minute to minute. So the server alternates with the library without HTTP,
 * and with HTTP and the same commits without Mailroom (bare-tasks.ts), each in a fresh process on a fresh store of the
 * same kind. Compare within a line, not between runs.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Tokens } from "../src/auth/index.js";
import { systemClock } from "../src/base/index.js";
import { openStore } from "../src/store/index.js";
import { type Build, buildIn } from "./builds.js";
import { singleCommits } from "./commits.js";
import { type Expected, type Load, type LoadRequest, measure } from "./http-load.js";
import { besideOf, ofRounds, percentile, Report } from "./report.js";
import { type Contender, inTurns, measured, progress } from "./rounds.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";
import { QUESTION } from "./swarms.js";
import { writeSwarmFile } from "./three-hops.js";
import type { Figures } from "./workloads.js";

const HELP = `npm run bench:http -- [options]

  --against <folder>   compare the start with that of another build: a folder with its own bin/mailroom.js and dist
  --quick              short loads and two rounds: shows that everything runs, not how fast
  --rounds <n>         default 5
  --profile <folder>   write a CPU profile of every server
  --help
`;

const { values: flags } = parseArgs({
  options: {
    against: { type: "string" },
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    profile: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const WHERE = { store: "sqlite", durability: "fsync" } as const;
const ROUNDS = Number(flags.rounds ?? (flags.quick ? 2 : 5));
const WARM_UP = flags.quick ? 500 : 2_000;
/** Per connection, at least: on a slow machine the compiler needs longer. */
const WARM_UP_REQUESTS = flags.quick ? 10 : 125;
const DURATION = flags.quick ? 1_500 : 5_000;
/** Number of connections, and of users, in the goals. */
const GOAL = 64;
const CONNECTIONS = [1, 16, 256] as const;
const USERS = 256;

const COMPLETED: Expected = { status: 200, contains: '"completed"' };
const SERVER = "the server";
const LIBRARY = "the library";
const BARE = "the bare server";

/** Real tokens, created like `mailroom token create` without a server. */
async function makeTokens(data: string): Promise<string[]> {
  const store = await openStore({ directory: data });
  const tokens = new Tokens({ store, clock: systemClock });
  const users: string[] = [];
  for (let n = 0; n < USERS; n++) {
    users.push((await tokens.create({ role: "user", id: `user-${n}` })).token);
  }
  await tokens.close();
  await store.close();
  return users;
}

/** Microseconds of processor time so far, all threads together; NaN where the system does not report it. */
function cpuOf({ pid }: ServerProcess): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return Number.NaN;
  // The program's name is in brackets and may contain spaces; user and system time are the 12th and 13th field after
  // it.
  const fields = readFileSync(file, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10_000;
}

type Case = Pick<Load, "connections" | "request" | "expected">;

async function underLoad(server: ServerProcess, load: Case): Promise<Figures> {
  const run = (duration: number) => measure({ ...load, url: server.url, warmUp: 0, duration });
  for (let asked = 0; asked < WARM_UP_REQUESTS * load.connections; ) asked += (await run(WARM_UP)).count;
  const before = cpuOf(server);
  const { perSecond, count, latencies } = await run(DURATION);
  return {
    rate: perSecond,
    cpu: (cpuOf(server) - before) / count,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}

/** Shared by all measurements. */
interface Ground {
  readonly build: Build;
  readonly directory: string;
  readonly swarm: string;
  /** A data directory with the tokens, copied for each run. */
  readonly template: string;
  readonly tokens: readonly string[];
}

async function layGround(directory: string, build: Build): Promise<Ground> {
  const template = join(directory, "template");
  return {
    build,
    directory,
    swarm: writeSwarmFile(directory, build),
    template,
    tokens: await makeTokens(template),
  };
}

/** Runs a server on its own data directory while it is used. */
async function withServer<T>(
  {
    build,
    directory,
    swarm,
    template,
  }: Pick<Ground, "build" | "directory" | "swarm"> & { template?: string },
  use: (server: ServerProcess) => Promise<T>,
): Promise<T> {
  const data = mkdtempSync(join(directory, "data-"));
  if (template !== undefined) cpSync(template, data, { recursive: true });
  const server = await startServerProcess({
    program: join(build.folder, "bin", "mailroom.js"),
    words: ["--swarm", swarm, "--data", data],
    directory,
    // Measures the cost of a rejection, not of the rate limit.
    env: { MAILROOM_LIMITS_FAILED_AUTH_PER_MINUTE: "1000000000" },
    flags: flags.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${flags.profile}`],
  });
  try {
    return await use(server);
  } finally {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

function serverTasks(ground: Ground, connections: number, users: number): Contender<Figures> {
  const request = (n: number): LoadRequest => ({
    method: "POST",
    path: "/message",
    token: ground.tokens[n % users] ?? "",
    body: { body: QUESTION },
  });
  const load = { connections, request, expected: COMPLETED };
  return { name: SERVER, measure: () => withServer(ground, (server) => underLoad(server, load)) };
}

/** Durable three-hop tasks with nothing between HTTP and the store. */
function bareTasks({ directory }: Ground, connections: number): Contender<Figures> {
  const token = "a-token-of-the-benchmark";
  const request: LoadRequest = { method: "POST", path: "/message", token, body: { body: QUESTION } };
  return {
    name: BARE,
    measure: async () => {
      const data = mkdtempSync(join(directory, "data-"));
      const words = ["--data", data, "--token", token];
      const bare = await startServerProcess({ words, directory, program: "./bare-tasks.js" });
      try {
        return await underLoad(bare, { connections, request: () => request, expected: COMPLETED });
      } finally {
        await bare.stop();
        rmSync(data, { recursive: true, force: true });
      }
    },
  };
}

/** The same swarm, store, limits and concurrency, without HTTP. */
function libraryTasks({ build: { folder }, swarm: swarmFile }: Ground, atOnce: number): Contender<Figures> {
  const request = { folder, workload: "swarmFileTasks", durability: "fsync", swarmFile } as const;
  return { name: LIBRARY, measure: () => measured({ ...request, quick: flags.quick, amount: atOnce }) };
}

async function tasks(report: Report, ground: Ground, connections: number, users: number): Promise<void> {
  const what = `three-hop tasks, ${connections} connections, ${users === 1 ? "one user" : `${users} users`}`;
  const contenders = [
    serverTasks(ground, connections, users),
    bareTasks(ground, connections),
    libraryTasks(ground, connections),
  ];
  const results = await inTurns(what, connections === GOAL ? ROUNDS : 1, contenders);
  const of = (name: string, key: string): number[] =>
    (results.get(name) ?? []).map((figures) => figures[key] ?? Number.NaN);
  const add = (more: string, unit: string, key: string, other: string): void => {
    const ours = of(SERVER, key);
    const beside = besideOf(other, ours, of(other, key));
    report.add({ ...WHERE, what: `${what}${more}`, ...ofRounds(ours), unit, beside });
  };
  add("", "tasks/s", "rate", BARE);
  add(": p50", "ms", "p50", BARE);
  add(": p99", "ms", "p99", BARE);
  add(": CPU of one", "µs", "cpu", LIBRARY);
  if (connections !== GOAL) return;
  for (const [more, key, other, goal] of [
    [`rate : ${BARE}'s`, "rate", BARE, { atLeast: 0.6 }],
    [`p99 : ${BARE}'s`, "p99", BARE, { atMost: 3 }],
    [`CPU : ${LIBRARY}'s`, "cpu", LIBRARY, { atMost: 1.5 }],
  ] as const) {
    const { ratio: value, ratioRange: range } = besideOf(other, of(SERVER, key), of(other, key));
    report.add({ ...WHERE, what: `${what}, ${more}`, value, range, unit: "times", goal });
  }
}

/** Requests per second of an empty Fastify server. */
async function bareRequests({ directory }: Ground): Promise<number> {
  const bare = await startServerProcess({ words: [], directory, program: "./bare-server.js" });
  const request: LoadRequest = { method: "GET", path: "/health" };
  const expected = { status: 200, contains: "healthy" };
  const { rate = Number.NaN } = await underLoad(bare, { connections: 64, request: () => request, expected });
  await bare.stop();
  return rate;
}

/** The cost of HTTP alone: nothing is stored. */
async function floor(report: Report, ground: Ground): Promise<void> {
  progress("requests that store nothing");
  const what = "bare Fastify, GET, 64 connections";
  const value = await bareRequests(ground);
  report.add({ store: "none", durability: "none", what, value, unit: "req/s" });
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
  await withServer(ground, async (server) => {
    for (const { what, request, expected } of cases) {
      const load = { connections: 64, request: () => request, expected };
      const { rate = Number.NaN, p99 = Number.NaN, cpu = Number.NaN } = await underLoad(server, load);
      const note = `p99 ${p99.toFixed(2)} ms; CPU ${Math.round(cpu)} µs`;
      report.add({ ...WHERE, what: `${what}, 64 connections`, value: rate, unit: "req/s", note });
    }
  });
}

/** From the start of the process until it reports health, in an empty data directory. */
async function start(report: Report, { build, directory }: Ground, other: Build | undefined): Promise<void> {
  const contender = (name: string, of: Build): Contender<Figures> => ({
    name,
    measure: () => {
      const place = mkdtempSync(join(directory, "start-"));
      const begin = performance.now();
      return withServer({ build: of, directory: place, swarm: writeSwarmFile(place, of) }, async (server) => {
        const { ok } = await fetch(new URL("/health", server.url));
        if (!ok) throw new Error("the server is not well");
        return { milliseconds: performance.now() - begin, cpu: cpuOf(server) / 1_000 };
      });
    },
  });
  const [ours, theirs] = ["this build", "the other"];
  const contenders = [contender(ours, build)];
  if (other !== undefined) contenders.push(contender(theirs, other));
  // Process clocks tick a hundred times a second, and a start is short.
  const results = await inTurns("start", 2 * ROUNDS, contenders);
  const of = (name: string, key: string): number[] =>
    (results.get(name) ?? []).map((figures) => figures[key] ?? Number.NaN);
  for (const [more, key] of [
    ["", "milliseconds"],
    [": CPU", "cpu"],
  ] as const) {
    report.add({
      ...WHERE,
      what: `process start to /health${more}`,
      ...ofRounds(of(ours, key)),
      unit: "ms",
      ...(other !== undefined && { beside: besideOf(theirs, of(ours, key), of(theirs, key)) }),
    });
  }
}

async function calibrate(report: Report, when: string): Promise<void> {
  const value = await singleCommits(openStore, "fsync", 2_000);
  report.add({ ...WHERE, what: `single-row commits, one after the other, ${when}`, value, unit: "/s" });
}

async function main(): Promise<void> {
  const other = flags.against === undefined ? undefined : buildIn(flags.against);
  const report = new Report("http", {
    rounds: ROUNDS,
    quick: flags.quick,
    ...(other !== undefined && { other }),
  });
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  try {
    const ground = await layGround(directory, buildIn("."));
    await calibrate(report, "before");
    await start(report, ground, other);
    await tasks(report, ground, GOAL, GOAL);
    await tasks(report, ground, GOAL, 1);
    if (!flags.quick)
      for (const connections of CONNECTIONS) await tasks(report, ground, connections, connections);
    await floor(report, ground);
    await calibrate(report, "after");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  report.write();
}

if (flags.help) console.log(HELP);
else await main();
