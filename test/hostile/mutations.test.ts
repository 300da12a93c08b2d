/**
 * Valid requests with random changes, at every door that shares the listener: no internal error, 503 only with
 * Retry-After, and a refused request changes nothing. MUTATIONS_SEED and MUTATIONS set the seed and the number.
 */
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { wrapperOf } from "../federation/wire.js";
import { seededRandom } from "../kit/seeded.js";
import { type Served, served } from "../kit/served.js";

const SEED = Number(process.env.MUTATIONS_SEED ?? Math.floor(Math.random() * 2 ** 30));
const COUNT = Number(process.env.MUTATIONS ?? 2_000);
vi.setConfig({ testTimeout: 60_000 + COUNT * 100, hookTimeout: 120_000 });

const { next: random } = seededRandom(SEED);
const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(random() * items.length)];

/** A request to a path, or to MAP. */
interface Template {
  readonly door: "http" | "mcp" | "a2a" | "federation" | "map";
  /** GET sends the body's fields as the query. */
  readonly method?: "GET" | "POST";
  readonly path: string;
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const user = "user:ann";
const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };

/** A conversation, and a paused task of the same user. */
function templates(conversationId: string, taskId: string): readonly Template[] {
  const task = `/tasks/${taskId}`;
  const admin = "admin:root";
  const time = new Date().toISOString();
  const get = (path: string, token: string, body: object): Template => ({
    door: "http",
    method: "GET",
    path,
    token,
    body,
  });
  const mcp = { accept: "application/json, text/event-stream" };
  const a2a = { "a2a-version": "1.0" };
  const map = (method: string, params: object): Template => ({
    door: "map",
    path: "",
    token: "",
    body: rpc(method, params),
  });
  return [
    { door: "http", path: "/message", token: user, body: { body: "hello", wait: false, subject: "s" } },
    { door: "http", path: "/tasks/digest", token: user, body: { tasks: [] } },
    { door: "http", path: "/tasks/none/breakpoint", token: user, body: { results: { content: "x" } } },
    { door: "http", path: "/tasks/none/cancel", token: user, body: {} },
    { door: "http", path: `${task}/approvers`, token: user, body: { approvers: ["user:bob"] } },
    { door: "http", path: `${task}/budget`, token: user, body: { max_calls: 5, max_tokens: 1_000 } },
    { door: "http", path: "/admin/budgets/callers/user:ann", token: admin, body: { max_cost: 1.5 } },
    { door: "http", path: "/admin/budgets/day", token: admin, body: { max_calls: 100_000 } },
    { door: "http", path: "/approvals/none", token: user, body: { decision: "approve", arguments: {} } },
    get("/tasks", user, { limit: 5, status: "paused", since: time, q: "hello" }),
    get("/admin/tasks", admin, { limit: 5, owner: "user:ann", until: time }),
    get(`${task}/events`, user, { after: "1", limit: 5 }),
    get(`${task}/journal`, user, { after: 1, before: 5, limit: 5 }),
    get("/search", user, { q: "hello desk", agent: "desk", limit: 5, own: true }),
    get("/usage", user, { from: time.slice(0, 10), to: time.slice(0, 10) }),
    get("/audit", admin, { limit: 5, before: 9, actor: "user:ann" }),
    get("/approvals", user, { limit: 5, scope: "mine" }),
    get("/admin/outbox", admin, { status: "waiting", after: 0, limit: 5 }),
    {
      door: "http",
      path: "/swarms/register",
      token: admin,
      body: { name: "beta", base_url: "http://127.0.0.1:9" },
    },
    {
      door: "mcp",
      path: "/mcp",
      token: user,
      headers: mcp,
      body: rpc("tools/call", { name: "list_tasks", arguments: {} }),
    },
    { door: "mcp", path: "/mcp", token: user, headers: mcp, body: rpc("tools/list", {}) },
    { door: "a2a", path: "/a2a", token: user, headers: a2a, body: rpc("SendMessage", { message }) },
    { door: "a2a", path: "/a2a", token: user, headers: a2a, body: rpc("ListTasks", { pageSize: 5 }) },
    { door: "a2a", path: "/a2a", token: user, headers: a2a, body: rpc("GetTask", { id: randomUUID() }) },
    {
      door: "federation",
      path: "/interswarm/forward",
      token: "agent:beta",
      body: { message: wrapperOf({ target: "asking", to: "desk@asking" }) },
    },
    {
      door: "federation",
      path: "/interswarm/back",
      token: "agent:beta",
      body: { message: wrapperOf({ target: "asking", to: "desk@asking", type: "response" }) },
    },
    map("mail/create", {
      subject: "s",
      metadata: { a: 1 },
      initialParticipants: [{ id: "bob", role: "observer" }],
    }),
    map("mail/turn", {
      conversationId,
      contentType: "text",
      content: { text: "hello" },
      visibility: { type: "all" },
    }),
    map("mail/turns/list", { conversationId, limit: 5, filter: { contentTypes: ["text"] }, order: "desc" }),
    map("mail/replay", { conversationId, limit: 5, fromTimestamp: 0 }),
    map("mail/join", { conversationId, role: "observer", catchUp: { from: "recent", limit: 3 } }),
    map("mail/summary", { conversationId, include: { keyPoints: true } }),
    map("map/agents/register", { name: "x", metadata: { a: [1] }, scopes: ["s"] }),
    map("map/agents/list", { filter: { states: ["busy"] }, limit: 5 }),
    map("map/scopes/create", { name: "s", extra: { a: 1 } }),
    map("map/subscribe", { filter: { eventTypes: ["mail.*"], mail: { conversationId } } }),
    map("map/replay", { fromTimestamp: 0, limit: 5, filter: { metadataMatch: { a: 1 } } }),
    map("map/send", { to: { broadcast: true }, payload: "x", meta: { mail: { conversationId } } }),
    map("map/structure/graph", { depth: 3 }),
  ];
}

const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  0.5,
  "",
  "\u0000",
  "__proto__",
  "x".repeat(20_000),
  [],
  {},
  [[[[]]]],
  { type: "x" },
  JSON.parse(`${"[".repeat(70)}${"]".repeat(70)}`),
];

/** Changes one place of a value, chosen at random. */
function changed(value: unknown): unknown {
  if (random() < 0.25 || typeof value !== "object" || value === null) return pick(ODD);
  if (Array.isArray(value)) {
    const copy = [...value];
    const at = Math.floor(random() * (copy.length + 1));
    if (random() < 0.3) copy.splice(at, 1);
    else copy[at] = changed(copy[at]);
    return copy;
  }
  const entries = Object.entries(value);
  const at = Math.floor(random() * (entries.length + 1));
  const [key, part] = entries[at] ?? [pick(["extra", "id", "constructor", "limit"]) ?? "extra", undefined];
  if (random() < 0.2) return Object.fromEntries(entries.filter(([name]) => name !== key));
  return { ...value, [key]: changed(part) };
}

/** The text of a changed request: a different value, or damaged text. */
function textOf(body: unknown): string {
  const text = JSON.stringify(random() < 0.9 ? changed(body) : body) ?? "";
  if (random() < 0.9) return text;
  const at = Math.floor(random() * text.length);
  return text.slice(0, at) + (pick(["", "\u0000", '"', "}", "\\", "\ud800"]) ?? "") + text.slice(at + 1);
}

interface Outcome {
  readonly accepted: boolean;
  /** Undefined if the answer is fine. */
  readonly fault?: string;
}

let server: Served;
let directory: string;
let database: Database.Database;
let socket: WebSocket;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mailroom-mutations-"));
  const many = 1_000_000_000;
  const toml = `[log]\nlevel = "silent"\n[map.limits]\nmalformed_frames = ${many}\nmalformed_frames_per_address = ${many}\nsubscriptions = 100\n`;
  server = await served(ASKING_SWARM, toml, directory);
  const file = readdirSync(directory, { recursive: true })
    .map(String)
    .find((name) => name.endsWith("mailroom.db"));
  database = new Database(join(directory, file ?? "mailroom.db"), { readonly: true });
});
afterAll(async () => {
  socket?.terminate();
  database?.close();
  await server?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Changes with every write of the server. */
const version = () => database.pragma("data_version", { simple: true });

/** Waits until the server has written everything that earlier requests caused. */
async function settled(): Promise<unknown> {
  for (let known = version(), same = 0; ; ) {
    await sleep(5);
    const now = version();
    same = now === known ? same + 1 : 0;
    known = now;
    if (same === 3) return now;
  }
}

async function overHttp({ method = "POST", path, token, headers }: Template, text: string): Promise<Outcome> {
  const url = `${server.url}${path}`;
  const authorization = `Bearer ${token}`;
  const response =
    method === "GET"
      ? await fetch(`${url}?${queryOf(text)}`, { headers: { authorization } })
      : await fetch(url, {
          method,
          headers: { authorization, "content-type": "application/json", ...headers },
          body: text,
        });
  const answer = await response.text();
  const said = `${path} ${response.status} ${answer.slice(0, 200)}`;
  if (response.status === 503 && response.headers.get("retry-after") !== null) return { accepted: false };
  if (response.status >= 500) return { accepted: false, fault: said };
  if (/"code":-32603/.test(answer)) return { accepted: false, fault: said };
  return { accepted: response.ok && !answer.includes('"error":') && !answer.includes('"isError":true') };
}

/** The fields of a JSON object as a query; any other text as it is. */
function queryOf(text: string): string {
  try {
    const fields = Object.entries(JSON.parse(text) as object);
    return fields.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
  } catch {
    return text.replaceAll(/[\0\ud800]/g, "%");
  }
}

/** Each frame is followed by a request whose answer shows that the frame was handled. */
async function overMap(text: string): Promise<Outcome> {
  if (socket?.readyState !== WebSocket.OPEN) {
    socket = new WebSocket(`${server.url.replace("http", "ws")}/map`);
    await new Promise((resolve) => socket.once("open", resolve));
    await call(rpc("map/connect", { auth: { method: "bearer", token: user } }));
  }
  return new Promise((resolve) => {
    let accepted = false;
    let fault: string | undefined;
    const marker = randomUUID();
    const done = (): void => {
      socket.off("message", onMessage);
      socket.off("close", done);
      resolve({ accepted, ...(fault !== undefined && { fault }) });
    };
    const onMessage = (data: unknown): void => {
      const frame = JSON.parse(String(data));
      if (frame.id === marker) return done();
      if (frame.method !== undefined) return;
      if (frame.error === undefined) accepted = true;
      else if (frame.error.code === -32603) fault = `${text.slice(0, 200)}: ${JSON.stringify(frame.error)}`;
    };
    socket.on("message", onMessage);
    socket.once("close", done);
    socket.send(text);
    // Behind the changed request, also if that one waits for its turn.
    socket.send(JSON.stringify({ ...rpc("mail/list", { limit: 1 }), id: randomUUID() }));
    void sleep(0).then(() => socket.send(JSON.stringify({ ...rpc("mail/list", { limit: 1 }), id: marker })));
  });
}

function call(frame: object): Promise<{ result?: { conversation?: { id: string } } }> {
  return new Promise((resolve) => {
    socket.once("message", (data) => resolve(JSON.parse(String(data))));
    socket.send(JSON.stringify(frame));
  });
}

it(`${COUNT} changed requests cause no internal error, and refused ones change nothing (MUTATIONS_SEED=${SEED})`, async () => {
  await overMap(JSON.stringify(rpc("mail/list", {})));
  const { result } = await call(rpc("mail/create", {}));
  const paused = await fetch(`${server.url}/message`, {
    method: "POST",
    headers: { authorization: `Bearer ${user}`, "content-type": "application/json" },
    body: JSON.stringify({ body: "ask" }),
  });
  const { task_id } = (await paused.json()) as { task_id: string };
  const all = templates(result?.conversation?.id ?? "none", task_id);
  const counts = { accepted: 0, refused: 0 };
  let before = await settled();
  for (let n = 0; n < COUNT; n++) {
    const template = pick(all);
    if (template === undefined) continue;
    const text = textOf(template.body);
    const send = () => (template.door === "map" ? overMap(text) : overHttp(template, text));
    const { accepted, fault } = await send();
    expect(fault, `MUTATIONS_SEED=${SEED}, request ${n}: ${text.slice(0, 400)}`).toBe(undefined);
    counts[accepted ? "accepted" : "refused"]++;
    if (!accepted && version() !== before) {
      // Work of earlier requests may have been stored meanwhile: a fault happens again.
      let changes = 0;
      for (let again = 0; again < 3; again++) {
        before = await settled();
        if ((await send()).accepted || (await settled()) !== before) changes++;
      }
      expect(
        changes,
        `refused, and changed something: ${template.door} ${template.path} ${text.slice(0, 300)}`,
      ).toBeLessThan(3);
    }
    before = version();
  }
  expect(counts.refused).toBeGreaterThan(COUNT / 4);
  expect(counts.accepted).toBeGreaterThan(COUNT / 20);
});
