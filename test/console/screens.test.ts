/** Every screen of the console with real data on it: accessible, in both themes, on wide and narrow displays. */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { openScene, type Scene } from "./scene.js";

const PICTURES = resolve(import.meta.dirname, "../../coverage/console");

type Screens = readonly (readonly [path: string, ready: string])[];

/**
 * How far to the right something reaches that cannot be scrolled to: what scrolls by itself, such as a wide table, is
 * left out.
 */
const widest = (page: Page) =>
  page.evaluate<number>(`Math.ceil(Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll("main *, header *")]
    .filter((element) => {
      if (element.closest("svg") !== null || element.getClientRects().length === 0) return false;
      for (let box = element; box !== null; box = box.parentElement) {
        if (box !== element && getComputedStyle(box).overflowX !== "visible" && box.tagName !== "BODY") return false;
      }
      return true;
    })
    .map((element) => element.getBoundingClientRect().right)))`);

describe.skipIf(BROWSER === undefined)("the console's screens", () => {
  let browser: Browser;
  let scene: Scene;
  let url: string;
  /** The key of a completed incident. */
  let key: string;
  let conversation: string;

  beforeAll(async () => {
    await mkdir(PICTURES, { recursive: true });
    scene = await openScene({ pace: 0 });
    url = scene.url;
    key = scene.done.key;
    browser = await openBrowser();
    const { page, context } = await openPage(browser, url);
    await page.goto(`${url}/console/talk`);
    await page.getByRole("button", { name: "New" }).click();
    const subject = page.getByLabel("Subject");
    await subject.fill("Rollback of checkout");
    await subject.press("Enter");
    const say = page.getByLabel("Say something");
    await say.fill("Is the rollback **done**?");
    await say.press("Control+Enter");
    await page.locator(".bubble").waitFor();
    conversation = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await scene?.close();
  });

  const DISPLAYS = [
    ["light", 1440],
    ["dark", 1440],
    ["light", 390],
    ["dark", 390],
  ] as const;

  async function open(theme: "light" | "dark", width: number) {
    const height = width < 720 ? 844 : 900;
    const watched = await openPage(browser, url, { theme, width, height });
    onTestFinished(async () => {
      await watched.context.close();
      expect(watched.wrong).toEqual([]);
    });
    return watched.page;
  }

  async function visit(page: Page, path: string, ready: string, width: number) {
    await page.goto(`${url}/console/${path}`);
    await page.locator(ready).first().waitFor();
    if (path === "swarm") await page.locator(".tile").first().waitFor();
    expect(await widest(page), `${path} is wider than the display`).toBeLessThanOrEqual(width);
  }

  async function look(page: Page, theme: string, width: number, screens: Screens) {
    for (const [path, ready] of screens) {
      await visit(page, path, ready, width);
      await expectAccessible(page, `${path} ${theme} ${width}`);
      const name = path
        .replace(key, "task")
        .replace(scene.approval, "approval")
        .replace(conversation, "one")
        .replace(/[^\w]+/g, "-");
      await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`) });
    }
  }

  /** Each with something that is there when it is ready. */
  const ofTasks = (): Screens => [
    ["tasks", "text=Checkout p99"],
    ["tasks?agent=comms", "text=Checkout p99"],
    ["tasks?q=zzz&status=failed", "text=hides"],
    [`all/${key}`, ".lane-row"],
    [`all/${key}?sel=3`, ".inspector"],
    [`all/${key}?at=22&sel=22`, ".inspector"],
    [`all/${key}?view=journal`, ".journal-row"],
    [`all/${key}?view=agents`, ".agent-memory"],
    [`all/${key}?view=talk`, ".bubble"],
    [`all/${key}?view=cost`, ".cost-view"],
    [`all/${key}?view=raw`, ".raw-view"],
    [`all/${scene.approval}`, "text=asks you to approve"],
    ["needs-you", ".ask"],
  ];
  const ofServer = (): Screens => [
    ["swarm", ".graph .flow"],
    ["system", "text=on disk before anything is acknowledged"],
    ["federation", "text=auditor"],
    ["federation/vendor", "text=Checkout p99"],
    ["federation/auditor", "text=answered"],
    ["access", ".page-body"],
    ["mesh", "text=asks to join"],
    ["talk", ".needs-row"],
    [`talk/${conversation}`, ".bubble"],
  ];

  it.each(DISPLAYS)("of tasks are accessible, %s, at %i pixels", async (theme, width) => {
    await look(await open(theme, width), theme, width, ofTasks());
  });

  it.each(DISPLAYS)("of the server are accessible, %s, at %i pixels", async (theme, width) => {
    await look(await open(theme, width), theme, width, ofServer());
  });

  it("fit on a display of 360 pixels", async () => {
    const page = await open("light", 360);
    for (const [path, ready] of [...ofTasks(), ...ofServer()]) await visit(page, path, ready, 360);
  });

  it.each(DISPLAYS)("that open over others are accessible, %s, at %i pixels", async (theme, width) => {
    const page = await open(theme, width);
    await page.goto(`${url}/console/tasks`);
    await page.locator("text=Checkout p99").first().waitFor();
    if (width === 390) {
      await page.getByRole("button", { name: "More" }).click();
      await expectAccessible(page, `more ${theme}`);
      await page.screenshot({ path: join(PICTURES, `more-${theme}-${width}.png`) });
      await page.getByRole("menuitem", { name: /^Federation/ }).click();
      await page.waitForURL(/\/federation$/);
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page, `keys ${theme}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page, `new task ${theme}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.getByRole("combobox").waitFor();
    await expectAccessible(page, `palette ${theme}`);
  });
});
