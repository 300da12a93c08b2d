/** The console in a real browser, against a real server. */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createServer, type MailroomServer } from "../../src/server/index.js";
import {
  actAs,
  BROWSER,
  openBrowser,
  openPage,
  type PageOptions,
  typeInto,
  type WatchedPage,
} from "./browser.js";
import { INCIDENT, opsSwarm, QUESTIONS } from "./ops.js";

const PICTURES = resolve(import.meta.dirname, "../../coverage/console");

interface Journal {
  readonly entries: readonly { readonly n: number; readonly t: string }[];
  readonly number: number;
  readonly key: string;
  readonly status: string;
}

describe.skipIf(BROWSER === undefined)("the console", () => {
  let browser: Browser;
  let server: MailroomServer;
  let url: string;

  beforeAll(async () => {
    await mkdir(PICTURES, { recursive: true });
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
  const post = (who: string, body: string) =>
    call<{ task_id: string }>("/message", who, { body, wait: false });
  const journal = (who: string, id: string) => call<Journal>(`/tasks/${id}/journal?limit=1000`, who);
  async function until(who: string, id: string, status: string): Promise<Journal> {
    return await expect
      .poll(async () => journal(who, id), { timeout: 20_000 })
      .toMatchObject({ status })
      .then(() => journal(who, id));
  }

  async function open(
    path: string,
    options: PageOptions & { readonly as?: string } = {},
  ): Promise<WatchedPage> {
    const watched = await openPage(browser, url, options);
    onTestFinished(() => watched.context.close());
    if (options.as !== undefined) {
      const { as } = options;
      await watched.page.addInitScript(actAs(as));
    }
    await watched.page.goto(`${url}/console/${path}`);
    return watched;
  }
  const picture = (page: Page, name: string) => page.screenshot({ path: join(PICTURES, `${name}.png`) });
  /** The numbers of the rows that lanes have in the document. */
  const numbers = (page: Page) =>
    page.evaluate<number[]>(
      "[...document.querySelectorAll('.lane-row:not([hidden])[data-n]')].map((row) => Number(row.dataset.n))",
    );

  it("shows a task the moment it is posted, and its answer when it comes", async () => {
    const { page, wrong } = await open("");
    await page.getByRole("listbox", { name: "Tasks" }).or(page.getByText("No tasks yet")).first().waitFor();
    const { task_id } = await post("user:ann", QUESTIONS[0]);
    const row = page.getByRole("option", { name: /Count 5xx of profile-api/ }).first();
    await row.waitFor();
    await until("user:ann", task_id, "completed");
    await row.getByText("Completed").waitFor();
    expect(wrong).toEqual([]);
  });

  it("draws every entry of a task in its lanes, and answers by keyboard alone", async () => {
    const { task_id } = await post("user:mei", INCIDENT);
    const paused = await until("user:mei", task_id, "paused");
    const { page, wrong } = await open("needs-you", { as: "user:mei" });
    await page.getByText("lead waits for your answer").first().waitFor();
    await picture(page, "needs-you");
    const field = page.locator("[data-answer]");
    await field.waitFor();
    await page.keyboard.press("a");
    await typeInto(field, "yes, roll back");
    await field.press("Enter");
    const done = await until("user:mei", task_id, "completed");
    expect(done.number).toBeGreaterThan(paused.number);
    await page.goto(`${url}/console/tasks/${task_id}`);
    await page.locator(`[data-n="${done.number}"]`).waitFor();
    await page.keyboard.press("Home");
    await page.getByRole("complementary", { name: "Inspector" }).waitFor();
    await page.locator('[data-n="2"]').waitFor();
    const drawn = new Set<number>();
    for (let at = 0; at < done.number; at++) {
      for (const n of await numbers(page)) drawn.add(n);
      await page.keyboard.press("j");
      if (at % 10 === 0) await page.locator(".inspector").waitFor();
    }
    const said = done.entries.filter(({ t }) =>
      ["turn", "action_started", "action_finished", "paused", "completed"].includes(t),
    );
    for (const { n, t } of said) expect(drawn, `${t} #${n}`).toContain(n);
    await picture(page, "task-light");
    expect(wrong).toEqual([]);
  });

  it("lets those answer whom the owner named, and shows them the question alone", async () => {
    const { task_id } = await post("user:ida", INCIDENT);
    const { key } = await until("user:ida", task_id, "paused");
    await call(`/tasks/${task_id}/approvers`, "user:ida", { approvers: ["user:bob"] });
    const { page, wrong } = await open("needs-you", { as: "user:bob" });
    await page.getByText("you were named for it").waitFor();
    const field = page.locator("[data-answer]");
    await field.waitFor();
    await page.keyboard.press("a");
    await typeInto(field, "yes");
    await field.press("Enter");
    await until("user:ida", task_id, "completed");
    await page.goto(`${url}/console/tasks/${task_id}`);
    await page.getByText("There is no such task, or it is not yours.").waitFor();
    await page.goto(`${url}/console/all/${key}`);
    await page
      .getByText(/Not allowed|not yours/)
      .first()
      .waitFor();
    expect(wrong).toEqual([]);
  });

  it("goes from a request to its response with one key, and shows the state as of any entry", async () => {
    const { task_id } = await post("user:ann", QUESTIONS[2]);
    const done = await until("user:ann", task_id, "completed");
    const request = done.entries.find(({ n, t }) => t === "sent" && n > 2)?.n ?? 0;
    const { page } = await open(`tasks/${task_id}?sel=${request}`, { as: "user:ann" });
    await page.getByRole("heading", { name: "Request of lead" }).waitFor();
    await page.keyboard.press("r");
    await page.getByRole("heading", { name: /Response of/ }).waitFor();
    await page.keyboard.press("l");
    await page.keyboard.press("[");
    await page.getByText(`#${done.number - 1} of ${done.number}`).waitFor();
    await page.getByText(`State as of #${done.number - 1}`).waitFor();
    await page.keyboard.press("l");
    await page.getByText(`#${done.number} of ${done.number}`).waitFor();
    await page.keyboard.press("/");
    const search = page.getByRole("combobox");
    await typeInto(search, "#3");
    await page.getByRole("option", { name: "Entry #3 of this task" }).waitFor();
    await search.press("Enter");
    await page.getByRole("complementary", { name: "Inspector" }).getByText("#3", { exact: true }).waitFor();
    await page.keyboard.press("/");
    await typeInto(search, "@metrics");
    await page.getByRole("option", { name: "@metrics" }).waitFor();
    await search.press("Enter");
    await page.getByRole("button", { name: "only metrics ×" }).click();
    for (const [key, text] of [
      ["2", "by user:ann@ops, entrypoint lead"],
      ["3", "in memory"],
      ["4", "Write as user:ann"],
      ["5", "By agent"],
      ["6", "Copy these"],
    ] as const) {
      await page.keyboard.press(key);
      await (key === "4" ? page.getByPlaceholder(text) : page.getByText(text)).first().waitFor();
    }
  });

  it("posts, writes and cancels by keyboard alone", async () => {
    const { page, wrong } = await open("", { as: "user:kim" });
    await page.getByText("No tasks yet").waitFor();
    await picture(page, "empty");
    await page.keyboard.press("n");
    const asked = page.getByRole("dialog", { name: "New task" }).getByLabel("What is asked");
    await typeInto(asked, INCIDENT);
    await asked.press("Control+Enter");
    await page.waitForURL(/\/tasks\//);
    const id = decodeURIComponent(new URL(page.url()).pathname.split("/").at(-1) ?? "");
    await until("user:kim", id, "paused");
    await page.getByRole("banner").getByText("Needs you", { exact: true }).waitFor();
    await page.keyboard.press("m");
    const written = page.getByRole("dialog", { name: "Message" }).getByLabel("Message", { exact: true });
    await typeInto(written, "Never mind.");
    await written.press("Control+Enter");
    await expect.poll(async () => JSON.stringify(await journal("user:kim", id))).toContain("Never mind.");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    const search = page.getByRole("combobox");
    await typeInto(search, ">needs");
    await page.getByRole("option", { name: /Needs you/ }).waitFor();
    await search.press("Enter");
    await page.waitForURL(/needs-you/);
    const second = await post("user:kim", `Again: ${INCIDENT}`);
    await until("user:kim", second.task_id, "paused");
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.waitForURL(/\/tasks$/);
    await page.getByRole("option", { name: /Again/, selected: true }).waitFor();
    await page.keyboard.press("x");
    await page.keyboard.press(".");
    await page.getByRole("dialog", { name: /Cancel/ }).waitFor();
    await page.keyboard.press("Enter");
    await until("user:kim", second.task_id, "cancelled");
    expect(wrong).toEqual([]);
  });

  it("says plainly what is not there", async () => {
    const { page } = await open("tasks/nothing-like-this", { as: "user:ann" });
    await page.getByText("There is no such task, or it is not yours.").waitFor();
    // The stream continues without the task.
    await page.getByText("Live", { exact: true }).first().waitFor();
    expect(await page.getByText(/^Reconnecting/).count()).toBe(0);
    await page.goto(`${url}/console/tasks?q=zzzzzz`);
    await page.getByText("No task matches").waitFor();
    await page.getByRole("button", { name: "text “zzzzzz” ×" }).click();
    await page.getByRole("option").first().waitFor();
    await page.goto(`${url}/console/tasks?q=zzzzzz&status=failed`);
    await page.getByRole("button", { name: "status failed ×" }).waitFor();
    await page.getByRole("button", { name: "Clear all filters" }).click();
    await page.getByRole("option").first().waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("opens ten thousand tasks as it opens ten", async () => {
    const kept = server.mailroom.user("many");
    for (let batch = 0; batch < 100; batch++) {
      await Promise.all(Array.from({ length: 100 }, () => kept.post(QUESTIONS[7])));
    }
    const { page } = await open("tasks", { as: "user:many" });
    await page.getByRole("option").first().waitFor();
    const nodes = () => page.evaluate<number>("document.getElementsByTagName('*').length");
    expect(await nodes()).toBeLessThan(2_500);
    const height = () => page.evaluate<number>("document.querySelector('.virtual').scrollHeight");
    for (let step = 0; step < 12; step++) {
      const before = await height();
      await page.evaluate(
        "const list = document.querySelector('.virtual'); list.scrollTop = list.scrollHeight",
      );
      await expect.poll(height, { timeout: 15_000 }).toBeGreaterThan(before);
    }
    await page.getByRole("option").first().waitFor();
    expect(await nodes()).toBeLessThan(2_500);
  });
});
