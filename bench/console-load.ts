/**
 * What open pages of the console cost the server: its CPU time per task with ten feeds open, against none. Alternating
 * runs on one server, because the machine's speed changes.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type ClientRequest, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measure } from "./http-load.js";
import { startServerProcess } from "./server-process.js";

const PAGES = 10;
const ROUNDS = 7;
const CONNECTIONS = 16;
const WARM_UP = 500;
const DURATION = 3_000;
/** Of the kernel's clock ticks. */
const MS_PER_TICK = 10;

export interface PageCost {
  /** Microseconds of the server per task. */
  readonly without: number;
  readonly withPages: number;
  /** Median of the ratios of neighboring runs. */
  readonly ratio: number;
}

export async function measurePages(): Promise<PageCost> {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-pages-"));
  const server = await startServerProcess({ words: ["--dev"], directory });
  try {
    const run = async (): Promise<number> => {
      const before = cpuOf(server.pid);
      const { count } = await measure({
        url: server.url,
        connections: CONNECTIONS,
        request: (connection) => ({
          method: "POST",
          path: "/message",
          token: `user:bench-${connection}`,
          body: { body: "What is 12 * (3 + 4)?" },
        }),
        expected: { status: 200, contains: "84" },
        warmUp: WARM_UP,
        duration: DURATION,
      });
      return ((cpuOf(server.pid) - before) * 1000) / count;
    };
    await run();
    const runs: { readonly without: number; readonly withPages: number }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const without = await run();
      const pages = await Promise.all(Array.from({ length: PAGES }, () => openPage(server.url)));
      const withPages = await run();
      for (const page of pages) page.destroy();
      runs.push({ without, withPages });
    }
    return {
      without: median(runs.map(({ without }) => without)),
      withPages: median(runs.map(({ withPages }) => withPages)),
      ratio: median(runs.map(({ without, withPages }) => withPages / without)),
    };
  } finally {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The stream of a page that shows everyone's tasks and the figures. Resolves when it has begun. */
function openPage(url: URL): Promise<ClientRequest> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: "Bearer admin:dev", accept: "text/event-stream" };
    const opened = request(new URL("/feed?stats=true", url), { agent: false, headers }, (response) => {
      response.on("error", () => {});
      response.once("data", () => resolve(opened));
      response.resume();
    });
    opened.on("error", reject);
    opened.end();
  });
}

function cpuOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // After the name, which may contain anything: state is field 3, utime 14, stime 15.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

if (process.argv[1]?.endsWith("console-load.js") === true) {
  const { without, withPages, ratio } = await measurePages();
  console.log(
    `server CPU per task: ${without.toFixed(0)} µs without pages, ${withPages.toFixed(0)} µs with ${PAGES}`,
  );
  console.log(`ratio ${ratio.toFixed(3)} (median of ${ROUNDS} alternating runs)`);
}
