/** Every screen of the console with real data on it: accessible, in both themes, on wide and narrow displays. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { initMesh } from "../../src/mesh/index.js";
import { createServer, type MailroomServer } from "../../src/server/index.js";
import { BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { INCIDENT, opsSwarm, QUESTIONS } from "./ops.js";

const PICTURES = resolve(import.meta.dirname, "../../coverage/console");

describe.skipIf(BROWSER === undefined)("the console's screens", () => {
  let browser: Browser;
  let server: MailroomServer;
  let url: string;
  let data: string;
  /** The key of a task that waits for an answer. */
  let key: string;
  let conversation: string;

  async function call<T>(path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: "Bearer admin:dev", "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    expect(response.ok, await response.clone().text()).toBe(true);
    return JSON.parse(await response.text());
  }

  /** A swarm that does not answer, a mesh, tasks of every outcome, and a conversation. */
  beforeAll(async () => {
    await mkdir(PICTURES, { recursive: true });
    data = await mkdtemp(join(tmpdir(), "mailroom-screens-"));
    initMesh({ directory: data, agentId: "ops", endpoint: "https://localhost:9443/swarm", dev: true });
    server = await createServer({
      swarm: opsSwarm({ pace: 0 }),
      dev: true,
      data,
      settings: { log: { level: "silent" } },
    });
    url = await server.listen({ port: 0 });
    await call("/swarms", { name: "billing", base_url: "http://127.0.0.1:9", auth_token: "agent:ops" });
    for (const body of QUESTIONS) await call("/message", { body, wait: false });
    const { task_id } = await call<{ task_id: string }>("/message", { body: INCIDENT, wait: false });
    const journal = () => call<{ key: string; status: string }>(`/tasks/${task_id}/journal?limit=1`);
    await vi.waitFor(async () => expect(await journal()).toMatchObject({ status: "paused" }), {
      timeout: 20_000,
    });
    key = (await journal()).key;
    browser = await openBrowser();
    const { page, context } = await openPage(browser, url);
    await page.goto(`${url}/console/talk`);
    await page.getByRole("button", { name: "New" }).click();
    await page.keyboard.type("Rollback of checkout");
    await page.keyboard.press("Enter");
    await page.waitForURL(/talk\/./);
    await page.getByLabel("Say something").fill("Is the rollback **done**?");
    await page.keyboard.press("Control+Enter");
    await page.locator(".bubble").waitFor();
    conversation = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close(0);
    await rm(data, { recursive: true, force: true });
  });

  it.each([
    ["light", 1440],
    ["dark", 1440],
    ["light", 390],
    ["dark", 390],
  ] as const)("are accessible, %s, at %i pixels", async (theme, width) => {
    const { page, context, wrong } = await openPage(browser, url, {
      theme,
      width,
      height: width === 390 ? 844 : 900,
    });
    onTestFinished(() => context.close());
    const screens: readonly (readonly [string, string])[] = [
      ["tasks", "text=Checkout p99"],
      [`all/${key}`, ".lane-row"],
      [`all/${key}?sel=3`, ".inspector"],
      [`all/${key}?view=journal`, ".journal-row"],
      [`all/${key}?view=agents`, ".agent-memory"],
      [`all/${key}?view=talk`, ".bubble"],
      [`all/${key}?view=cost`, ".cost-view"],
      [`all/${key}?view=raw`, ".raw-view"],
      ["needs-you", ".ask"],
      ["swarm", ".graph .flow"],
      ["system", ".plot canvas"],
      ["federation", "text=billing"],
      ["access", ".page-body"],
      ["mesh", "text=https://localhost:9443/swarm"],
      ["talk", ".needs-row"],
      [`talk/${conversation}`, ".bubble"],
      ["tasks?q=zzz", "text=No task matches"],
    ];
    for (const [path, ready] of screens) {
      await page.goto(`${url}/console/${path}`);
      await page.locator(ready).first().waitFor();
      if (path === "swarm") await page.locator(".tile").first().waitFor();
      await expectAccessible(page, `${path} ${theme} ${width}`);
      expect(
        await page.evaluate<number>("document.documentElement.scrollWidth"),
        `${path} is wider than the display`,
      ).toBeLessThanOrEqual(width);
      const name = path.replace(key, "task").replace(conversation, "one");
      await page.screenshot({
        path: join(PICTURES, `${name.replace(/[^\w]+/g, "-")}-${theme}-${width}.png`),
      });
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
    expect(wrong).toEqual([]);
  });
});
