/** A task with more agents than there is room for, and the list of the tasks of one of them. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../src/base/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { freePort } from "../kit/free-port.js";
import { actAs, BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { serve } from "./served.js";

const WORKERS = 13;
const STEPS = { kwargs: { max_steps: 100 } };

/** A lead asks one worker after another. */
function crowd() {
  let calls = 0;
  const call = (name: string, args: Record<string, unknown>) => ({ id: `c${++calls}`, name, args });
  const lead = defineAgent({
    name: "lead",
    enableEntrypoint: true,
    canCompleteTasks: true,
    commTargets: Array.from({ length: WORKERS }, (_, index) => `worker${index + 1}`),
    run: (turn) => {
      const { sender } = turn.messages[0].message;
      const next = sender.address_type === "agent" ? Number(sender.address.slice("worker".length)) + 1 : 1;
      return {
        calls: [
          next > WORKERS
            ? call("task_complete", { finish_message: "Everybody was asked." })
            : call("send_request", {
                target: `worker${next}`,
                subject: "Ready?",
                body: `Are you ready, ${next}?`,
              }),
        ],
      };
    },
  });
  const workers = Array.from({ length: WORKERS }, (_, index) =>
    defineAgent({
      name: `worker${index + 1}`,
      commTargets: ["lead"],
      run: () => ({
        calls: [
          call("send_response", { target: "lead", subject: "Re: Ready?", body: `Ready, ${index + 1}.` }),
        ],
      }),
    }),
  );
  return defineSwarm({ name: "crowd", agents: [lead, ...workers] });
}

describe.skipIf(BROWSER === undefined)("a task of many agents", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  async function open(url: string, path: string): Promise<Page> {
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(async () => {
      await context.close();
      expect(wrong).toEqual([]);
    });
    await page.addInitScript(actAs("user:ann"));
    await page.goto(`${url}/console/${path}`);
    return page;
  }

  it("has columns for the lanes in view, and folds the others into one until all are asked for", async () => {
    const served = await serve({ swarm: crowd(), dev: true });
    const id = await served.post("user:ann", "Ask everybody", STEPS);
    const { number } = await served.until("user:ann", id, "completed");
    const page = await open(served.url, `tasks/${id}`);
    const names = () => page.locator(".lane-name:not(.gutter-name):visible b").allInnerTexts();
    await page.locator(`[data-n="${number}"]`).waitFor();
    await expect.poll(names).toContain("+5");
    expect(await names()).toHaveLength(11);
    expect(await names()).toEqual(expect.arrayContaining(["user:ann", "lead", "worker11", "worker13"]));
    await page.keyboard.press("Home");
    for (const name of ["worker1", "worker3", "+5"]) await expect.poll(names).toContain(name);
    expect(await names()).toHaveLength(11);
    await page.getByRole("button", { name: "all 15 lanes" }).click();
    await expect.poll(names).toHaveLength(15);
    expect(await names()).not.toContain("+5");
    await expectAccessible(page, "many lanes");
  });

  it("is found by an agent that took part, and an empty list says which filter hides how many", async () => {
    const served = await serve({ swarm: crowd(), dev: true });
    const all = await served.post("user:ann", "Ask everybody", STEPS);
    await served.until("user:ann", all, "completed");
    const page = await open(served.url, "tasks");
    await page.getByRole("option", { name: /Ask everybody/ }).waitFor();
    await page.getByRole("button", { name: "+ agent" }).click();
    await page.getByLabel("name of an agent").fill("worker7");
    await page.getByLabel("name of an agent").press("Enter");
    await page.getByRole("button", { name: "Remove the filter agent worker7" }).waitFor();
    await page.getByRole("option", { name: /Ask everybody/ }).waitFor();
    expect(new URL(page.url()).searchParams.get("agent")).toBe("worker7");
    // A task that comes later is added when the agent takes part in it.
    const later = await served.post("user:ann", "Ask them again", STEPS);
    await served.until("user:ann", later, "completed");
    await page.getByRole("option", { name: /Ask them again/ }).waitFor();
    await page.goto(`${served.url}/console/tasks?agent=absent&q=everybody`);
    await page.getByText("No task matches").waitFor();
    const rows = page.locator(".hiding li");
    await rows.filter({ hasText: "agent absent" }).getByText("hides 1 task", { exact: true }).waitFor();
    await rows.filter({ hasText: "text" }).getByText("hides nothing by itself").waitFor();
    await page.getByRole("button", { name: "agent absent ×" }).last().click();
    await page.getByRole("option", { name: /Ask everybody/ }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill("worker3");
    await page.getByRole("option", { name: "Tasks of worker3" }).click();
    await page.waitForURL(/agent=worker3/);
    await page.getByRole("option", { name: /Ask everybody/ }).waitFor();
  });

  it("tells above a lane what its agent does, now and as of an entry", async () => {
    const known = deferred<void>();
    onTestFinished(() => known.resolve());
    const lead = defineAgent({
      name: "lead",
      enableEntrypoint: true,
      canCompleteTasks: true,
      commTargets: ["worker"],
      run: ({ messages: [mail] }) => ({
        calls: [
          mail.message.sender.address_type === "agent"
            ? { id: "c2", name: "task_complete", args: { finish_message: "It is known." } }
            : { id: "c1", name: "send_request", args: { target: "worker", subject: "Why?", body: "Why?" } },
        ],
      }),
    });
    const worker = defineAgent({
      name: "worker",
      commTargets: ["lead"],
      run: async () => {
        await known.promise;
        return {
          calls: [
            { id: "c1", name: "send_response", args: { target: "lead", subject: "Re", body: "Because." } },
          ],
        };
      },
    });
    const served = await serve({ swarm: defineSwarm({ name: "pair", agents: [lead, worker] }), dev: true });
    const id = await served.post("user:ann", "Find out why");
    const page = await open(served.url, `tasks/${id}`);
    const head = (name: string) => page.locator(".lane-name:visible", { hasText: name });
    const answering = (name: string) => head(name).getByText("answers", { exact: true });
    await answering("worker").waitFor();
    expect(await answering("lead").count()).toBe(0);
    known.resolve();
    await head("lead").getByText("2 turns", { exact: true }).waitFor();
    await answering("worker").waitFor({ state: "detached" });
    await page.goto(`${served.url}/console/tasks/${id}?at=2`);
    await answering("lead").waitFor();
    expect(await answering("worker").count()).toBe(0);
    await expectAccessible(page, "what agents do, above the lanes");
  });

  it("tells above another swarm's lane that mail waits, and admins how often it was tried", async () => {
    const lead = defineAgent({
      name: "lead",
      enableEntrypoint: true,
      enableInterswarm: true,
      canCompleteTasks: true,
      commTargets: ["clerk@away"],
      run: () => ({
        calls: [
          { id: "c1", name: "send_request", args: { target: "clerk@away", subject: "Open?", body: "Open?" } },
        ],
      }),
    });
    const swarm = defineSwarm({ name: "desk", enableInterswarm: true, agents: [lead] });
    const served = await serve({ swarm, dev: true });
    await served.call("/swarms", "admin:dev", {
      name: "away",
      base_url: `http://127.0.0.1:${await freePort()}`,
      auth_token: "agent:desk",
    });
    const id = await served.post("user:ann", "Is the clerk there?");
    const page = await open(served.url, `tasks/${id}`);
    const away = (of: Page) => of.locator(".lane-name.foreign:visible .doing");
    await away(page).getByText("mail waits", { exact: true }).waitFor();
    const { key } = await served.journal("user:ann", id);
    const { page: admins, context } = await openPage(browser, served.url);
    onTestFinished(() => context.close());
    await admins.goto(`${served.url}/console/all/${key}`);
    await away(admins)
      .getByText(/^mail waits, \d+ (?:try|tries)$/)
      .waitFor();
  });
});
