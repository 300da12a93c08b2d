/**
 * Twenty attackers beside twenty honest clients, for each door of a server in its own process: memory stays bounded and
 * returns, and no honest request fails. Latencies are reported, not judged. `npm run soak -- --only hostile` runs it
 * longer (HOSTILE_SECONDS, HOSTILE_SETTLE).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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
/** How much more than before the attack may be held when it is over. V8 keeps some of its heap for a while. */
const MAX_LEFT = 150 * MB;

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

/** Bytes in memory, and the most there have been. */
function memoryOf({ pid }: ChildProcess): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
  return { now: kilobytes("VmRSS") * 1024, peak: kilobytes("VmHWM") * 1024 };
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
    await using server = await serve(
      ["--data", data, "--swarm", "swarms.json", "--mesh-listen", `localhost:${meshPort}`],
      {
        cwd: place.path,
        env: {
          MAILROOM_AUTH_MODE: "jwt",
          MAILROOM_AUTH_JWT_SECRET: SECRET,
          MAILROOM_MESH_CERT: join(tls, "dev.pem"),
          MAILROOM_MESH_KEY: join(tls, "dev.key"),
          MAILROOM_MESH_CA: join(tls, "dev-ca.pem"),
        },
      },
    );
    const port = door === "mesh" ? meshPort : Number(new URL(server.url).port);
    const visit = HONEST[door];
    if (visit === undefined) throw new Error(`no honest clients for ${door}`);
    const clients: Honest[] = [];
    for (let number = 0; number < CLIENTS; number++) clients.push(await visit(port, number));
    const quiet = await served(clients, Date.now() + QUIET_SECONDS * 1_000);
    expect(quiet.failures).toEqual([]);
    const idle = memoryOf(server.child).now;

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
    const { peak } = memoryOf(server.child);

    const deadline = Date.now() + SETTLE * 1_000;
    let left = memoryOf(server.child).now;
    while (left - idle > MAX_LEFT && Date.now() < deadline) {
      await sleep(500);
      // A little work, as an idle process collects no garbage.
      await served(clients.slice(0, 1), Date.now() + 100);
      left = memoryOf(server.child).now;
    }
    for (const client of clients) client.leave();
    const megabytes = (bytes: number) => `${Math.round(bytes / MB)} MB`;
    console.log(
      `hostile ${door}: quiet p50 ${quiet.p50} ms, p99 ${quiet.p99} ms (${quiet.count} requests); ` +
        `attacked p50 ${attacked.p50} ms, p99 ${attacked.p99} ms (${attacked.count} requests, ` +
        `${attacked.failures.length} failed); memory idle ${megabytes(idle)}, peak ${megabytes(peak)}, ` +
        `after ${megabytes(left)}`,
    );
    expect(attacked.failures.slice(0, 5)).toEqual([]);
    expect(attacked.count).toBeGreaterThanOrEqual(CLIENTS);
    expect(peak).toBeLessThan(MAX_PEAK);
    expect(left - idle).toBeLessThan(MAX_LEFT);
  });
});
