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
import { openBrowser } from "../test/console/browser.js";
import { QUESTIONS } from "../test/console/ops.js";
import { openScene } from "../test/console/scene.js";

const folder = resolve(process.argv[2] ?? "docs/images");
const PEOPLE = ["ann", "raj", "mei", "ci", "nightly"];

await mkdir(folder, { recursive: true });
const scene = await openScene({ pace: 0.6 });
const { url, post } = scene;
const { key } = scene.done;
const browser = await openBrowser();
console.log(`${url}: at work`);

/** Questions in the background, so that there is something to see in every list and chart. */
let asking = true;
const background = (async () => {
  for (let count = 0; asking; count++) {
    const person = PEOPLE[count % PEOPLE.length] ?? "ann";
    await post(`user:${person}`, QUESTIONS[(count * 3) % QUESTIONS.length] ?? QUESTIONS[0]);
    await new Promise((done) => setTimeout(done, 220 + ((count * 67) % 240)));
  }
})();

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
  { name: "task-dark", path: `all/${key}?sel=43`, theme: "dark", ready: ".inspector" },
  { name: "as-of", path: `all/${key}?at=22&sel=22`, ready: ".state-as-of" },
  { name: "agents", path: `all/${key}?view=agents`, ready: ".agent-memory" },
  { name: "conversation", path: `all/${key}?view=talk`, ready: ".bubble" },
  { name: "cost", path: `all/${key}?view=cost`, ready: ".cost-view" },
  { name: "needs-you", path: "needs-you", ready: ".ask" },
  { name: "approval", path: "tasks", ready: "text=asks you to approve" },
  { name: "federation", path: "federation", ready: "text=auditor" },
  { name: "swarm-page", path: "federation/vendor", ready: "text=Tasks shared with it" },
  { name: "mesh", path: "mesh", ready: "text=asks to join" },
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
await scene.close();
