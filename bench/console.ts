/**
 * The console's costs: bytes, document nodes, script time per frame and frame rates, in a real browser.
 *
 *   npm run bench:console
 *
 * Prints a table like the other benchmarks; nothing is asserted. Frame rates are of software rendering.
 */
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { resolve } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { defineAgent, defineSwarm } from "../src/index.js";
import { createServer } from "../src/server/index.js";
import { openBrowser } from "../test/console/browser.js";

const TASKS = Number(process.env.TASKS ?? 10_000);
const ENTRIES = Number(process.env.ENTRIES ?? 50_000);

const rows: [string, string][] = [];
const row = (what: string, result: string) => {
  rows.push([what, result]);
  console.log(`${what.padEnd(58)} ${result}`);
};

/** Each task asks a second agent `body` times and then completes. */
const swarm = defineSwarm({
  name: "bench",
  agents: [
    defineAgent({
      name: "lead",
      enableEntrypoint: true,
      canCompleteTasks: true,
      commTargets: ["helper"],
      run: (mail) => {
        const first = mail.history[0];
        const wanted = first?.kind === "message" ? Number(first.message.message.body) : 0;
        const rounds = mail.history.filter((item) => item.kind === "answer").length;
        if (rounds >= wanted) mail.complete("done");
        else mail.request("helper", `question ${rounds}`, `How is it now, after ${rounds} answers?`);
      },
    }),
    defineAgent({
      name: "helper",
      commTargets: ["lead"],
      run: (mail) => mail.reply(`It is well: ${mail.subject}`),
    }),
  ],
});

interface Frames {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

interface Measured {
  readonly frames: Frames;
  /** Mean milliseconds of script per frame, of the whole page. */
  readonly script: number;
}

/** Frames of three seconds, and how much of them the page's script took, as the browser counts it. */
async function frames(page: Page, during: string): Promise<Measured> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const scriptSeconds = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "ScriptDuration")?.value ?? 0;
  };
  const before = await scriptSeconds();
  const { count, ...found } = await page.evaluate<Frames & { count: number }>(`new Promise((done) => {
    const gaps = [];
    const begin = performance.now();
    let last = begin;
    const tick = () => {
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      ${during};
      if (now - begin < 3000) return requestAnimationFrame(tick);
      gaps.sort((a, b) => a - b);
      const pick = (share) => gaps[Math.floor((gaps.length - 1) * share)];
      done({ count: gaps.length, rate: (gaps.length / (now - begin)) * 1000, p50: pick(0.5), p99: pick(0.99) });
    };
    requestAnimationFrame(tick);
  })`);
  const script = ((await scriptSeconds()) - before) * 1_000;
  await session.detach();
  return { frames: found, script: script / count };
}

async function newContext(): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.addInitScript('sessionStorage.setItem("mailroom.identity:/console/", "user:bench")');
  return context;
}

interface Visit {
  readonly paint: number;
  readonly rows: number;
}

/** Milliseconds from the navigation of a new browser context, as its page counts them. */
async function visit(slowdown: number): Promise<Visit> {
  const fresh = await newContext();
  await fresh.addInitScript(`new MutationObserver((_, observer) => {
    if (document.querySelector(".task-row[role=option]") === null) return;
    observer.disconnect();
    window.rowsAt = performance.now();
  }).observe(document, { childList: true, subtree: true })`);
  const visitor = await fresh.newPage();
  const session = await fresh.newCDPSession(visitor);
  await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
  await visitor.goto(`${url}/console/tasks`);
  await visitor.locator(".task-row[role=option]").first().waitFor();
  const seen = await visitor.evaluate<Visit>(
    "({ paint: performance.getEntriesByName('first-contentful-paint')[0].startTime, rows: window.rowsAt })",
  );
  await fresh.close();
  return seen;
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const ms = (value: number) => `${value.toFixed(1)} ms`;
const say = (what: string, { frames: { rate, p50, p99 }, script }: Measured) => {
  row(`${what}: frames`, `${rate.toFixed(0)}/s, p50 ${ms(p50)}, p99 ${ms(p99)}`);
  row(`${what}: script per frame`, `${ms(script)} (budget 4 ms)`);
};

const manifest: { first_load: number; files: Record<string, { brotli: number; first: boolean }> } =
  JSON.parse(await readFile(resolve(import.meta.dirname, "../dist/console/manifest.json"), "utf8"));
console.log(`${cpus().length} processors, ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}`);
row("first load, brotli", `${manifest.first_load} bytes (budget 60,000)`);
for (const [name, { brotli, first }] of Object.entries(manifest.files)) {
  if (!first && brotli > 2_000)
    row(`later: ${name.replace(/-[A-Z0-9]{8}/, "")}`, `${brotli} bytes (budget 25,000)`);
}

const server = await createServer({
  swarm,
  dev: true,
  data: false,
  settings: { log: { level: "silent" } },
});
const url = await server.listen({ port: 0 });
const browser = await openBrowser();
const page = await (await newContext()).newPage();
const nodes = () => page.evaluate<number>("document.getElementsByTagName('*').length");

const bench = server.mailroom.user("bench");
for (let at = 0; at < TASKS; at += 100) {
  await Promise.all(Array.from({ length: 100 }, () => bench.post("0")));
}
await visit(1);
for (const slowdown of [1, 4]) {
  const seen: Visit[] = [];
  for (let at = 0; at < 5; at++) seen.push(await visit(slowdown));
  const title = `${TASKS} tasks, processor slowed ${slowdown} times`;
  row(`${title}: first paint`, `${ms(median(seen.map(({ paint }) => paint)))} (budget 300 ms)`);
  row(`${title}: first rows`, `${ms(median(seen.map(({ rows }) => rows)))} (budget 600 ms)`);
}
await page.goto(`${url}/console/tasks`);
await page.locator(".task-row[role=option]").first().waitFor();
row(`${TASKS} tasks: document nodes`, `${await nodes()} (budget 2,500)`);
say(`${TASKS} tasks, scrolling`, await frames(page, `document.querySelector(".virtual").scrollTop += 40`));
let posting = true;
const load = (async () => {
  while (posting) await Promise.all(Array.from({ length: 10 }, () => bench.post("0")));
})();
say(`${TASKS} tasks, live under load`, await frames(page, ""));
posting = false;
await load;

const task = await bench.post(String(Math.floor(ENTRIES / 4)), { maxSteps: null });
await page.goto(`${url}/console/tasks/${task.taskId}`);
await page.locator(".lane-row").first().waitFor();
say("lanes, live", await frames(page, ""));
await task.outcome;
const from = performance.now();
await page.reload();
await page.locator(".lane-row").first().waitFor();
row("long task: first picture", `${ms(performance.now() - from)} (budget 500 ms)`);
await page.waitForFunction("document.querySelector('.lane-n') !== null");
await page.waitForTimeout(4_000);
row("long task: entries", String(await page.locator(".scrub-at").innerText()));
row("long task: document nodes", `${await nodes()} (budget 2,500)`);
say(
  "long task, scrolling 300 px a frame",
  await frames(page, `document.querySelector(".lanes-scroll").scrollTop -= 300`),
);
await page.keyboard.press("[");
await page.locator(".state-as-of").waitFor();
const idle = await frames(page, "");
const { script } = await frames(
  page,
  `if (gaps.length === 60) document.dispatchEvent(new KeyboardEvent("keydown", { key: "{", bubbles: true }))`,
);
row("long task: jump to another entry, script", `${ms((script - idle.script) * 180)} (budget 16 ms)`);

await browser.close();
await server.close(0);
