/** Sign-in, a server that dies and comes back, hostile text, and the built files, in a real browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { defineAgent, defineSwarm } from "../../src/index.js";
import { createServer } from "../../src/server/index.js";
import { actAs, BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { INCIDENT, opsSwarm } from "./ops.js";
import { signIn } from "./served.js";

const ROOT = resolve(import.meta.dirname, "../..");

interface Page {
  readonly entries: readonly { readonly n: number; readonly t: string }[];
  readonly number: number;
  readonly status: string;
}

async function journalOf(url: string, who: string, id: string): Promise<Page> {
  const response = await fetch(`${url}/tasks/${id}/journal?limit=1000`, {
    headers: { authorization: `Bearer ${who}` },
  });
  return JSON.parse(await response.text());
}

async function post(url: string, who: string, body: string): Promise<string> {
  const response = await fetch(`${url}/message`, {
    method: "POST",
    headers: { authorization: `Bearer ${who}`, "content-type": "application/json" },
    body: JSON.stringify({ body, wait: false }),
  });
  const { task_id }: { task_id: string } = JSON.parse(await response.text());
  return task_id;
}

describe.skipIf(BROWSER === undefined)("a session of the console", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  it("begins with a token, refuses a wrong one, and ends when the token is revoked", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-console-"));
    const server = await createServer({
      swarm: opsSwarm({ pace: 0 }),
      data: directory,
      settings: { log: { level: "silent" } },
    });
    onTestFinished(async () => {
      await server.close(0);
      await rm(directory, { recursive: true, force: true });
    });
    const url = await server.listen({ port: 0 });
    const made = await server.tokens.create({ role: "user", id: "ann" });
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(() => context.close());
    await page.goto(`${url}/console/needs-you`);
    const field = page.getByLabel("Token");
    await field.waitFor();
    await expectAccessible(page, "sign in");
    await signIn(page, "mr_this-is-not-a-token");
    await page.getByText("This token is not valid, or it was revoked.").waitFor();
    await signIn(page, made.token);
    await page.getByText("Nothing waits for you").waitFor();
    // Scripts see the proof, never the token.
    const seen = await page.evaluate<string>(
      "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)",
    );
    expect(seen).not.toContain(made.token);
    const cookies = await context.cookies();
    expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([
      { httpOnly: true, sameSite: "Strict" },
    ]);
    await page.reload();
    await page.getByText("Nothing waits for you").waitFor();
    await server.tokens.revoke(made.info.tokenId);
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByText("Your session ended or its token was revoked").waitFor();
    expect(wrong).toEqual([]);
  });

  it("loses and repeats no entry when the server is killed and started again", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-console-"));
    let child: ChildProcess | undefined;
    onTestFinished(async () => {
      child?.kill("SIGKILL");
      await rm(directory, { recursive: true, force: true });
    });
    const start = async (port: string) => {
      child = spawn(
        process.execPath,
        ["--import", "tsx", join(import.meta.dirname, "child.ts"), directory, port],
        {
          cwd: ROOT,
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      const [line] = await once(child.stdout ?? child, "data");
      return String(line).trim();
    };
    const url = await start("0");
    const id = await post(url, "user:ann", INCIDENT);
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(() => context.close());
    await page.addInitScript(actAs("user:ann"));
    await page.goto(`${url}/console/tasks/${id}`);
    await page.locator(".lane-row[data-n]").first().waitFor();
    await page.evaluate("window.notReloaded = true");
    child?.kill("SIGKILL");
    await page
      .getByText(/^Reconnecting/)
      .first()
      .waitFor();
    await start(new URL(url).port);
    await expect
      .poll(async () => (await journalOf(url, "user:ann", id)).status, { timeout: 30_000 })
      .toBe("paused");
    const journal = await journalOf(url, "user:ann", id);
    await page.getByText(`#${journal.number} of ${journal.number}`).waitFor();
    await page.getByText("Live", { exact: true }).first().waitFor();
    // The list view has every entry, also those that lanes draw as part of another.
    await page.keyboard.press("2");
    await page.getByText(`${journal.number} of ${journal.number}`, { exact: true }).waitFor();
    const shown = new Set<number>();
    await page.keyboard.press("Home");
    for (let at = 0; at < journal.number; at++) {
      const found = await page.evaluate<number[]>(
        "[...document.querySelectorAll('.journal-row > :first-child')].map((cell) => Number(cell.textContent))",
      );
      expect(new Set(found).size).toBe(found.length);
      for (const n of found) shown.add(n);
      if (shown.size === journal.number) break;
      await page.keyboard.press("j");
    }
    expect([...shown].sort((a, b) => a - b)).toEqual(journal.entries.map(({ n }) => n));
    expect(await page.evaluate("window.notReloaded")).toBe(true);
    expect(wrong).toEqual([]);
  });

  it("shows hostile text as text", async () => {
    const evil = [
      "<script>alert(1)</script>",
      "<img src=x onerror=alert(2)>",
      "[click](javascript:alert(3)) [data](data:text/html,<script>alert(4)</script>)",
      "![leak](https://evil.example/leak.png) <iframe src=https://evil.example></iframe>",
      "\u202Egnp.exe \u001b[31mred\u001b[0m zero\u200bwidth",
      '</script><svg onload=alert(5)> "><style>*{display:none}</style>',
      '{"__proto__": {"polluted": true}}',
      "x".repeat(1_000_000),
    ].join("\n\n");
    let calls = 0;
    const agent = defineAgent({
      name: "mallory",
      enableEntrypoint: true,
      canCompleteTasks: true,
      commTargets: ["__proto__"],
      run: (turn) =>
        turn.messages[0].message.sender.address_type === "user"
          ? {
              text: evil,
              reasoning: evil,
              calls: [
                {
                  id: `c${++calls}`,
                  name: "send_request",
                  args: { target: "__proto__", subject: "<b>subject</b>", body: evil },
                },
              ],
              usage: { model: "<i>model</i>", inputTokens: 1, outputTokens: 1 },
            }
          : { calls: [{ id: `c${++calls}`, name: "task_complete", args: { finish_message: evil } }] },
    });
    const proto = defineAgent({
      name: "__proto__",
      commTargets: ["mallory"],
      run: () => ({
        calls: [
          {
            id: `p${++calls}`,
            name: "send_response",
            args: { target: "mallory", subject: "constructor", body: evil },
          },
        ],
      }),
    });
    const server = await createServer({
      swarm: defineSwarm({ name: "evil", agents: [agent, proto] }),
      dev: true,
      data: false,
      settings: { log: { level: "silent" } },
    });
    onTestFinished(() => server.close(0));
    const url = await server.listen({ port: 0 });
    const title = `<script>alert("title")</script> ${"\u202E"}reversed`;
    const id = await post(url, "user:eve", title);
    await expect.poll(async () => (await journalOf(url, "user:eve", id)).status).toBe("completed");
    const { number } = await journalOf(url, "user:eve", id);
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(() => context.close());
    await page.addInitScript(
      `${actAs("user:eve")}; window.violations = []; document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(event.violatedDirective + " " + event.blockedURI));`,
    );
    await page.goto(`${url}/console/tasks`);
    await page.getByText('<script>alert("title")</script> ‹U+202E›reversed').first().waitFor();
    for (const view of ["lanes", "journal", "agents", "talk", "cost", "raw"]) {
      await page.goto(`${url}/console/tasks/${id}?view=${view}`);
      await page.locator(".task-view > *").first().waitFor();
      expect(await page.evaluate("window.violations")).toEqual([]);
    }
    for (let n = 1; n <= number; n++) {
      await page.goto(`${url}/console/tasks/${id}?sel=${n}`);
      await page.getByRole("complementary", { name: "Inspector" }).waitFor();
    }
    await page.goto(`${url}/console/tasks/${id}?sel=3`);
    await page.getByText("<img src=x onerror=alert(2)>").first().waitFor();
    await page.getByText("‹U+202E›gnp.exe").first().waitFor();
    const made = await page.evaluate<{
      scripts: number;
      links: string[];
      polluted: unknown;
      violations: string[];
    }>(`({
      scripts: document.querySelectorAll("#app script, #app img, #app iframe, #app style").length,
      links: [...document.querySelectorAll("#app a")].map((link) => link.protocol),
      polluted: ({}).polluted,
      violations: window.violations,
    })`);
    expect(made.scripts).toBe(0);
    for (const protocol of made.links) expect(protocol).toMatch(/^https?:$/);
    expect(made.polluted).toBeUndefined();
    expect(made.violations).toEqual([]);
    expect(wrong).toEqual([]);
  });
});

describe("the built console", () => {
  const folder = join(ROOT, "dist/console");

  it("makes no HTML from text beyond what Preact itself has, and asks no other origin", async () => {
    const files = (await readdir(join(folder, "assets"))).filter((name) => name.endsWith(".js"));
    const text = (
      await Promise.all(files.map((name) => readFile(join(folder, "assets", name), "utf8")))
    ).join("\n");
    // Preact's own, for `dangerouslySetInnerHTML`, which nothing uses.
    expect(text.match(/\.innerHTML/g)?.length ?? 0).toBeLessThanOrEqual(3);
    expect(text.match(/dangerouslySetInnerHTML(?=[:=])/g) ?? []).toEqual([]);
    expect(text).not.toMatch(/\beval\(|new Function\(|document\.write|outerHTML\s*=|insertAdjacentHTML/);
    const addresses = new Set(text.match(/https?:\/\/[\w.-]+/g));
    // Names of XML, the examples that are shown, and addresses in comments of licenses.
    for (const address of addresses)
      expect(address).toMatch(/www\.w3\.org|(vendor|mail)\.example|preactjs\.com/);
    const page = await readFile(join(folder, "index.html"), "utf8");
    expect(page).not.toMatch(/<style|style=|onload=|<script(?![^>]* src=)/);
  });

  it("stays within its budget of bytes, and names what it bundles", async () => {
    const manifest: { first_load: number; files: Record<string, { brotli: number; first: boolean }> } =
      JSON.parse(await readFile(join(folder, "manifest.json"), "utf8"));
    expect(manifest.first_load).toBeLessThanOrEqual(60_000);
    for (const [name, { brotli, first }] of Object.entries(manifest.files)) {
      if (!first) expect(brotli, name).toBeLessThanOrEqual(25_000);
    }
    const licenses = await readFile(join(folder, "licenses.txt"), "utf8");
    for (const name of ["preact", "@preact/signals", "uplot"]) expect(licenses).toContain(`${name} `);
  });
});
