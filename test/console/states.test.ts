/** States that are not the happy path, who may see and do what, and the page below a proxy's prefix. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../src/base/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import type { ServerOptions } from "../../src/server/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { actAs, BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { NGINX, openNginx } from "./nginx.js";
import { INCIDENT, opsSwarm, QUESTIONS } from "./ops.js";
import { serve, signIn } from "./served.js";

describe.skipIf(BROWSER === undefined)("the console", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  const serveOps = (options: Partial<ServerOptions> = {}) =>
    serve({ swarm: opsSwarm({ pace: 0 }), ...options });
  async function open(origin: string, as?: string) {
    const watched = await openPage(browser, origin);
    onTestFinished(() => watched.context.close());
    if (as !== undefined) await watched.page.addInitScript(actAs(as));
    return watched;
  }
  /** What a request of the page itself answers, past everything that the page hides. */
  const statusOf = (page: Page, path: string, body?: unknown) =>
    page.evaluate<number>(`fetch(${JSON.stringify(path)}, {
      method: ${body === undefined ? '"GET"' : '"POST"'},
      headers: {
        "content-type": "application/json",
        "x-mailroom-console": Object.entries(localStorage).find(([name]) => name.includes("proof"))?.[1] ?? "",
      },
      ${body === undefined ? "" : `body: ${JSON.stringify(JSON.stringify(body))},`}
    }).then((response) => response.status)`);

  it("signs in over the page when the session expires, and continues where it was", async () => {
    const clock = new VirtualClock(Date.now());
    const served = await serveOps({ clock, settings: { console: { session: 60_000 } } });
    const { server, url } = served;
    const { token } = await server.tokens.create({ role: "user", id: "ann" });
    const { page, wrong } = await open(url);
    await page.goto(`${url}/console/needs-you`);
    await signIn(page, token);
    await page.getByText("Nothing waits for you").waitFor();
    await clock.advance(60_001);
    await page.getByText("Your session ended or its token was revoked").waitFor();
    await expectAccessible(page, "session ended");
    // The screen stays behind the dialog.
    await page.getByText("Nothing waits for you").waitFor();
    await signIn(page, token);
    await page.getByRole("dialog", { name: "Sign in" }).waitFor({ state: "hidden" });
    expect(new URL(page.url()).pathname).toBe("/console/needs-you");
    await page.getByText("Nothing waits for you").waitFor();
    expect(wrong).toEqual([]);
  });

  it("leads to the task that runs, in development and if there is only one", async () => {
    const end = deferred<void>();
    onTestFinished(() => end.resolve());
    const agent = defineAgent({
      name: "desk",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: async () => {
        await end.promise;
        return { calls: [{ id: "end", name: "task_complete", args: { finish_message: "Done." } }] };
      },
    });
    const served = await serve({ swarm: defineSwarm({ name: "desk", agents: [agent] }), dev: true });
    const id = await served.post("user:ann", "Is it done?");
    const { key } = await served.journal("user:ann", id);
    const admin = await open(served.url);
    await admin.page.goto(`${served.url}/console/`);
    await admin.page.waitForURL(`${served.url}/console/all/${key}`);
    await admin.page.getByRole("heading", { name: "Is it done?" }).waitFor();
    // The list stays within reach.
    await admin.page.keyboard.press("g");
    await admin.page.keyboard.press("t");
    await admin.page.getByRole("option", { name: /Is it done/ }).waitFor();
    const owner = await open(served.url, "user:ann");
    await owner.page.goto(`${served.url}/console/`);
    await owner.page.waitForURL(`${served.url}/console/tasks/${id}`);

    await served.post("user:ann", "And this?");
    const asked = admin.page.waitForResponse(/admin\/tasks\?.*limit=2/);
    await admin.page.goto(`${served.url}/console/`);
    await (await asked).finished();
    await admin.page.getByRole("option", { name: /And this/ }).waitFor();
    expect(admin.page.url()).toBe(`${served.url}/console/`);
    expect([...admin.wrong, ...owner.wrong]).toEqual([]);
  });

  it("says that a link to sign in is used up, and takes a token", async () => {
    const served = await serveOps();
    const { server, url } = served;
    const { token } = await server.tokens.create({ role: "user", id: "ann" });
    const { page, wrong } = await open(url);
    await page.goto(`${url}/console/#code=this-was-used-before`);
    await page.getByText("This link was used already, or is older than a minute.").waitFor();
    await signIn(page, token);
    await page.getByText("No tasks yet").waitFor();
    expect(wrong).toEqual([]);
  });

  it("keeps a removed task on the screen, marked and without actions", async () => {
    const served = await serveOps({ dev: true });
    const { server, url } = served;
    const id = await served.post("user:ann", QUESTIONS[0]);
    const { key } = await served.until("user:ann", id, "completed");
    const { page, wrong } = await open(url, "user:ann");
    await page.goto(`${url}/console/tasks/${id}`);
    await page.locator(".lane-row[data-n]").first().waitFor();
    await page.getByText("Live", { exact: true }).first().waitFor();
    expect(await server.mailroom.runtime.remove(key)).toBe(true);
    await page.getByText("removed by retention").waitFor();
    expect(await page.getByRole("button", { name: /^Message/ }).count()).toBe(0);
    expect(await page.locator(".lane-row[data-n]").count()).toBeGreaterThan(3);
    await expectAccessible(page, "removed task");
    await page.reload();
    await page.getByText("There is no such task, or it is not yours.").waitFor();
    expect(wrong).toEqual([]);
  });

  it("closes its stream in a hidden tab, and catches up when the tab is shown again", async () => {
    const served = await serveOps({ dev: true });
    const { url } = served;
    const { page, wrong } = await open(url, "user:ann");
    await page.clock.install();
    await page.goto(`${url}/console/tasks`);
    await page.getByText("Live", { exact: true }).first().waitFor();
    const seen = (hidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, value: ${hidden} });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await seen(true);
    await page.clock.fastForward("24:00:00");
    await page.getByText("Asleep").waitFor();
    const id = await served.post("user:ann", QUESTIONS[0]);
    await served.until("user:ann", id, "completed");
    await seen(false);
    await page.clock.resume();
    await page.getByText("Live", { exact: true }).first().waitFor();
    await page.getByRole("option", { name: /Count 5xx of profile-api/ }).waitFor();
    expect(wrong).toEqual([]);
  });

  it("stays readable while the server is gone, and writes nothing then", async () => {
    const served = await serveOps({ dev: true });
    const { server, url } = served;
    const id = await served.post("user:ann", INCIDENT);
    await served.until("user:ann", id, "paused");
    const { page, wrong } = await open(url, "user:ann");
    await page.goto(`${url}/console/tasks/${id}`);
    await page.getByText("lead waits for your answer").waitFor();
    await page.getByText("Live", { exact: true }).first().waitFor();
    await server.close(0);
    await page
      .getByText(/^Reconnecting/)
      .first()
      .waitFor();
    await expect.poll(() => page.getByRole("button", { name: "yes" }).isDisabled()).toBe(true);
    await page.keyboard.press("Home");
    await page.getByRole("complementary", { name: "Inspector" }).waitFor();
    await page.keyboard.press("2");
    await page.locator(".journal-row").first().waitFor();
    await expectAccessible(page, "server gone");
    expect(wrong).toEqual([]);
  });

  it("says how long a busy server wants it to wait, and tries again then", async () => {
    const { url } = await serveOps({ dev: true });
    const { page, wrong } = await open(url, "user:ann");
    let refused = false;
    await page.route(/\/tasks\?limit=/, async (route) => {
      if (refused) return await route.continue();
      refused = true;
      await route.fulfill({
        status: 503,
        headers: { "retry-after": "2" },
        json: { error: { code: "overloaded", message: "too many requests wait" } },
      });
    });
    await page.goto(`${url}/console/tasks`);
    await page
      .getByRole("alert")
      .getByText(/The page tries again in \d s/)
      .waitFor();
    await page.getByText("No tasks yet").waitFor();
    expect(wrong).toEqual([]);
  });

  it("offers to reload when the server has another version", async () => {
    const { url } = await serveOps({ dev: true });
    const { page, wrong } = await open(url, "user:ann");
    const hello = {
      cursor: "0",
      version: "9.9.9",
      started_at: 0,
      swarm: "ops",
      definition: "",
      caller: { role: "user", id: "ann" },
      dev: true,
    };
    await page.route(/\/feed(?:\?|$)/, (route) =>
      route.fulfill({
        contentType: "text/event-stream",
        body: `event: hello\ndata: ${JSON.stringify(hello)}\n\n`,
      }),
    );
    await page.goto(`${url}/console/tasks`);
    await page.getByRole("button", { name: "Reload for 9.9.9" }).waitFor();
    expect(wrong).toEqual([]);
  });

  it("replaces a screen that has a fault, and leaves the others", async () => {
    const { url } = await serveOps({ dev: true });
    const { page } = await open(url);
    await page.route(/\/swarms\/dump/, (route) => route.fulfill({ json: { swarm_name: "ops" } }));
    await page.goto(`${url}/console/swarm`);
    await page.getByRole("alert").getByText("This screen has a fault").waitFor();
    await page.getByRole("button", { name: "Copy the report" }).waitFor();
    await expectAccessible(page, "a screen with a fault");
    await page.getByRole("link", { name: /Access/ }).click();
    await page.getByText("Create a token").first().waitFor();
  });

  it("cancels all tasks of a filter, and shows the tasks of a time", async () => {
    const served = await serveOps({ dev: true });
    const { url } = served;
    const ids = await Promise.all([1, 2, 3].map((n) => served.post("user:ann", `${INCIDENT} (${n})`)));
    const other = await served.post("user:bob", INCIDENT);
    for (const id of ids) await served.until("user:ann", id, "paused");
    await served.until("user:bob", other, "paused");
    const { page, wrong } = await open(url);
    await page.goto(`${url}/console/tasks?owner=user:ann`);
    await page.getByRole("option").nth(2).waitFor();
    await page.getByRole("button", { name: "Cancel all of them" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel 3 tasks" }).click();
    for (const id of ids) await served.until("user:ann", id, "cancelled");
    expect((await served.journal("user:bob", other)).status).toBe("paused");
    await page.goto(`${url}/console/tasks`);
    await page.getByRole("option").nth(3).waitFor();
    // The left half of the strip is older than all tasks.
    const strip = await page.locator(".outcomes-box").boundingBox();
    if (strip === null) throw new Error("there is no strip");
    const middle = strip.y + strip.height / 2;
    await page.mouse.move(strip.x + 2, middle);
    await page.mouse.down();
    await page.mouse.move(strip.x + 60, middle, { steps: 4 });
    await page.mouse.up();
    await page.getByText("No task matches").waitFor();
    await page
      .getByRole("button", { name: /Remove the filter from .* until/ })
      .first()
      .click();
    await page.getByRole("option").nth(3).waitFor();
    await page.getByRole("button", { name: "Time" }).click();
    await page.getByRole("menuitem", { name: "last hour" }).click();
    await page.getByRole("option").nth(3).waitFor();
    expect(new URL(page.url()).searchParams.get("since")).toBe("1h");
    expect(wrong).toEqual([]);
  });

  describe("for each role", () => {
    const PAST = [
      "/admin/tasks",
      "/admin/tasks/counts",
      "/admin/stats",
      "/admin/traffic",
      "/admin/outbox",
      "/admin/tokens",
      "/swarms/dump",
      "/swarms/proposals",
      "/metrics",
    ] as const;
    const COMMON = ["Tasks", "Needs you", "Swarm", "Conversations", "Federation", "Access"] as const;

    it.each([
      {
        role: "user",
        screens: [...COMMON],
        shown: {
          swarm: "Its definition and figures are for admins",
          mesh: "The mesh is shown to admins.",
          system: "The figures of the server are shown to admins.",
          access: "You see your own tasks",
        },
        hidden: { federation: "Add a swarm", access: "Create a token", tasks: "everybody’s" },
        // Routes of MAIL answer 401 to a wrong role.
        past: [401, 403],
      },
      {
        role: "admin",
        screens: [...COMMON, "Mesh", "System"],
        shown: {
          swarm: "Who writes to whom",
          mesh: "This server has no mesh",
          system: "Tasks by outcome",
          access: "Create a token",
          federation: "Add a swarm",
          tasks: "everybody’s",
        },
        hidden: {},
        past: [200],
      },
    ] as const)("shows the role $role what the interface allows, and nothing else", async (row) => {
      const served = await serveOps();
      const { server, url } = served;
      const ann = await server.tokens.create({ role: "user", id: "ann" });
      const me = await server.tokens.create({ role: row.role, id: "me" });
      const id = await served.post(ann.token, INCIDENT);
      const { key } = await served.until(ann.token, id, "paused");
      const { page, wrong } = await open(url);
      await page.goto(`${url}/console/tasks`);
      await signIn(page, me.token);
      await page.getByRole("navigation").waitFor();
      await expect
        .poll(() => page.getByRole("navigation").getByRole("link").locator(".label").allInnerTexts())
        .toEqual(expect.arrayContaining([...row.screens]));
      expect(await page.getByRole("navigation").getByRole("link").count()).toBe(row.screens.length);
      for (const [screen, text] of Object.entries(row.shown)) {
        await page.goto(`${url}/console/${screen}`);
        await page.getByText(text).first().waitFor();
      }
      for (const [screen, text] of Object.entries(row.hidden)) {
        await page.goto(`${url}/console/${screen}`);
        await page.getByText("Live", { exact: true }).first().waitFor();
        expect(await page.getByText(text).count(), `${screen}: ${text}`).toBe(0);
      }
      // Another user's task: an admin reads it, and may cancel but not answer it.
      await page.goto(`${url}/console/all/${key}`);
      if (row.role === "admin") {
        await page.getByText("Only user:ann may answer this task.").waitFor();
        expect(await page.locator("[data-answer]").count()).toBe(0);
      } else
        await page
          .getByText(/Not allowed|not yours/)
          .first()
          .waitFor();
      for (const path of PAST) expect(row.past, path).toContain(await statusOf(page, path));
      expect(await statusOf(page, `/tasks/${id}/journal`)).toBe(404);
      expect(await statusOf(page, `/approvals/${key}`, { results: "yes" })).toBe(404);
      expect(row.past).toContain(await statusOf(page, `/admin/tasks/${key}/cancel`, {}));
      expect(wrong).toEqual([]);
    });

    it.each(["agent", "member"] as const)("turns a token with the role %s away with words", async (role) => {
      const served = await serveOps();
      const { server, url } = served;
      const { token } = await server.tokens.create({ role, id: "lead" });
      const { page } = await open(url);
      await page.goto(`${url}/console/`);
      await signIn(page, token);
      await page.getByRole("alert").getByText("serves an agent").waitFor();
    });
  });

  it.skipIf(NGINX === undefined)(
    "works below a path of nginx: sign-in, live list, lanes, conversations and links",
    async () => {
      const data = await mkdtemp(join(tmpdir(), "mailroom-proxy-"));
      onTestFinished(() => rm(data, { recursive: true, force: true }));
      const served = await serveOps({ data });
      const { token } = await served.server.tokens.create({ role: "user", id: "ann" });
      const below = await openNginx(served.url);
      const { page, wrong } = await open(below);
      await page.goto(`${below}/console/`);
      await signIn(page, token);
      await page.getByText("No tasks yet").waitFor();
      const id = await served.post(token, QUESTIONS[0]);
      const row = page.getByRole("option", { name: /Count 5xx of profile-api/ });
      await row.waitFor();
      await served.until(token, id, "completed");
      await row.getByText("Completed").waitFor();
      await row.dblclick();
      await page.waitForURL(`${below}/console/tasks/${id}`);
      await page.locator(".lane-row[data-n]").first().waitFor();
      await page.reload();
      await page.locator(".lane-row[data-n]").first().waitFor();
      await page.getByRole("link", { name: "Conversations" }).click();
      await page.waitForURL(`${below}/console/talk`);
      await page.getByRole("button", { name: "New" }).click();
      const subject = page.getByLabel("Subject");
      await subject.fill("Below a proxy");
      await subject.press("Enter");
      const say = page.getByLabel("Say something");
      await say.fill("Hello");
      await say.press("Control+Enter");
      await page.locator(".bubble").getByText("Hello").waitFor();
      expect(page.url().startsWith(`${below}/console/talk/`)).toBe(true);
      expect(wrong).toEqual([]);
    },
  );
});
