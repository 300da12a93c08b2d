/** A conversation on the page: who is in it, what each may do, and who sees what is written. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { RawClient } from "../map/harness.js";
import { actAs, BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { type Served, serve } from "./served.js";

const KITCHEN = defineSwarm({
  name: "kitchen",
  agents: [
    defineAgent({
      name: "chef",
      enableEntrypoint: true,
      canCompleteTasks: true,
      run: () => ({ calls: [] }),
    }),
  ],
});

/** A conversation of ann with a cook, who sees what is said since joining, a waiter and a guest who only reads. */
async function lunch(served: Served): Promise<string> {
  const socket = new WebSocket(`${served.url.replace("http", "ws")}/map`);
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  const raw = new RawClient(socket);
  await raw.call("map/connect", { protocolVersion: 1, auth: { method: "bearer", token: "user:ann" } });
  const { conversation } = await raw.call("mail/create", {
    subject: "Lunch",
    initialTurn: { contentType: "text", content: { text: "Soup?" } },
    initialParticipants: [
      { id: "user:cook", permissions: { historyAccess: "from-join" } },
      { id: "user:waiter" },
      { id: "user:guest", role: "observer" },
    ],
  });
  socket.close();
  return (conversation as { readonly id: string }).id;
}

describe.skipIf(BROWSER === undefined)("a conversation on the page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  async function open(served: Served, who: string, path: string): Promise<Page> {
    const { page, context, wrong } = await openPage(browser, served.url);
    onTestFinished(async () => {
      await context.close();
      expect(wrong).toEqual([]);
    });
    await page.addInitScript(actAs(who));
    await page.goto(`${served.url}/console/${path}`);
    return page;
  }

  it("tells what members see and may do, and shows a turn only to those it is for", async () => {
    const served = await serve({ swarm: KITCHEN, dev: true });
    const path = `talk/${await lunch(served)}`;
    const page = await open(served, "user:ann", path);
    await page.getByText("4 members", { exact: true }).click();
    const members = page.locator(".members li");
    for (const words of [
      "user:ann: initiator, sees everything, internal turns too; may write, start threads, invite and remove",
      "user:cook: assistant, sees everything since joining; may write and start threads, not invite or remove",
      "user:guest: observer, sees everything; may not write, start threads, invite or remove",
    ]) {
      await members.filter({ hasText: words }).waitFor();
    }

    await page.getByText("to: everybody").click();
    await page.getByRole("checkbox", { name: "user:cook" }).check();
    await page.getByRole("checkbox", { name: "user:waiter" }).check();
    const say = page.getByLabel("Say something");
    await say.fill("Leek, please");
    await expectAccessible(page, "a conversation");
    await say.press("Control+Enter");
    const turn = page.locator(".bubble", { hasText: "Leek, please" });
    await turn.getByText("visible to: user:cook, user:waiter, user:ann").waitFor();

    await page.getByRole("button", { name: "as user:guest sees it" }).click();
    await turn.waitFor({ state: "detached" });
    await page.locator(".bubble", { hasText: "Soup?" }).waitFor();
    await expectAccessible(page, "a conversation as another member sees it");
    await page.getByRole("button", { name: "as user:cook sees it" }).click();
    await turn.waitFor();
    await page.getByRole("button", { name: "as user:cook sees it ×" }).click();
    await say.waitFor();

    const waiter = await open(served, "user:waiter", path);
    await waiter.locator(".bubble", { hasText: "Leek, please" }).waitFor();
    const guest = await open(served, "user:guest", path);
    await guest.locator(".bubble", { hasText: "Soup?" }).waitFor();
    expect(await guest.getByText("Leek, please").count()).toBe(0);
  });
});
