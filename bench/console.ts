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
import type { Page } from "playwright-core";
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
        else mail.request("helper", `question ${rounds}`, "How is it now?");
      },
    }),
    defineAgent({ name: "helper", commTargets: ["lead"], run: (mail) => mail.reply("It is well.") }),
  ],
});

interface Frames {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

/** Frames of some seconds, and how much of each the page's own script took. */
async function frames(
  page: Page,
  during: string,
): Promise<{ readonly frames: Frames; readonly script: Frames }> {
  return await page.evaluate(`new Promise((done) => {
    const gaps = [];
    const scripts = [];
    const ask = window.requestAnimationFrame.bind(window);
    let busy = 0;
    window.requestAnimationFrame = (run) => ask((at) => { const from = performance.now(); run(at); busy += performance.now() - from; });
    let last = performance.now();
    const begin = last;
    const tick = () => {
      const now = performance.now();
      gaps.push(now - last);
      scripts.push(busy);
      busy = 0;
      last = now;
      ${during};
      if (now - begin < 3000) ask(tick);
      else {
        window.requestAnimationFrame = ask;
        const of = (values) => { values.sort((a, b) => a - b); const pick = (share) => values[Math.floor((values.length - 1) * share)]; return { rate: (values.length / (now - begin)) * 1000, p50: pick(0.5), p99: pick(0.99) }; };
        done({ frames: of(gaps), script: of(scripts) });
      }
    };
    ask(tick);
  })`);
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
const say = (what: string, measured: Awaited<ReturnType<typeof frames>>) => {
  row(
    `${what}: frames`,
    `${measured.frames.rate.toFixed(0)}/s, p50 ${ms(measured.frames.p50)}, p99 ${ms(measured.frames.p99)}`,
  );
  row(`${what}: script per frame`, `p50 ${ms(measured.script.p50)}, p99 ${ms(measured.script.p99)}`);
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
  settings: { log: { level: "silent" }, limits: { steps: 1_000_000 } },
});
const url = await server.listen({ port: 0 });
const browser = await openBrowser();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
await context.addInitScript('sessionStorage.setItem("mailroom.identity:/console/", "user:bench")');
const page = await context.newPage();
const nodes = () => page.evaluate<number>("document.getElementsByTagName('*').length");

const bench = server.mailroom.user("bench");
for (let at = 0; at < TASKS; at += 100) {
  await Promise.all(Array.from({ length: 100 }, () => bench.post("0")));
}
let from = performance.now();
await page.goto(`${url}/console/tasks`);
await page.locator(".task-row[role=option]").first().waitFor();
row(`${TASKS} tasks: first rows`, ms(performance.now() - from));
row(`${TASKS} tasks: document nodes`, String(await nodes()));
say(`${TASKS} tasks, scrolling`, await frames(page, `document.querySelector(".virtual").scrollTop += 40`));
let posting = true;
const load = (async () => {
  while (posting) await Promise.all(Array.from({ length: 10 }, () => bench.post("0")));
})();
say(`${TASKS} tasks, live under load`, await frames(page, ""));
posting = false;
await load;

const task = await bench.post(String(Math.floor(ENTRIES / 6)));
await page.goto(`${url}/console/tasks/${task.taskId}`);
await page.locator(".lane-row").first().waitFor();
say("lanes, live", await frames(page, ""));
await task.outcome;
from = performance.now();
await page.reload();
await page.locator(".lane-row").first().waitFor();
row("long task: first picture", ms(performance.now() - from));
await page.waitForFunction("document.querySelector('.lane-n') !== null");
await page.waitForTimeout(4_000);
row("long task: entries", String(await page.locator(".scrub-at").innerText()));
row("long task: document nodes", String(await nodes()));
say(
  "long task, scrolling 300 px a frame",
  await frames(page, `document.querySelector(".lanes-scroll").scrollTop -= 300`),
);
await page.keyboard.press("[");
from = performance.now();
await page.keyboard.press("{");
await page.locator(".state-as-of").waitFor();
row("long task: state as of another entry", ms(performance.now() - from));

await browser.close();
await server.close(0);
