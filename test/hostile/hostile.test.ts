/**
 * Twenty attackers beside twenty honest clients, for each door of a server in its own process: memory stays bounded and
 * returns, and no honest request fails. Latencies are reported, not judged. `npm run soak -- --only hostile` runs it
 * longer (HOSTILE_SECONDS, HOSTILE_SETTLE).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { on, once } from "node:events";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { folder, serve } from "../cli/cli.js";
import { freePort } from "../mesh/kit.js";
import { SECRET } from "./attacker.js";
import { DOOR_ATTACKS } from "./doors.js";
import { HONEST, type Honest, served } from "./honest.js";

const SECONDS = Number(process.env.HOSTILE_SECONDS ?? 6);
const SETTLE = Number(process.env.HOSTILE_SETTLE ?? 45);
const QUIET_SECONDS = 2;
const CLIENTS = 20;
const MB = 1024 * 1024;
const MAX_PEAK = 600 * MB;
/** How much more than before the attack may still be in use when it is over. */
const MAX_LEFT = 20 * MB;
/** MAP keeps the newest events for `map/replay` (`map.limits.event_ring_size`): a long attack fills that memory. */
const REPLAY_MEMORY = 16 * MB;

vi.setConfig({ testTimeout: (SECONDS + SETTLE + 90) * 1_000 });

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUILD = join(ROOT, "node_modules", `.mailroom-hostile-${process.pid}`);

beforeAll(async () => {
  await build({
    entryPoints: [join(ROOT, "test", "hostile", "run-attackers.ts")],
    outdir: BUILD,
    bundle: true,
    format: "esm",
    platform: "node",
    packages: "external",
    outExtension: { ".js": ".mjs" },
  });
});
afterAll(() => rm(BUILD, { recursive: true, force: true }));

/** The most bytes that a process has had in memory. */
function peakOf({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

/** A server's memory, through Node's inspector. */
async function inspect(url: string): Promise<AsyncDisposable & { inUse(): Promise<number> }> {
  const socket = new WebSocket(url);
  await once(socket, "open");
  let calls = 0;
  const call = async (method: string, params: object = {}) => {
    const id = ++calls;
    socket.send(JSON.stringify({ id, method, params }));
    for await (const [data] of on(socket, "message")) {
      const answer = JSON.parse(String(data));
      if (answer.id === id) return answer.result;
    }
  };
  return {
    /** Bytes that are in use once garbage is collected. What V8 keeps for later says nothing about a leak. */
    async inUse() {
      await call("HeapProfiler.collectGarbage");
      const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
      return (await call("Runtime.evaluate", { expression })).result.value;
    },
    [Symbol.asyncDispose]: async () => socket.terminate(),
  };
}

describe.skipIf(process.platform !== "linux")(`attacks for ${SECONDS} s on`, () => {
  it.each(Object.keys(DOOR_ATTACKS))("%s cost honest clients nothing but time", async (door) => {
    await using place = await folder();
    await writeFile(join(place.path, "swarms.json"), ASKING_SWARM);
    const meshPort = await freePort();
    const data = join(place.path, "data");
    const tls = join(place.path, "tls");
    initMesh({
      directory: data,
      agentId: "desk",
      endpoint: `https://localhost:${meshPort}/swarm`,
      dev: true,
    });
    await makeDevCertificates(tls, Date.now());
    let inspectable = (_url: string) => {};
    const inspector = new Promise<string>((resolve) => {
      inspectable = resolve;
    });
    await using server = await serve(
      ["--data", data, "--swarm", "swarms.json", "--mesh-listen", `localhost:${meshPort}`],
      {
        cwd: place.path,
        env: {
          NODE_OPTIONS: "--inspect=127.0.0.1:0",
          MAILROOM_AUTH_MODE: "jwt",
          MAILROOM_AUTH_JWT_SECRET: SECRET,
          MAILROOM_MESH_CERT: join(tls, "dev.pem"),
          MAILROOM_MESH_KEY: join(tls, "dev.key"),
          MAILROOM_MESH_CA: join(tls, "dev-ca.pem"),
        },
      },
      (line) => {
        const url = /^Debugger listening on (ws:\S+)/.exec(line)?.[1];
        if (url !== undefined) inspectable(url);
      },
    );
    await using memory = await inspect(await inspector);
    const port = door === "mesh" ? meshPort : Number(new URL(server.url).port);
    const visit = HONEST[door];
    if (visit === undefined) throw new Error(`no honest clients for ${door}`);
    const clients: Honest[] = [];
    for (let number = 0; number < CLIENTS; number++) clients.push(await visit(port, number));
    const quiet = await served(clients, Date.now() + QUIET_SECONDS * 1_000);
    expect(quiet.failures).toEqual([]);
    const idle = await memory.inUse();

    const attackers = spawn(
      process.execPath,
      [join(BUILD, "run-attackers.mjs"), door, String(port), String(SECONDS)],
      { stdio: ["ignore", "inherit", "inherit"] },
    );
    const gone = new Promise<void>((resolve) => attackers.once("close", () => resolve()));
    const attacked = await served(clients, Date.now() + SECONDS * 1_000);
    attackers.kill("SIGKILL");
    await gone;
    expect(server.child.exitCode, "the server has ended").toBe(null);
    const peak = peakOf(server.child);

    const mostLeft = MAX_LEFT + (door === "map" ? REPLAY_MEMORY : 0);
    const deadline = Date.now() + SETTLE * 1_000;
    let left = await memory.inUse();
    while (left - idle > mostLeft && Date.now() < deadline) {
      await sleep(500);
      left = await memory.inUse();
    }
    for (const client of clients) client.leave();
    const megabytes = (bytes: number) => `${Math.round(bytes / MB)} MB`;
    console.log(
      `hostile ${door}: quiet p50 ${quiet.p50} ms, p99 ${quiet.p99} ms (${quiet.count} requests); ` +
        `attacked p50 ${attacked.p50} ms, p99 ${attacked.p99} ms (${attacked.count} requests, ` +
        `${attacked.failures.length} failed); peak ${megabytes(peak)}, ` +
        `in use before ${megabytes(idle)}, after ${megabytes(left)}`,
    );
    expect(attacked.failures.slice(0, 5)).toEqual([]);
    expect(attacked.count).toBeGreaterThanOrEqual(CLIENTS);
    expect(peak).toBeLessThan(MAX_PEAK);
    expect(left - idle).toBeLessThan(mostLeft);
  });
});
