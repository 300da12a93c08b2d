/** Actions that wait for approval, decided in a real browser: approved, changed, rejected, and by others. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createServer, type MailroomServer } from "../../src/server/index.js";
import { actAs, BROWSER, expectAccessible, openBrowser, openPage, typeInto } from "./browser.js";
import { opsSwarm, RESTART } from "./ops.js";

interface Journal {
  readonly key: string;
  readonly status: string;
  readonly entries: readonly Readonly<Record<string, unknown>>[];
}

describe.skipIf(BROWSER === undefined)("an action that waits for approval", () => {
  let browser: Browser;
  let server: MailroomServer;
  let url: string;

  beforeAll(async () => {
    browser = await openBrowser();
    server = await createServer({
      swarm: opsSwarm({ pace: 0 }),
      dev: true,
      data: false,
      settings: { log: { level: "silent" } },
    });
    url = await server.listen({ port: 0 });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close(0);
  });

  async function call<T>(path: string, who: string, body?: unknown): Promise<T> {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${who}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    expect(response.ok, await response.clone().text()).toBe(true);
    return JSON.parse(await response.text());
  }
  const journal = (who: string, id: string) => call<Journal>(`/tasks/${id}/journal?limit=1000`, who);
  const until = (who: string, id: string, status: string) =>
    expect.poll(async () => (await journal(who, id)).status, { timeout: 20_000 }).toBe(status);

  /** A task of the person that waits, and a page that shows it. */
  async function waiting(who: string, path: (id: string) => string, as = who) {
    const { task_id } = await call<{ task_id: string }>("/message", who, { body: RESTART, wait: false });
    await until(who, task_id, "paused");
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(async () => {
      await context.close();
      expect(wrong).toEqual([]);
    });
    await page.addInitScript(actAs(as));
    await page.goto(`${url}/console/${path(task_id)}`);
    return { page, id: task_id };
  }
  const decision = async (who: string, id: string) =>
    (await journal(who, id)).entries.find(({ t }) => t === "approval_answered");
  const asked = (page: Page) => page.getByText("lead asks you to approve an action").first().waitFor();

  it("is approved by keyboard alone in the list of what needs a person", async () => {
    const { page, id } = await waiting("user:ann", () => "needs-you");
    await asked(page);
    await page.getByText("search-api-7d9c-2kqxm, search-api-7d9c-x8f4t").waitFor();
    await expectAccessible(page, "approval");
    await page.keyboard.press("a");
    await page.locator("[data-answer]:focus").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Approved: restart_pods").waitFor();
    await until("user:ann", id, "completed");
    expect(await decision("user:ann", id)).toMatchObject({ decision: "approved" });
    expect(JSON.stringify(await journal("user:ann", id))).toContain("restarted search-api-7d9c-2kqxm");
  });

  it("runs with changed arguments only if they are valid", async () => {
    const { page, id } = await waiting("user:mei", (task) => `tasks/${task}`);
    await asked(page);
    await page.keyboard.press("a");
    await page.locator("[data-answer]:focus").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const field = page.getByLabel("Arguments of restart_pods");
    await field.waitFor();
    await expectAccessible(page, "changed arguments");
    const send = async (text: string) => {
      await field.fill(text);
      await field.press("Control+Enter");
    };
    await send('{"service": "search-api"');
    await page.getByRole("alert").getByText("This is not valid JSON").waitFor();
    await send("[1]");
    await page.getByRole("alert").getByText("The arguments must be a JSON object").waitFor();
    await send('{"service": "search-api", "pods": ["one"], "grace_seconds": 900}');
    await page.getByRole("alert").getByText("grace_seconds").waitFor();
    expect((await journal("user:mei", id)).status).toBe("paused");
    expect(await decision("user:mei", id)).toBeUndefined();
    await send('{"service": "search-api", "pods": ["one"], "grace_seconds": 5}');
    await until("user:mei", id, "completed");
    expect(await decision("user:mei", id)).toMatchObject({
      decision: "approved",
      args: { service: "search-api", pods: ["one"], grace_seconds: 5 },
    });
  });

  it("is rejected with a reason that the agent reads", async () => {
    const { page, id } = await waiting("user:raj", () => "tasks");
    await asked(page);
    await page.getByRole("button", { name: "Reject" }).press("Enter");
    const reason = page.getByLabel("Why restart_pods is rejected");
    await typeInto(reason, "not during the sale");
    await reason.press("Enter");
    await until("user:raj", id, "completed");
    expect(await decision("user:raj", id)).toMatchObject({
      decision: "rejected",
      reason: "not during the sale",
    });
  });

  it("is decided by a second user that the owner named, who sees nothing else of the task", async () => {
    const { page, id } = await waiting("user:ida", () => "access", "user:bob");
    await call(`/tasks/${id}/approvers`, "user:ida", { approvers: ["user:bob"] });
    await page.goto(`${url}/console/needs-you`);
    await page.getByText("you were named for it").waitFor();
    await asked(page);
    await page.keyboard.press("a");
    await page.locator("[data-answer]:focus").waitFor();
    await page.keyboard.press("Enter");
    await until("user:ida", id, "completed");
    expect(await decision("user:ida", id)).toMatchObject({ decision: "approved", by: "user:bob" });
    await page.goto(`${url}/console/tasks/${id}`);
    await page.getByText("There is no such task, or it is not yours.").waitFor();
  });
});
