/** The client in browsers: its bundle, and MAP in a real one. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { BROWSER, openBrowser } from "../console/browser.js";
import { BridgeHarness } from "../map/bridge-harness.js";

/** For the platform `browser` esbuild fails on every import of a Node built-in. */
async function bundle() {
  return build({
    entryPoints: [fileURLToPath(new URL("../../src/client/index.ts", import.meta.url))],
    bundle: true,
    format: "iife",
    globalName: "mailroom",
    platform: "browser",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
}

it("the client library can be bundled for a browser without Node built-ins", async () => {
  const { metafile, errors } = await bundle();
  expect(errors).toEqual([]);
  const packages = Object.keys(metafile.inputs)
    .filter((path) => path.includes("node_modules/"))
    .map((path) => path.split("node_modules/").at(-1)?.split("/")[0]);
  expect([...new Set(packages)].sort()).toEqual(["eventsource-parser", "ws", "zod"]);
  // What the package has for browsers: an empty file instead of its WebSocket.
  expect(Object.keys(metafile.inputs).filter((path) => path.includes("/ws/"))).toEqual([
    expect.stringMatching(/ws\/browser\.js$/),
  ]);
});

it.skipIf(BROWSER === undefined)(
  "a page talks, follows over a lost connection, serves an agent, and learns why it is refused",
  async () => {
    const { outputFiles } = await bundle();
    const script = outputFiles[0]?.text ?? "";
    const site = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>page</title>");
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    const { port } = site.address() as AddressInfo;
    // Development mode accepts pages of this machine; the other server accepts none.
    const friendly = await BridgeHarness.start({ dev: true });
    const strict = await BridgeHarness.start();
    const browser = await openBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${port}/`);
      await page.addScriptTag({ content: script });

      const talked = page.evaluate<unknown>(`(async () => {
        const sockets = [];
        const states = [];
        const client = await mailroom.ConversationClient.connect(${JSON.stringify(friendly.url)}, {
          token: "user:ann",
          open: (url) => { const socket = new WebSocket(url); sockets.push(socket); return socket; },
          onState: ({ status }) => states.push(status),
        });
        const { id } = await client.create({ subject: "from a page" });
        const events = await client.follow({ conversationId: id });
        await client.say(id, "one");
        const words = [];
        for await (const event of events) {
          if (event.type !== "mail.turn.added") continue;
          words.push(event.data.turn.content.text);
          if (words.length === 1) {
            sockets.at(-1).close();
            await client.get(id);
            await client.say(id, "two");
          } else break;
        }
        const agent = await mailroom.serveAgent(${JSON.stringify(friendly.url)}, {
          token: "member:coder", name: "coder", run: (mail) => "in a page: " + mail.body,
        });
        window.agent = agent;
        client.close();
        await client.finished;
        return { words, states, sockets: sockets.length };
      })()`);
      expect(await talked).toEqual({
        words: ["one", "two"],
        states: ["connecting", "open", "waiting", "connecting", "open", "closed"],
        sockets: 2,
      });
      const { message } = await (await friendly.mailroom.user("ann").post("a job")).outcome;
      expect(message.message.body).toBe("coder says: in a page: a job");
      await page.evaluate("agent.close()");

      const refused = await page.evaluate<unknown>(`(async () => {
        try {
          await mailroom.ConversationClient.connect(${JSON.stringify(strict.url)}, { token: "user:ann" });
        } catch ({ code, message, closing }) {
          return { code, message, closing };
        }
      })()`);
      const reason = "the page's origin is not allowed; add it to cors_origins";
      expect(refused).toEqual({
        code: "refused",
        message: `${strict.url.replace("http", "ws")}/map refused the connection: ${reason}`,
        closing: { code: 4403, reason },
      });
    } finally {
      await browser.close();
      await Promise.all([friendly.stop(), strict.stop(), new Promise((resolve) => site.close(resolve))]);
    }
  },
);
