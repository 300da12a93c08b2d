/** Names of other swarms, mesh agents, tokens and mail are written by others: the page shows them as text, whatever they are. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { BROWSER, expectAccessible, openBrowser, openPage } from "./browser.js";
import { opsSwarm } from "./ops.js";
import { serve } from "./served.js";

/** A tag, a handler, an attribute that ends, a reversed and an invisible character, an escape sequence. */
const EVIL = `"><img src=x onerror=alert(1)></script><script>alert(2)</script>\u202Egnp\u200b\u001b[31m`;
const SEEN = `"><img src=x onerror=alert(1)></script><script>alert(2)</script>‹U+202E›gnp‹U+200B›␛[31m`;
const AT = 1_790_000_000_000;

const SWARMS = {
  swarms: [EVIL, "__proto__", "constructor"].map((name) => ({
    swarm_name: name,
    name,
    base_url: `javascript:alert("${EVIL}")`,
    version: EVIL,
    last_seen: null,
    is_active: false,
    latency: null,
    swarm_description: EVIL,
    keywords: [EVIL],
    metadata: JSON.parse('{"__proto__": {"polluted": true}}'),
    volatile: true,
    auth_ref: EVIL,
    auth_state: "needs token",
    failures: 3,
    last_error: EVIL,
    checked_at: null,
    checks: [[AT, null]],
    waiting: 1,
    public_key: EVIL,
  })),
};

const AGENT = { agent_id: EVIL, endpoint: EVIL, fingerprint: "0000 0000", sealed: true, muted: false };
const MESH = {
  agent_id: EVIL,
  endpoint: EVIL,
  fingerprint: "0000 0000",
  inbox: { unread: 1 },
  outbox: { sent: 1 },
  swarms: [
    {
      swarm_id: "s",
      alias: EVIL,
      name: EVIL,
      master: EVIL,
      is_master: false,
      muted: false,
      members: [{ ...AGENT, joined_at: AT }],
      pending: [{ ...AGENT, agent_id: "__proto__", requested_at: AT }],
      invites: [
        {
          key: EVIL,
          uses: 0,
          max_uses: 1,
          expires_at: null,
          created_at: AT,
          created_by: EVIL,
          revoked_at: null,
        },
      ],
      bans: [{ agent_id: EVIL, reason: EVIL, at: AT }],
    },
  ],
};
const INBOX = {
  messages: ["message", "system"].map((message_type) => ({
    message_id: message_type,
    sender_id: EVIL,
    message_type,
    status: "unread",
    received_at: new Date(AT).toISOString(),
    content_preview: message_type === "system" ? JSON.stringify({ action: "x", agent_id: EVIL }) : EVIL,
  })),
};
const ITEM = {
  number: 1,
  id: "one",
  queue: "federation",
  target: EVIL,
  status: "waiting",
  created_at: AT,
  due_at: AT,
  deadline_at: null,
  attempts: 1,
  interrupted: 0,
  reason: EVIL,
  finished_at: null,
  task_key: EVIL,
  message_id: EVIL,
  to: EVIL,
  subject: EVIL,
};
const OUTBOX = {
  queues: ["federation"],
  queue: "federation",
  counts: { waiting: 1, delivered: 0, refused: 0, expired: 0 },
  by_target: [{ target: EVIL, waiting: 1 }],
  items: [ITEM],
  next_after: null,
};
const TRAFFIC = {
  since: AT,
  until: AT,
  agents: [],
  edges: [
    { from: "lead", to: `${EVIL}@${EVIL}`, type: "request", messages: 3, failed: 1 },
    { from: "__proto__", to: "lead", type: "response", messages: 1, failed: 0 },
  ],
  failures: [{ agent: EVIL, message: EVIL, count: 1, last: AT, key: EVIL, number: 1 }],
  partial: false,
};
const TOKENS = {
  tokens: [
    {
      token_id: EVIL,
      role: "user",
      id: EVIL,
      label: EVIL,
      created_at: AT,
      last_used_at: null,
      expires_at: null,
      revoked_at: null,
    },
  ],
  next_cursor: null,
};
const TASKS = {
  tasks: [
    {
      task_id: EVIL,
      key: EVIL,
      task_owner: `swarm:${EVIL}@${EVIL}`,
      status: "completed",
      is_running: false,
      title: EVIL,
      start_time: new Date(AT).toISOString(),
      updated_time: new Date(AT).toISOString(),
    },
  ],
  next_cursor: null,
  scanned: 1,
};

describe.skipIf(BROWSER === undefined)("a hostile name", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  it("of a swarm, a mesh agent, a task, a token or a message is shown as text on every screen", async () => {
    const { url } = await serve({ swarm: opsSwarm({ pace: 0 }), dev: true });
    const { page, context, wrong } = await openPage(browser, url);
    onTestFinished(() => context.close());
    for (const [path, json] of [
      [/\/swarms$/, SWARMS],
      [/\/swarms\/proposals$/, { proposals: [{ name: EVIL, base_url: EVIL }] }],
      [/\/admin\/mesh$/, MESH],
      [/\/api\/inbox/, INBOX],
      [/\/admin\/outbox/, OUTBOX],
      [/\/admin\/traffic/, TRAFFIC],
      [/\/admin\/tokens/, TOKENS],
      [/\/admin\/tasks\?/, TASKS],
      [/\/admin\/tasks\/digest/, { digests: [] }],
    ] as const)
      await page.route(path, (route) => route.fulfill({ json }));
    await page.addInitScript(
      `window.violations = []; document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(event.violatedDirective + " " + event.blockedURI));`,
    );
    const found = () =>
      page.evaluate(`({
        elements: document.querySelectorAll("#app script, #app img, #app iframe, #app style").length,
        links: [...document.querySelectorAll("#app a")].map((link) => link.protocol).filter((name) => !/^https?:$/.test(name)),
        hidden: [
          document.title,
          ...document.body.innerText.split(/\\n/),
          ...[...document.querySelectorAll("*")].flatMap((element) =>
            ["title", "aria-label", "placeholder", "alt"].map((name) => element.getAttribute(name) ?? "")),
        ].filter((text) => /[\\u202E\\u200B\\u001B]/.test(text)).map((text) => text.slice(0, 200)),
        polluted: {}.polluted,
        violations: window.violations,
      })`);
    const clean = { elements: 0, links: [], hidden: [], polluted: undefined, violations: [] };
    const name = encodeURIComponent(EVIL);
    for (const path of [
      "tasks",
      `tasks?agent=${name}`,
      "federation",
      `federation/${name}`,
      "federation/__proto__",
      `federation/${encodeURIComponent(`${EVIL}?`)}`,
      "mesh",
      "swarm",
      "access",
    ]) {
      await page.goto(`${url}/console/${path}`);
      await page
        .getByText(path.endsWith("__proto__") ? "__proto__" : SEEN)
        .first()
        .waitFor();
      await page.getByText("Live", { exact: true }).first().waitFor();
      expect(await found(), path).toEqual(clean);
    }
    await page.goto(`${url}/console/federation/${name}`);
    await page.getByText(SEEN).first().waitFor();
    await expectAccessible(page, "a hostile swarm");
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill("img src");
    await page.getByRole("option", { name: "onerror" }).first().waitFor();
    expect(await found(), "palette").toEqual(clean);
    expect(wrong).toEqual([]);
  });
});
