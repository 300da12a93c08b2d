/**
 * Federation: two `mailroom server` processes on the durable store, with tokens and signatures; load from this process.
 *
 *   npm run bench:federation [-- --quick]
 *
 * A round trip is a task: a user asks the desk of `alpha`, the desk asks the clerk of `beta`, the answer returns, the
 * task ends, and `beta` is notified of the end. Both sides sync every message to disk.
 *
 * The cost of dead peers is measured with the same load in three conditions: alone; with a trickle of further tasks to
 * `beta`; and with the same trickle to a peer that refuses connections and to one that accepts everything and never
 * answers. The trickle has its own cost, so compare the third with the second. The conditions alternate, forwards and
 * backwards, because the speed of a shared machine changes from minute to minute.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Tokens } from "../src/auth/index.js";
import { systemClock } from "../src/base/index.js";
import { MailClient } from "../src/client/index.js";
import { openStore } from "../src/store/index.js";
import { singleCommits } from "./commits.js";
import { writeSwarmFile } from "./federation-swarms.js";
import { type Measured, measure } from "./http-load.js";
import { percentile, Report } from "./report.js";
import { type ServerProcess, startServerProcess } from "./server-process.js";

const { values: flags } = parseArgs({ options: { quick: { type: "boolean", default: false } } });
const WHERE = { store: "sqlite", durability: "fsync" } as const;
const WARM_UP = flags.quick ? 500 : 2_000;
const DURATION = flags.quick ? 1_500 : 6_000;
const CONNECTIONS = [1, 16, 64] as const;
const BESIDE = 16;
const ROUNDS = flags.quick ? 2 : 6;
/** Tasks per second to each of two targets. */
const TRICKLE = 5;
/** Milliseconds of delivery attempts to a dead peer. Short, so that one measurement ends before the next starts. */
const DELIVERY = 2_000;
const ATTEMPT = 1_000;

const report = new Report("federation");
const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));

/** Real tokens, created like `mailroom token create` without a server. */
async function makeTokens(swarm: string, peer: string) {
  const store = await openStore({ directory: join(directory, swarm) });
  const tokens = new Tokens({ store, clock: systemClock });
  const make = async (role: "admin" | "agent" | "user", id: string) =>
    (await tokens.create({ role, id })).token;
  const admin = await make("admin", "root");
  const agent = await make("agent", peer);
  const users: string[] = [];
  for (let n = 0; n < Math.max(...CONNECTIONS); n++) users.push(await make("user", `user-${n}`));
  await tokens.close();
  await store.close();
  return { admin, agent, users };
}

function serve(swarms: string, name: string, env: Readonly<Record<string, string>>): Promise<ServerProcess> {
  return startServerProcess({
    words: ["--swarm", swarms, "--swarm-name", name, "--data", join(directory, name)],
    directory,
    env: {
      ...env,
      MAILROOM_FEDERATION_REQUESTS_PER_MINUTE: "0",
      MAILROOM_FEDERATION_DELIVERY_TIMEOUT: `${DELIVERY / 1000}s`,
      MAILROOM_FEDERATION_ATTEMPT_TIMEOUT: `${ATTEMPT / 1000}s`,
      // Dead peers are retried and not skipped: the worst case.
      MAILROOM_FEDERATION_FAILURES_TO_INACTIVE: "1000000",
    },
  });
}

/** Describes itself as a swarm and never answers mail. */
async function listenAs(name: string): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === "/") {
      response.end(JSON.stringify({ version: "1.2", swarm: name, capabilities: ["dedupe"] }));
    } else if (request.url === "/health") response.end('{"status": "healthy"}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { server, url: `http://127.0.0.1:${address.port}` };
}

/** Posts tasks at a steady rate without waiting for them, until stopped. */
function trickle(url: URL, token: string, targets: readonly string[]): () => Promise<void> {
  const underWay = new Set<Promise<unknown>>();
  const client = new MailClient(url.href, { token });
  const timer = setInterval(() => {
    for (const target of targets) {
      const posted: Promise<unknown> = client
        .postMessage(target, { wait: false })
        .finally(() => underWay.delete(posted));
      underWay.add(posted);
    }
  }, 1_000 / TRICKLE);
  return async () => {
    clearInterval(timer);
    await Promise.all(underWay);
  };
}

function roundTrips(url: URL, users: readonly string[], connections: number): Promise<Measured> {
  return measure({
    url,
    connections,
    warmUp: WARM_UP,
    duration: DURATION,
    expected: { status: 200, contains: "sunny" },
    request: (n) => ({ method: "POST", path: "/message", token: users[n] ?? "", body: { body: "beta" } }),
  });
}

const CONDITIONS = {
  alone: [],
  "beside a trickle to a healthy peer": ["beta", "beta"],
  "beside the same trickle to a dead and a hanging peer": ["dead", "hanging"],
} as const;
type Condition = keyof typeof CONDITIONS;

/** Alternates the conditions several times; returns rates and latencies of all runs of each. */
async function inTurns(url: URL, users: readonly string[], troublemaker: string): Promise<void> {
  const order: readonly Condition[] = [
    "alone",
    "beside a trickle to a healthy peer",
    "beside the same trickle to a dead and a hanging peer",
  ];
  const rates = new Map<Condition, number[]>(order.map((condition) => [condition, []]));
  const latencies = new Map<Condition, number[]>(order.map((condition) => [condition, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const condition of round % 2 === 0 ? order : order.toReversed()) {
      const stop = trickle(url, troublemaker, CONDITIONS[condition]);
      const measured = await roundTrips(url, users, BESIDE);
      await stop();
      rates.get(condition)?.push(measured.perSecond);
      latencies.get(condition)?.push(...measured.latencies);
      // Wait until undeliverable mail is abandoned before the next run.
      await new Promise((resolve) => setTimeout(resolve, DELIVERY + 2 * ATTEMPT));
    }
  }
  const mean = (condition: Condition): number => {
    const all = rates.get(condition) ?? [];
    return all.reduce((sum, rate) => sum + rate, 0) / all.length;
  };
  const [alone, healthy, dead] = order.map(mean);
  for (const condition of order) {
    const sorted = (latencies.get(condition) ?? []).sort((a, b) => a - b);
    const note = `p50 ${percentile(sorted, 0.5).toFixed(1)} ms, p99 ${percentile(sorted, 0.99).toFixed(1)} ms`;
    report.add({ ...WHERE, what: condition, value: mean(condition), unit: "trips/s", note });
  }
  const percent = (part = Number.NaN, of = Number.NaN): number => (100 * part) / of;
  report.add({
    ...WHERE,
    what: "dead peers, of the rate beside healthy ones",
    value: percent(dead, healthy),
    unit: "%",
  });
  report.add({ ...WHERE, what: "dead peers, of the rate alone", value: percent(dead, alone), unit: "%" });
}

const swarms = writeSwarmFile(directory);
const atAlpha = await makeTokens("alpha", "beta");
const atBeta = await makeTokens("beta", "alpha");
const alpha = await serve(swarms, "alpha", { SWARM_AUTH_TOKEN_BETA: atBeta.agent, NOBODYS_TOKEN: "none" });
const beta = await serve(swarms, "beta", { SWARM_AUTH_TOKEN_ALPHA: atAlpha.agent });
const hanging = await listenAs("hanging");
const dead = await listenAs("dead");
const reference = (variable: string) => `\${${variable}}`;
try {
  const admin = new MailClient(alpha.url.href, { token: atAlpha.admin });
  const know = (name: string, baseUrl: string, variable: string) =>
    admin.registerSwarm({ name, baseUrl, authToken: reference(variable) });
  await know("beta", beta.url.href, "SWARM_AUTH_TOKEN_BETA");
  await know("hanging", hanging.url, "NOBODYS_TOKEN");
  await know("dead", dead.url, "NOBODYS_TOKEN");
  dead.server.close();
  dead.server.closeAllConnections();
  await new MailClient(beta.url.href, { token: atBeta.admin }).registerSwarm({
    name: "alpha",
    baseUrl: alpha.url.href,
    authToken: reference("SWARM_AUTH_TOKEN_ALPHA"),
  });

  const commits = await singleCommits(openStore, "fsync", 2_000);
  report.add({ ...WHERE, what: "single-row commits, one after the other", value: commits, unit: "/s" });
  for (const connections of CONNECTIONS) {
    const { perSecond, latencies } = await roundTrips(alpha.url, atAlpha.users, connections);
    const what = `round trips to another swarm, ${connections} at once`;
    report.add({ ...WHERE, what, value: perSecond, unit: "trips/s" });
    for (const [name, share] of [
      ["p50", 0.5],
      ["p99", 0.99],
    ] as const) {
      report.add({ ...WHERE, what: `${what}: ${name}`, value: percentile(latencies, share), unit: "ms" });
    }
  }
  // Another user than the measured ones, so that only the server is shared.
  await inTurns(alpha.url, atAlpha.users, atAlpha.admin);
} finally {
  hanging.server.closeAllConnections();
  hanging.server.close();
  await Promise.all([alpha.stop(), beta.stop()]);
  rmSync(directory, { recursive: true, force: true });
}
report.write();
