/**
 * A call that waits for approval, answered by a second user whom the owner named, with that user's own token, through
 * each protocol: official clients and real processes against one server with all doors.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Message, Role } from "@a2a-js/sdk";
import * as a2a from "@a2a-js/sdk/client";
import { Client as McpClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ClientConnection } from "@multi-agent-protocol/sdk";
import * as a2aOld from "a2a-sdk-0.3/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type ApprovalDecision, ConversationClient, MailClient } from "../../src/client/index.js";
import { ASKING_SWARM } from "../cli/breakpoint-swarm.js";
import { run } from "../cli/cli.js";
import { type Served, served } from "../kit/served.js";

// The MAP SDK uses the global class, which Node 20 does not have.
Object.assign(globalThis, { WebSocket });

const ANN = "user:ann";
const BOB = "user:bob";
const EVE = "user:eve";

/** A task that waits, as a protocol shows it: what it is answered by, and the id of its call. */
interface Waiting {
  readonly at: string;
  readonly call: string;
  readonly shown: unknown;
}

/** How one protocol finds and answers what waits. */
interface Door {
  find(token: string): Promise<readonly Waiting[]>;
  decide(token: string, at: string, decision: ApprovalDecision): Promise<unknown>;
  /** A plain text, where an answer is expected. */
  text(token: string, at: string): Promise<unknown>;
}

let server: Served;
let home: string;
/** The questions of calls that really ran. */
const ran: unknown[] = [];
const closing: (() => Promise<unknown>)[] = [];
let tasks: string[] = [];

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "mailroom-second-"));
  server = await served(ASKING_SWARM);
  const { runtime } = server.running.mailroom;
  const { definition } = runtime;
  const actions = definition.actions.map((one) => ({
    ...one,
    approval: true,
    run: (args: object) => {
      ran.push("question" in args ? args.question : undefined);
      return "done";
    },
  }));
  runtime.redefine({ ...definition, breakpointTools: [], actions, hash: "approval" });
});
afterEach(async () => {
  for (const id of tasks)
    if ((await http(ANN).getTask(id)).status === "paused") await http(ANN).cancelTask(id);
  tasks = [];
});
afterAll(async () => {
  await Promise.all(closing.map((close) => close()));
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

const http = (token: string) => new MailClient(server.url, { token });

/** Calls made of one value per token. */
function perToken<T>(open: (token: string) => Promise<T>): (token: string) => Promise<T> {
  const opened = new Map<string, Promise<T>>();
  return (token) => {
    const known = opened.get(token) ?? open(token);
    opened.set(token, known);
    return known;
  };
}

const client: Door = {
  async find(token) {
    const found: Waiting[] = [];
    for await (const approval of http(token).approvals()) {
      found.push({ at: approval.key, call: approval.calls[0]?.call_id ?? "", shown: approval });
    }
    return found;
  },
  decide: (token, at, decision) => http(token).decideApproval(at, [decision]),
  text: (token, at) => http(token).answerApproval(at, "yes, go ahead"),
};

async function cli(token: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run([...args, "--url", server.url, "--token", token], { cwd: home });
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

const commandLine: Door = {
  async find(token) {
    const { approvals } = JSON.parse(await cli(token, "approvals", "list", "--json"));
    return approvals.map((one: { key: string; calls: { call_id: string }[] }) => ({
      at: one.key,
      call: one.calls[0]?.call_id ?? "",
      shown: one,
    }));
  },
  decide: (token, at, decision) =>
    decision.decision === "approve"
      ? cli(
          token,
          ...["approvals", "approve", at, decision.call_id],
          ...(decision.arguments === undefined ? [] : ["--arguments", JSON.stringify(decision.arguments)]),
        )
      : cli(token, "approvals", "reject", at, decision.call_id, "--reason", decision.reason ?? ""),
  text: (token, at) => cli(token, "approvals", "answer", at, "yes, go ahead"),
};

const mapClient = perToken(async (token) => {
  const connection = await ClientConnection.connect(`${server.url.replace("http", "ws")}/map`, {
    auth: { method: "bearer", token },
  });
  closing.push(() => connection.disconnect());
  return connection;
});

const map: Door = {
  async find(token) {
    const { conversations } = await (await mapClient(token)).listConversations({
      filter: { status: ["paused"] },
    });
    return conversations.map((one) => {
      const approvals = one.metadata?.approvals as { callId: string }[] | undefined;
      return { at: one.id, call: approvals?.[0]?.callId ?? "", shown: one };
    });
  },
  async decide(token, at, decision) {
    const turn = { conversationId: at, contentType: "x-approval", content: { decisions: [decision] } };
    return (await mapClient(token)).recordTurn(turn);
  },
  async text(token, at) {
    const content = { text: "yes, go ahead" };
    return (await mapClient(token)).recordTurn({ conversationId: at, contentType: "text", content });
  },
};

const mcpClient = perToken(async (token) => {
  const mcp = new McpClient({ name: "test", version: "1" });
  await mcp.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    }),
  );
  closing.push(() => mcp.close());
  return mcp;
});

async function tool(token: string, name: string, args: Record<string, unknown>) {
  const { isError, content, structuredContent } = await (await mcpClient(token)).callTool({
    name,
    arguments: args,
  });
  if (isError === true) throw new Error(JSON.stringify(content));
  return structuredContent as Record<string, unknown>;
}

const mcp: Door = {
  async find(token) {
    const { approvals } = await tool(token, "list_approvals", {});
    return (approvals as { key: string; calls: { call_id: string }[] }[]).map((one) => ({
      at: one.key,
      call: one.calls[0]?.call_id ?? "",
      shown: one,
    }));
  },
  decide: (token, key, decision) => tool(token, "decide_calls", { key, decisions: [decision] }),
  text: (token, key) => tool(token, "answer_breakpoint", { key, content: "yes, go ahead" }),
};

let sent = 0;
const authenticated = (token: string) => ({
  headers: async () => ({ authorization: `Bearer ${token}` }),
  shouldRetryWithHeaders: async () => undefined,
});

const a2aClient = perToken((token) => {
  const fetchImpl = a2a.createAuthenticatingFetchWithRetry(fetch, authenticated(token));
  return new a2a.ClientFactory({
    transports: [new a2a.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new a2a.DefaultAgentCardResolver(),
  }).createFromUrl(server.url);
});

async function sendA2a(token: string, taskId: string, content: Message["parts"][number]["content"]) {
  const message: Message = {
    messageId: `second-${sent++}`,
    contextId: "",
    taskId,
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  const request = { tenant: "", message, configuration: undefined, metadata: undefined };
  const sender = await a2aClient(token);
  const [first, again] = [await sender.sendMessage(request), await sender.sendMessage(request)];
  // Repeated, it counts once.
  expect(again).toEqual(first);
  return first;
}

const callIn = (shown: unknown) => /"call_id":"([^"]+)"/.exec(JSON.stringify(shown))?.[1] ?? "";

const a2aCurrent: Door = {
  async find(token) {
    const all = { tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined };
    const found: Waiting[] = [];
    const asker = await a2aClient(token);
    for (const { id } of (await asker.listTasks(all)).tasks) {
      const task = await asker.getTask({ tenant: "", id });
      found.push({ at: id, call: callIn(task.status), shown: task });
    }
    return found;
  },
  decide: (token, at, decision) => sendA2a(token, at, { $case: "data", value: { decisions: [decision] } }),
  text: (token, at) => sendA2a(token, at, { $case: "text", value: "yes, go ahead" }),
};

const oldClient = perToken((token) => {
  const fetchImpl = a2aOld.createAuthenticatingFetchWithRetry(fetch, authenticated(token));
  return new a2aOld.ClientFactory({
    transports: [new a2aOld.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new a2aOld.DefaultAgentCardResolver(),
  }).createFromUrl(server.url);
});

async function sendOld(
  token: string,
  taskId: string,
  part: { kind: "text"; text: string } | { kind: "data"; data: Record<string, unknown> },
) {
  const message = {
    kind: "message" as const,
    messageId: `second-${sent++}`,
    taskId,
    role: "user" as const,
    parts: [part],
  };
  try {
    return await (await oldClient(token)).sendMessage({ message });
  } catch (error) {
    // This client keeps what the server wrote beside a text of its own.
    throw new Error(JSON.stringify(error));
  }
}

/** Version 0.3 has no list of tasks: the key comes from elsewhere. */
const a2aOldDoor: Door = {
  async find(token) {
    const found: Waiting[] = [];
    for (const { at } of await client.find(token)) {
      const task = await (await oldClient(token)).getTask({ id: at });
      found.push({ at, call: callIn(task.status), shown: task });
    }
    return found;
  },
  decide: (token, at, decision) => sendOld(token, at, { kind: "data", data: { decisions: [decision] } }),
  text: (token, at) => sendOld(token, at, { kind: "text", text: "yes, go ahead" }),
};

const doors: readonly (readonly [string, Door])[] = [
  ["the client", client],
  ["the command line", commandLine],
  ["MAP", map],
  ["MCP", mcp],
  ["A2A 1.0", a2aCurrent],
  ["A2A 0.3", a2aOldDoor],
];

/** The same as for a task that does not exist. */
const UNKNOWN = /there is no task|unknown task|unknown conversation|Task not found/;

/** Ann's task that waits for approval; she has named Bob. */
async function waiting(taskId: string): Promise<string> {
  tasks.push(taskId);
  const { status } = await http(ANN).postMessage("ask", { taskId });
  expect(status).toBe("paused");
  await http(ANN).nameApprovers(taskId, [BOB]);
  return (await http(ANN).getTask(taskId)).key ?? "";
}

async function responseOf(taskId: string): Promise<string> {
  for await (const { data } of http(ANN).taskEvents(taskId, { live: "round" })) {
    if (data.status === "completed") return data.response ?? "";
  }
  throw new Error("the task did not complete");
}

async function lastAnswer(key: string) {
  for await (const { actor, action, right } of http(ANN).audit({ key })) return { actor, action, right };
  return undefined;
}

describe.each(doors)("through %s, a second user", (name, door) => {
  it.each([
    ["approves it", { decision: "approve" }, "They said: done", ["Umbrella?"]],
    [
      "approves it with changed arguments",
      { decision: "approve", arguments: { question: "Coat?" } },
      /changed arguments.*Coat.*done/s,
      ["Coat?"],
    ],
    ["rejects it", { decision: "reject", reason: "it is sunny" }, /rejected: it is sunny/, []],
  ] as const)(
    "[AGT-APPR-07] finds what the owner named them for and %s",
    async (what, decision, response, expected) => {
      const taskId = `${name} ${what}`;
      const key = await waiting(taskId);
      ran.length = 0;
      const found = await door.find(BOB);
      expect(found).toHaveLength(1);
      const [{ at, call, shown } = { at: "", call: "", shown: {} }] = found;
      expect(call).not.toBe("");
      expect(JSON.stringify(shown)).toContain("Umbrella?");
      expect(JSON.stringify(shown)).toContain("user:ann");
      await door.decide(BOB, at, { ...decision, call_id: call });
      expect(await responseOf(taskId)).toMatch(response);
      expect(ran).toEqual(expected);
      expect(await lastAnswer(key)).toEqual({ actor: BOB, action: "answer", right: "approver" });
      expect(await door.find(BOB)).toEqual([]);
    },
  );

  it("[AGT-APPR-07] is refused if the owner did not name them, and sees nothing of the task", async () => {
    const taskId = `${name}, a third user`;
    const key = await waiting(taskId);
    ran.length = 0;
    const [{ at, call } = { at: "", call: "" }] = await door.find(BOB);
    expect(await door.find(EVE)).toEqual([]);
    await expect(door.decide(EVE, at, { call_id: call, decision: "approve" })).rejects.toThrow(UNKNOWN);
    await expect(door.text(EVE, at)).rejects.toThrow(UNKNOWN);
    expect((await http(ANN).getTask(taskId)).status).toBe("paused");
    expect(await lastAnswer(key)).toMatchObject({ action: "approvers" });
    expect(ran).toEqual([]);
  });

  it("[AGT-APPR-06] approves nothing by text or invalid arguments, and learns how to answer", async () => {
    const taskId = `${name}, by text`;
    await waiting(taskId);
    ran.length = 0;
    const [{ at, call } = { at: "", call: "" }] = await door.find(BOB);
    await expect(door.text(BOB, at)).rejects.toThrow(/call_id.*approve.* or .*reject/s);
    const wrong = { call_id: call, decision: "approve", arguments: { question: 5 } } as const;
    await expect(door.decide(BOB, at, wrong)).rejects.toThrow(/question/);
    await expect(door.decide(BOB, at, { call_id: "none", decision: "reject" })).rejects.toThrow(/none/);
    expect((await http(ANN).getTask(taskId)).status).toBe("paused");
    expect(ran).toEqual([]);
  });
});

it("[AGT-APPR-07] an admin who cancels another owner's task through MAP is in the audit log", async () => {
  const key = await waiting("cancelled by an admin");
  await (await mapClient("admin:root")).closeConversation(`conv-${key}`);
  expect((await http(ANN).getTask("cancelled by an admin")).status).toBe("cancelled");
  expect(await lastAnswer(key)).toEqual({ actor: "admin:root", action: "cancel", right: "admin" });
});

it("[AGT-APPR-07] a second user finds every task that waits, page by page, over MAP and MCP", async () => {
  const keys: string[] = [];
  for (let n = 0; n < 205; n++) keys.push(await waiting(`many ${n}`));
  const overMcp: string[] = [];
  for (let cursor: unknown, more = true; more; more = cursor !== undefined) {
    const page = await tool(BOB, "list_approvals", cursor === undefined ? {} : { cursor });
    overMcp.push(...(page.approvals as { key: string }[]).map(({ key }) => key));
    cursor = page.next_cursor;
  }
  expect(overMcp).toEqual(keys.toReversed());
  const bob = await ConversationClient.connect(server.url, { token: BOB });
  for (const order of ["asc", "desc"] as const) {
    const overMap: string[] = [];
    for await (const { id } of bob.list({ status: ["paused"] }, { order, pageSize: 40 })) overMap.push(id);
    const expected = keys.map((key) => `conv-${key}`);
    expect(overMap).toEqual(order === "asc" ? expected : expected.toReversed());
  }
  bob.close();
});
