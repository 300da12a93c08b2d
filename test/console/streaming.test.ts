/** An answer grows on the page while its agent writes it, also behind a proxy. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { deferred } from "../../src/base/index.js";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { NGINX, openNginx } from "./nginx.js";
import { serve, signIn } from "./served.js";

/** Writes the first half of its answer, and the rest when the test lets it. */
function writer() {
  const more = deferred<void>();
  const end = deferred<void>();
  const call = { id: "answer", name: "task_complete" };
  const agent = defineAgent({
    name: "writer",
    enableEntrypoint: true,
    canCompleteTasks: true,
    run: async (turn) => {
      turn.emitDelta("It is **sun", call);
      await more.promise;
      turn.emitDelta("ny** and warm", call);
      await end.promise;
      return { calls: [{ ...call, args: { finish_message: "It is **sunny** and warm today." } }] };
    },
  });
  onTestFinished(() => {
    more.resolve();
    end.resolve();
  });
  return { swarm: defineSwarm({ name: "desk", agents: [agent] }), more, end };
}

describe.skipIf(BROWSER === undefined)("an answer that is being written", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  const ways = ["from the server", "through nginx, which does not hold the stream back"] as const;
  it.each(ways.slice(0, NGINX === undefined ? 1 : 2))(
    "grows on the page %s, and ends as the answer",
    async (way) => {
      const { swarm, more, end } = writer();
      const served = await serve({ swarm });
      const { token } = await served.server.tokens.create({ role: "user", id: "ann" });
      const url = way !== ways[0] ? await openNginx(served.url) : served.url;
      const { page, context, wrong } = await openPage(browser, url);
      onTestFinished(() => context.close());
      const id = await served.post(token, "How is the weather?");
      await page.goto(`${url}/console/tasks/${id}?view=talk`);
      await signIn(page, token);
      const growing = page.locator(".bubble", { has: page.getByText("answers", { exact: true }) });
      await growing.getByText("It is **sun", { exact: true }).waitFor();
      more.resolve();
      await growing.getByText("It is sunny and warm", { exact: true }).waitFor();
      expect(await growing.locator("strong").innerText()).toBe("sunny");
      await expectAccessible(page, "an answer that grows");
      // A page that is opened in the middle has the whole text.
      await page.reload();
      await growing.getByText("It is sunny and warm", { exact: true }).waitFor();
      await page.getByRole("tab", { name: "Lanes" }).click();
      await page.getByLabel("writer writes").getByText("It is sunny and warm", { exact: true }).waitFor();
      await expectAccessible(page, "an answer that grows, in lanes");
      expect((await served.journal(token, id)).status).toBe("running");
      end.resolve();
      await page.getByLabel("writer writes").waitFor({ state: "detached" });
      await page.getByRole("tab", { name: "Conversation" }).click();
      await page.locator(".bubble").getByText("It is sunny and warm today.", { exact: true }).waitFor();
      expect(await growing.count()).toBe(0);
      expect(await page.getByText("It is sunny and warm").count()).toBe(1);
      expect(wrong).toEqual([]);
    },
  );

  it("is there although the stream was faster than the task's page", async () => {
    const served = await serve({ swarm: writer().swarm });
    const { token } = await served.server.tokens.create({ role: "user", id: "ann" });
    const { page, context, wrong } = await openPage(browser, served.url);
    onTestFinished(() => context.close());
    const id = await served.post(token, "How is the weather?");
    const streamed = deferred<void>();
    await page.route(`**/tasks/${id}/journal?*`, async (route) => {
      await streamed.promise;
      await route.continue();
    });
    await page.goto(`${served.url}/console/tasks/${id}?view=talk`);
    const stream = page.waitForResponse((response) => response.url().includes(`/feed?watch=${id}`));
    await signIn(page, token);
    await stream;
    const count = page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Tasks" });
    await count.getByText("1", { exact: true }).waitFor();
    // The stream tells of this task after the text that it begins with.
    await served.post(token, "Anything else?");
    await count.getByText("2", { exact: true }).waitFor();
    streamed.resolve();
    await page.locator(".bubble").getByText("It is **sun", { exact: true }).waitFor();
    expect(wrong).toEqual([]);
  });
});
