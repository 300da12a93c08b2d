/**
 * Compares the OpenAPI document of a server with everything enabled with its registered routes: every route is
 * described, and every described route answers as described.
 */
import { createHmac } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenApiDocument } from "../../src/http/index.js";
import { initMesh, makeDevCertificates } from "../../src/mesh/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { type Served, served } from "../kit/served.js";
import { meshCommand } from "../mesh/command.js";
import { eventually, freePort } from "../mesh/kit.js";
import {
  bodyJudge,
  type Listed,
  operationProblems,
  operationsOf,
  parameterProblems,
  referenceProblems,
  schemaProblems,
} from "./document-lint.js";
import { type CallOptions, call, fieldOf, type Reply } from "./harness.js";

const ADMIN = "admin:root";
const USER = "user:ann";
const PEER = "agent:other";

let place: string;
let alice: Served;
let bob: Served;
let document: OpenApiDocument;
let messageId: string;
const registered: string[] = [];

/** Fastify announces every instance; its routes are recorded as they are registered. */
function noteRoutes(event: unknown): void {
  const app = fieldOf(event, "fastify");
  if (!isFastify(app)) return;
  app.addHook("onRoute", ({ method, url }) => {
    const path = url.replaceAll(/:(\w+)/g, "{$1}");
    // Fastify adds HEAD to every GET, and CORS answers OPTIONS everywhere.
    for (const one of [method].flat()) {
      if (one !== "HEAD" && one !== "OPTIONS") registered.push(`${one.toLowerCase()} ${path}`);
    }
  });
}

function isFastify(value: unknown): value is FastifyInstance {
  return typeof value === "object" && value !== null && "addHook" in value;
}

async function agentOf(name: string, more = ""): Promise<Served> {
  const directory = await mkdtemp(join(place, `${name}-`));
  const port = await freePort();
  const tls = join(place, "tls");
  initMesh({
    directory: join(place, name),
    agentId: name,
    endpoint: `https://localhost:${port}/swarm`,
    dev: true,
  });
  return served(
    ASKING_SWARM,
    `[server]
data = "${join(place, name)}"
cors_origins = ["https://page.example.com"]
[log]
level = "error"
[mesh]
listen = "localhost:${port}"
cert = "${join(tls, "dev.pem")}"
key = "${join(tls, "dev.key")}"
ca = "${join(tls, "dev-ca.pem")}"
${more}`,
    directory,
  );
}

async function mesh(name: string, ...words: string[]): Promise<unknown> {
  const { out } = await meshCommand([...words, "--data", join(place, name)]);
  return JSON.parse(out);
}

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), "mailroom-document-"));
  await makeDevCertificates(join(place, "tls"), Date.now());
  bob = await agentOf("bob");
  subscribe("fastify.initialization", noteRoutes);
  alice = await agentOf(
    "alice",
    `[mesh.wake]
secret = "wake me"
[mesh.github]
secret = "hook"
swarm = "lab"
`,
  ).finally(() => unsubscribe("fastify.initialization", noteRoutes));
  document = JSON.parse((await call(alice.url, "/openapi.json")).text);

  await mesh("alice", "create", "--name", "Lab");
  const invite = String(fieldOf(await mesh("alice", "invite"), "invite_token"));
  await mesh("bob", "join", "--token", invite);
  await mesh("alice", "send", "--to", "bob", "--message", "hello");
  messageId = String(fieldOf(await mesh("bob", "send", "--to", "alice", "--message", "hi"), "message_id"));
  await eventually(
    async () => (await call(alice.url, `/api/inbox/${messageId}`, { token: ADMIN })).status,
    200,
  );
}, 60_000);

afterAll(async () => {
  await alice[Symbol.asyncDispose]();
  await bob[Symbol.asyncDispose]();
  await rm(place, { recursive: true, force: true });
});

describe("the document of a server with everything enabled", () => {
  it("lists the routes that the server has, and no others", () => {
    // Pages for people are not part of the interface.
    const described = registered.filter((at) => !/^get \/console(?:\/\*)?$/.test(at));
    expect(described).toHaveLength(registered.length - 2);
    expect(operationsOf(document).map(({ at }) => at)).toEqual(expect.arrayContaining(described));
    expect(registered).toEqual(expect.arrayContaining(operationsOf(document).map(({ at }) => at)));
    // Checks that routes of other modules were recorded.
    expect(registered).toEqual(
      expect.arrayContaining(["post /mcp", "post /a2a", "post /api/wake", "post /mesh/github"]),
    );
  });

  it("has only bodies without unknown fields on routes for users and admins", () => {
    /** Checked elsewhere: JSON-RPC, arguments that depend on the operation, and wrappers of other swarms. */
    const others = ["JsonRpcRequest", "MeshArguments", "InterswarmMessageRequest"];
    const lax = operationsOf(document).flatMap(({ at, operation }) => {
      const roles = operation["x-roles"] ?? ["user"];
      const schema = operation.requestBody?.content["application/json"]?.schema;
      const name = String(fieldOf(schema, "$ref") ?? "").replace("#/components/schemas/", "");
      if (schema === undefined || others.includes(name) || roles.every((role) => role === "agent")) return [];
      const described = name === "" ? schema : document.components.schemas[name];
      return fieldOf(described, "additionalProperties") === false ? [] : [at];
    });
    // These belong to their senders, and have a proof instead of a token.
    expect(lax).toEqual(["post /api/wake", "post /mesh/github"]);
  });

  it("passes the lint", () => {
    expect(operationProblems(document)).toEqual([]);
    expect(parameterProblems(document)).toEqual([]);
    expect(referenceProblems(document)).toEqual([]);
    expect(schemaProblems(document)).toEqual([]);
  });

  it("lists only existing routes, and responses are as described", async () => {
    const judge = bodyJudge(document);
    const wrong: string[] = [];
    for (const listed of operationsOf(document)) {
      const token = `${listed.operation["x-roles"]?.[0] ?? "user"}:me`;
      const answer = await ask(listed, { token, ...(listed.method === "post" && { json: {} }) });
      const isMissing = fieldOf(answer.body, "code") === "not_found";
      const problem = isMissing ? "does not exist" : problemWith(listed, answer, judge);
      if (problem !== undefined) wrong.push(`${listed.at}: ${answer.status} ${problem}`);
    }
    expect(wrong).toEqual([]);
  });

  it("describes the responses of other protocols and of the mesh", async () => {
    const judge = bodyJudge(document);
    const listed = new Map(operationsOf(document).map((one) => [one.operation.operationId, one]));
    const wrong: string[] = [];
    for (const [id, status, options, path] of cases()) {
      const one = listed.get(id);
      if (one === undefined) {
        wrong.push(`${id} is not listed`);
        continue;
      }
      const answer = await ask(one, options, path);
      const problem =
        answer.status === status ? problemWith(one, answer, judge) : `instead of ${status}: ${answer.text}`;
      if (problem !== undefined) wrong.push(`${id} ${path ?? ""}: ${answer.status} ${problem}`);
    }
    expect(wrong).toEqual([]);
  });

  it("lists every method of a path", async () => {
    for (const [path, allow] of [
      ["/mcp", "POST"],
      ["/api/inbox", "GET, HEAD"],
      ["/mesh/github", "POST"],
    ] as const) {
      const { status, headers } = await call(alice.url, path, { method: "DELETE", token: ADMIN });
      expect({ status, allow: headers.allow }).toEqual({ status: 405, allow });
    }
  });

  it("shows all operations on the HTML page, with their protocols and secrets", async () => {
    const { text } = await call(alice.url, "/docs");
    for (const { operation } of operationsOf(document)) {
      expect(text).toContain(`id="${operation.operationId}"`);
      if (operation.externalDocs !== undefined) expect(text).toContain(operation.externalDocs.url);
    }
    expect(text).toContain("anyone + wakeSecret");
    expect(text).toContain("anyone + githubSignature");
    expect(text).not.toMatch(/<script|src=/);
  });
});

it("disabled features are neither in the document nor served", async () => {
  await using server = await served(ASKING_SWARM, "[mcp]\nenabled = false\n[a2a]\nenabled = false\n");
  const plain: OpenApiDocument = JSON.parse((await call(server.url, "/openapi.json")).text);
  const own = operationsOf(document).filter(({ path }) => !(path in plain.paths));
  expect(own.map(({ at }) => at).sort()).toEqual([
    "get /.well-known/agent-card.json",
    "get /admin/mesh",
    "get /api/inbox",
    "get /api/inbox/count",
    "get /api/inbox/{message_id}",
    "get /api/outbox",
    "get /api/outbox/count",
    "post /a2a",
    "post /admin/mesh/{operation}",
    "post /api/inbox/batch",
    "post /api/inbox/{message_id}/{action}",
    "post /api/wake",
    "post /mcp",
    "post /mesh/github",
  ]);
  for (const { path, method } of own) {
    const { status } = await call(server.url, filled(path), { method: method.toUpperCase(), token: ADMIN });
    expect(status, path).toBe(404);
  }
  expect(plain.tags.map(({ name }) => name)).not.toContain("mesh");
  expect(Object.keys(plain.components.securitySchemes)).toEqual(["bearer"]);
  // Bob is in the mesh without wake triggers and GitHub.
  const bobs: OpenApiDocument = JSON.parse((await call(bob.url, "/openapi.json")).text);
  expect(Object.keys(bobs.paths)).toContain("/api/inbox");
  expect(Object.keys(bobs.paths)).not.toContain("/api/wake");
  expect(Object.keys(bobs.paths)).not.toContain("/mesh/github");
});

type Case = readonly [operation: string, status: number, options: CallOptions, path?: string];

/**
 * Requests to routes of other modules; `path` where it differs from the document's and contains the id of a received
 * message.
 */
function cases(): Case[] {
  const admin = { token: ADMIN };
  const rpc = { jsonrpc: "2.0", id: 1 } as const;
  const mcp = { token: USER, headers: { accept: "application/json, text/event-stream" } };
  const a2a = { token: USER, headers: { "a2a-version": "1.0" } };
  const unknown = crypto.randomUUID();
  const note = {
    message_id: messageId,
    swarm_id: unknown,
    sender_id: "bob",
    notification_level: "normal",
  };
  const wake = (secret: string, json: unknown) => ({ ...admin, json, headers: { "x-wake-secret": secret } });
  return [
    ["callMcp", 200, { ...mcp, json: { ...rpc, method: "tools/list" } }],
    ["callMcp", 202, { ...mcp, json: { jsonrpc: "2.0", method: "notifications/initialized" } }],
    ["callMcp", 400, { ...mcp, json: { not: "a request" } }],
    ["callMcp", 400, { ...mcp, text: "{" }],
    ["callMcp", 401, { json: { ...rpc, method: "ping" }, token: "nobody" }],
    ["callMcp", 403, { json: { ...rpc, method: "ping" }, token: PEER }],
    ["callMcp", 406, { token: USER, json: { ...rpc, method: "ping" } }],
    ["callMcp", 415, { ...mcp, method: "POST" }],
    ["callMcp", 415, { ...mcp, text: "{}", headers: { ...mcp.headers, "content-type": "text/plain" } }],
    ["callA2a", 200, { ...a2a, json: { ...rpc, method: "ListTasks", params: {} } }],
    ["callA2a", 200, { ...a2a, json: { ...rpc, method: "GetTask", params: { id: "nope" } } }],
    ["callA2a", 200, { ...a2a, json: { ...rpc, method: "SendStreamingMessage", params: said("hello") } }],
    ["callA2a", 200, { token: USER, json: { ...rpc, method: "ListTasks" } }],
    ["callA2a", 403, { json: rpc, token: PEER }],
    ["getAgentCard", 200, {}],
    ["listInbox", 200, admin, "/api/inbox?status=all&limit=5"],
    ["listInbox", 400, admin, "/api/inbox?limit=0"],
    ["listInbox", 401, { token: "nobody" }],
    ["listInbox", 403, { token: USER }],
    ["countInbox", 200, admin],
    ["getInboxMessage", 200, admin],
    ["getInboxMessage", 404, admin, `/api/inbox/${unknown}`],
    ["getInboxMessage", 404, admin, "/api/inbox/no-id"],
    ["moveInboxMessage", 200, { ...admin, method: "POST" }],
    ["moveInboxMessage", 400, { ...admin, method: "POST" }, `/api/inbox/${messageId}/read`],
    ["moveInboxMessage", 404, { ...admin, method: "POST" }, `/api/inbox/${unknown}/read`],
    ["moveInboxMessages", 200, { ...admin, json: { message_ids: [messageId], action: "delete" } }],
    ["moveInboxMessages", 400, { ...admin, json: { message_ids: [] } }],
    ["moveInboxMessages", 400, { ...admin, text: "{" }],
    ["moveInboxMessages", 413, { ...admin, text: "x".repeat(20_000_000) }],
    ["moveInboxMessages", 415, { ...admin, text: "{}", headers: { "content-type": "nonsense" } }],
    ["listOutbox", 200, admin],
    ["listOutbox", 400, admin, "/api/outbox?swarm_id=odd"],
    ["countOutbox", 200, admin],
    ["adminGetMesh", 200, admin],
    ["adminGetMesh", 403, { token: USER }],
    ["adminOperateMesh", 200, { ...admin, json: {} }, "/admin/mesh/invite"],
    ["adminOperateMesh", 200, { ...admin, json: { agent: "bob" } }, "/admin/mesh/mute"],
    ["adminOperateMesh", 200, { ...admin, json: { agent: "bob" } }, "/admin/mesh/unmute"],
    ["adminOperateMesh", 400, { ...admin, json: {} }, "/admin/mesh/rotate_key"],
    ["adminOperateMesh", 400, { ...admin, json: { agent: 1 } }, "/admin/mesh/kick"],
    ["adminOperateMesh", 404, { ...admin, json: { swarm: "none", agent: "x" } }, "/admin/mesh/kick"],
    ["adminOperateMesh", 403, { token: USER, json: {} }, "/admin/mesh/invite"],
    ["adminListOutbox", 200, admin],
    ["adminListOutbox", 200, admin, "/admin/outbox?queue=mesh&status=delivered"],
    ["adminListOutbox", 404, admin, "/admin/outbox?queue=none"],
    ["adminListTokens", 200, admin],
    ["adminRevokeToken", 404, { ...admin, method: "POST" }],
    ["wake", 200, wake("wake me", note)],
    ["wake", 400, wake("wake me", {})],
    ["wake", 403, wake("guess", note)],
    ["wake", 403, { token: USER, json: note }],
    ["takeGithubEvent", 202, fromGithub("issues", ISSUE)],
    ["takeGithubEvent", 204, fromGithub("ping", {})],
    ["takeGithubEvent", 403, { json: ISSUE }],
  ];
}

function said(text: string) {
  return { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] } };
}

const ISSUE = {
  action: "opened",
  issue: { number: 7, title: "It is broken", html_url: "https://github.com/acme/shop/issues/7" },
  repository: { full_name: "acme/shop" },
  sender: { login: "ann" },
};

function fromGithub(event: string, body: unknown): CallOptions {
  const text = JSON.stringify(body);
  const signature = createHmac("sha256", "hook").update(text).digest("hex");
  return {
    text,
    headers: { "x-github-event": event, "x-hub-signature-256": `sha256=${signature}` },
  };
}

function ask({ method, path }: Listed, options: CallOptions, instead?: string): Promise<Reply> {
  return call(alice.url, instead ?? filled(path), { method: method.toUpperCase(), ...options });
}

function filled(path: string): string {
  return path
    .replace("{message_id}", messageId)
    .replace("{action}", "archive")
    .replaceAll(/\{\w+\}/g, "nobody-has-this");
}

function problemWith(
  { operation }: Listed,
  { status, headers, body, text }: Reply,
  judge: ReturnType<typeof bodyJudge>,
): string | undefined {
  const response = operation.responses[String(status)];
  if (response === undefined) return `is not documented: ${text.slice(0, 200)}`;
  const type = String(headers["content-type"] ?? "").split(";", 1)[0] ?? "";
  if (text === "" && response.content === undefined) return undefined;
  const media = response.content?.[type];
  if (media === undefined) return `${type} is not documented`;
  return media.schema === undefined ? undefined : judge(media.schema, body);
}
