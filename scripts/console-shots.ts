/**
 * Takes the pictures of the console that the documentation shows, from a real run:
 *
 *   npm run build && npx tsx scripts/console-shots.ts [folder]
 *
 * A swarm of five agents works on an incident and on smaller questions, a second server is its neighbor, and a person has
 * not answered yet. Needs a Chromium or Chrome on the path.
 */
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { createServer } from "../src/server/index.js";
import { openBrowser } from "../test/console/browser.js";
import { INCIDENT, opsSwarm, QUESTIONS } from "../test/console/ops.js";

const folder = resolve(process.argv[2] ?? "docs/images");
const PEOPLE = ["ann", "raj", "mei", "ci", "nightly"];

await mkdir(folder, { recursive: true });
const server = await createServer({
  swarm: opsSwarm({ pace: 0.6 }),
  dev: true,
  data: false,
  settings: { log: { level: "silent" } },
});
const url = await server.listen({ port: 0 });

async function call<T>(path: string, who: string, body?: unknown): Promise<T> {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${who}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

const post = (who: string, body: string) =>
  call<{ task_id: string }>("/message", `user:${who}`, { body, wait: false });

interface Journal {
  readonly key: string;
  readonly status: string;
}

async function until(who: string, id: string, status: string): Promise<Journal> {
  while (true) {
    const journal = await call<Journal>(`/tasks/${id}/journal?limit=1`, `user:${who}`);
    if (journal.status === status) return journal;
    await new Promise((done) => setTimeout(done, 100));
  }
}

const browser = await openBrowser();
console.log(`${url}: at work`);

/** Questions in the background, so that there is something to see in every list and chart. */
let asking = true;
const background = (async () => {
  for (let count = 0; asking; count++) {
    const person = PEOPLE[count % PEOPLE.length] ?? "ann";
    await post(person, QUESTIONS[(count * 3) % QUESTIONS.length] ?? QUESTIONS[0]);
    await new Promise((done) => setTimeout(done, 220 + ((count * 67) % 240)));
  }
})();

const first = await post("ann", INCIDENT);
await until("ann", first.task_id, "paused");
await new Promise((done) => setTimeout(done, 4_000));
await call(`/tasks/${first.task_id}/breakpoint`, "user:ann", {
  results: "yes, roll back. I watch the canary",
  wait: false,
});
const { key } = await until("ann", first.task_id, "completed");
for (const [who, text] of [
  ["mei", "Checkout in eu-west is slow again since 19:20: same cause as before?"],
  ["raj", "Checkout retries went up fourfold after the last deploy. Roll back?"],
] as const) {
  const { task_id } = await post(who, text);
  await until(who, task_id, "paused");
}
await new Promise((done) => setTimeout(done, 25_000));

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly theme?: "light" | "dark";
  readonly phone?: boolean;
  readonly ready: string;
  readonly after?: (page: Page) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  { name: "tasks", path: "tasks", ready: ".task-row .spark" },
  { name: "tasks-dark", path: "tasks", theme: "dark", ready: ".task-row .spark" },
  { name: "task", path: `all/${key}?sel=3`, ready: ".inspector" },
  { name: "task-dark", path: `all/${key}?sel=39`, theme: "dark", ready: ".inspector" },
  { name: "as-of", path: `all/${key}?at=22&sel=22`, ready: ".state-as-of" },
  { name: "agents", path: `all/${key}?view=agents`, ready: ".agent-memory" },
  { name: "conversation", path: `all/${key}?view=talk`, ready: ".bubble" },
  { name: "cost", path: `all/${key}?view=cost`, ready: ".cost-view" },
  { name: "needs-you", path: "needs-you", ready: ".ask" },
  { name: "swarm", path: "swarm", ready: ".graph" },
  { name: "system", path: "system", ready: ".plot canvas, .empty" },
  {
    name: "palette",
    path: "tasks",
    ready: ".task-row .spark",
    after: async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("checkout");
      await page.waitForTimeout(900);
    },
  },
  { name: "tasks-phone", path: "tasks", phone: true, ready: ".task-card .spark" },
  { name: "task-phone", path: `all/${key}`, phone: true, ready: ".lane-row" },
];

for (const { name, path, theme = "light", phone = false, ready, after } of SHOTS) {
  const context = await browser.newContext({
    viewport: phone ? { width: 390, height: 844 } : { width: 1440, height: 900 },
    // The two of the README are larger.
    deviceScaleFactor: name === "task" || name === "tasks" || phone ? 1.5 : 1,
    colorScheme: theme,
  });
  const page = await context.newPage();
  await page.goto(`${url}/console/${path}`);
  await page.locator(ready).first().waitFor();
  await page.waitForTimeout(1_800);
  await after?.(page);
  await page.screenshot({ path: resolve(folder, `console-${name}.png`) });
  await context.close();
  console.log(`console-${name}.png`);
}

asking = false;
await background;
await browser.close();
await server.close(0);
