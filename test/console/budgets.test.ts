/** A task that paused at a limit continues when the limit is raised from the page, by the one who may raise it. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { defineAction, defineAgent, defineSwarm } from "../../src/index.js";
import { BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { serve, signIn } from "./served.js";

const ONE_CALL = { maxCalls: 1 };
const SETTINGS: Readonly<Record<string, string>> = {
  caller: "callerBudget",
  caller_total: "callerTotalBudget",
  day: "dayBudget",
};

/** Calls a model, looks something up, calls it again, and completes. */
function desk(scope: string) {
  let calls = 0;
  const look = defineAction({
    name: "look",
    description: "Looks.",
    parameters: { type: "object", properties: {} },
    run: () => "nothing new",
  });
  const agent = defineAgent({
    name: "desk",
    enableEntrypoint: true,
    canCompleteTasks: true,
    actions: [look],
    ...(scope === "agent" && { budget: ONE_CALL }),
    run: async (turn) => {
      await turn.beginCall({ model: "test/model", inputTokens: 100 });
      const isDone = turn.history.some((item) => item.kind === "result");
      return {
        usage: { calls: 1, inputTokens: 100, outputTokens: 10, model: "test/model" },
        calls: [
          isDone
            ? { id: `c${++calls}`, name: "task_complete", args: { finish_message: "All is well." } }
            : { id: `c${++calls}`, name: "look", args: {} },
        ],
      };
    },
  });
  return defineSwarm({ name: "desk", agents: [agent], ...(scope === "task" && { budget: ONE_CALL }) });
}

describe.skipIf(BROWSER === undefined)("a task that reached a limit", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  async function signedIn(url: string, path: string, token: string) {
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(async () => {
      await context.close();
      expect(wrong).toEqual([]);
    });
    await page.goto(`${url}/console/${path}`);
    await signIn(page, token);
    return page;
  }

  it.each([
    ["owner", "user:ann"],
    ["task", "admin"],
    ["agent", "admin"],
    ["caller", "admin"],
    ["caller_total", "admin"],
    ["day", "admin"],
  ] as const)(
    "continues when the limit of scope %s is raised by %s, and offers that to no other caller",
    async (scope, by) => {
      const isOwner = by === "user:ann";
      const served = await serve({
        swarm: desk(scope),
        ...(scope in SETTINGS && { settings: { runtime: { [SETTINGS[scope] ?? ""]: ONE_CALL } } }),
      });
      const { url, server } = served;
      const { token: ann } = await server.tokens.create({ role: "user", id: "ann" });
      const { token: root } = await server.tokens.create({ role: "admin", id: "root" });
      const id = await served.post(
        ann,
        "How is the weather?",
        isOwner ? { kwargs: { budget: { max_calls: 1 } } } : {},
      );
      const { key } = await served.until(ann, id, "paused");

      const other = await signedIn(url, isOwner ? `all/${key}` : "needs-you", isOwner ? root : ann);
      await other
        .getByText(isOwner ? "Only user:ann can raise it." : "Only an admin can raise it.")
        .waitFor();
      expect(await other.getByLabel("New limit").count()).toBe(0);

      const page = await signedIn(url, isOwner ? "needs-you" : `all/${key}`, isOwner ? ann : root);
      const field = page.getByLabel("New limit");
      await field.waitFor();
      expect(await field.inputValue()).toBe("2");
      await page.getByText("desk reached a limit").first().waitFor();
      expect(await page.getByText("is on hold").count()).toBe(0);
      await expectAccessible(page, "a reached limit");
      await page.keyboard.press("a");
      await page.locator("[data-answer]:focus").waitFor();
      await field.fill("1");
      await field.press("Enter");
      await page.getByRole("alert").getByText("The new limit must be a number above 1.").waitFor();
      expect((await served.journal(ann, id)).status).toBe("paused");
      await field.fill("5");
      await field.press("Enter");
      await served.until(ann, id, "completed");
      await page.getByText("Completed").or(page.getByText("The limit is set.")).first().waitFor();
    },
  );
});
