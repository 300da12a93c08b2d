/** The client against servers that misbehave: it never throws outside its own promises. */
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { type ConnectionState, ConversationClient, serveAgent } from "../../src/client/index.js";

let server: WebSocketServer;
let url: string;
const uncaught: unknown[] = [];
const note = (error: unknown) => uncaught.push(error);

beforeEach(async () => {
  uncaught.length = 0;
  process.on("uncaughtException", note);
  process.on("unhandledRejection", note);
  server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await new Promise((resolve) => server.once("listening", resolve));
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/map`;
});

afterEach(async () => {
  for (const socket of server.clients) socket.terminate();
  await new Promise((resolve) => server.close(resolve));
  // Rejections are reported after the microtasks of this turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("uncaughtException", note);
  process.off("unhandledRejection", note);
  expect(uncaught).toEqual([]);
});

interface Request {
  readonly id: number;
  readonly method: string;
}

/** Answers requests as the table says; `map/connect` works unless the table has it. */
function answering(table: Readonly<Record<string, (socket: WebSocket, request: Request) => void>>): void {
  server.on("connection", (socket) => {
    socket.on("message", (data) => {
      const request: Request = JSON.parse(String(data));
      const answer = table[request.method] ?? table["*"];
      if (answer !== undefined) answer(socket, request);
      else if (request.method === "map/connect") result(socket, request, { participantId: "user:ann" });
    });
  });
}

function result(socket: WebSocket, { id }: Request, value: unknown): void {
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: value }));
}

function refusal(socket: WebSocket, { id }: Request, code: number, data?: object): void {
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message: "no", data } }));
}

it.each(["not JSON", "[1]", "null", '"text"'])(
  "a frame %s costs the connection, and no more",
  async (frame) => {
    answering({ "mail/get": (socket) => socket.send(frame) });
    const client = await ConversationClient.connect(url, { reconnects: 0 });
    await expect(client.get("conv-1")).rejects.toMatchObject({ code: "connection_lost" });
    await expect(client.finished).rejects.toMatchObject({
      closing: { reason: "the server sent a frame that is not a JSON object" },
    });
  },
);

it("frames before the handshake, unknown responses and events without a subscription are ignored", async () => {
  server.on("connection", (socket) => {
    socket.send('{"jsonrpc":"2.0","id":77,"result":{}}');
    socket.send('{"jsonrpc":"2.0","method":"map/event","params":{"subscriptionId":"x","event":{"id":"1"}}}');
    socket.send('{"jsonrpc":"2.0","method":"map/message","params":{"message":7}}');
    socket.send('{"jsonrpc":"2.0","method":"map/auth/expiring"}');
  });
  answering({ "mail/get": (socket, request) => result(socket, request, { conversation: { id: "c" } }) });
  const client = await ConversationClient.connect(url, { token: () => "user:ann" });
  expect(await client.get("c")).toMatchObject({ conversation: { id: "c" }, participants: [] });
  client.close();
});

it("a server that accepts and closes at once is asked again with growing pauses, up to the limit", async () => {
  server.on("connection", (socket) => socket.close(1013, "busy"));
  const states: ConnectionState[] = [];
  const connecting = ConversationClient.connect(url, {
    waitForServer: true,
    reconnects: 3,
    onState: (state) => states.push(state),
  });
  await expect(connecting).rejects.toMatchObject({
    code: "unreachable",
    closing: { code: 1013, reason: "busy" },
  });
  const waits = states.flatMap((state) => (state.status === "waiting" ? [state] : []));
  expect(waits).toMatchObject([1, 2, 3].map((attempt) => ({ attempt, code: 1013, reason: "busy" })));
  expect(waits.at(2)?.delay).toBeGreaterThan((waits.at(0)?.delay ?? 0) * 1.5);
  expect(states.at(-1)).toMatchObject({ status: "closed", code: 1013, reason: "busy" });
});

it("a busy server is asked again for a subscription", async () => {
  let subscriptions = 0;
  answering({
    "map/subscribe": (socket, request) => {
      if (++subscriptions < 3) refusal(socket, request, 4000, { retryAfterMs: 1 });
      else result(socket, request, { subscriptionId: "s" });
    },
  });
  const client = await ConversationClient.connect(url);
  await client.follow();
  expect(subscriptions).toBe(3);
  client.close();
});

it("a subscription that a lost connection interrupts is made on the next one", async () => {
  let connections = 0;
  const asked: number[] = [];
  server.on("connection", () => connections++);
  answering({
    "map/subscribe": (socket, request) => {
      asked.push(connections);
      if (connections > 1) return result(socket, request, { subscriptionId: "s" });
      refusal(socket, request, 4000, { retryAfterMs: 50 });
      socket.close();
    },
  });
  const client = await ConversationClient.connect(url);
  await client.follow();
  expect(asked).toEqual([1, 2]);
  client.close();
});

it("a server that no longer responds is noticed", async () => {
  answering({});
  const reasons: string[] = [];
  const client = await ConversationClient.connect(url, {
    idleLimit: 50,
    onState: (state) => {
      if (state.status === "waiting") reasons.push(state.reason);
    },
  });
  await expect.poll(() => reasons.length, { timeout: 30_000 }).toBeGreaterThan(0);
  expect(reasons[0]).toMatch(/^no data for \d+ ms$/);
  client.close();
});

it("a call without a response ends at its time limit", async () => {
  answering({});
  const client = await ConversationClient.connect(url);
  await expect(client.create({}, { timeout: 50 })).rejects.toMatchObject({ code: "timeout" });
  client.close();
});

it("a listener that throws does not break the connection", async () => {
  answering({});
  const client = await ConversationClient.connect(url, {
    onState: () => {
      throw new Error("the listener's own");
    },
  });
  expect(client.state.status).toBe("open");
  client.close();
  await client.finished;
  await new Promise((resolve) => setImmediate(resolve));
  expect(uncaught.splice(0).map(String)).toEqual(Array(3).fill("Error: the listener's own"));
});

it("an agent ends with the reason when the server takes its name away", async () => {
  answering({
    "map/connect": (socket, request) => result(socket, request, { participantId: "member:coder" }),
    "map/agents/register": (socket, request) => refusal(socket, request, 1003),
  });
  const serving = serveAgent(url, { token: "member:coder", name: "coder", run: () => "" });
  await expect(serving).rejects.toMatchObject({ code: "refused", number: 1003 });
});
