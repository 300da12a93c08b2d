/**
 * Three parties and one conversation: an orchestrator that keeps it, an agent that only answers what it is sent and
 * passes `meta.mail` on, and a client that watches without taking part.
 *
 *   npx tsx examples/watching-client/main.ts
 */
import assert from "node:assert/strict";
import { WebSocket } from "ws";
// In a project of your own: from "mailroom/client", "mailroom" and "mailroom/server".
import { devAuthenticator } from "../../src/auth/index.js";
import { ConversationClient } from "../../src/client/index.js";
import { MapServer } from "../../src/conversations/index.js";
import { createServer } from "../../src/http/index.js";
import { defineAgent, defineSwarm, Mailroom } from "../../src/index.js";
import { systemClock, systemIds } from "../../src/library/clock.js";
import { openStore } from "../../src/store/index.js";

const store = await openStore({ path: ":memory:" });
const desk = defineAgent({
  name: "desk",
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => mail.complete(`You said: ${mail.body}`),
});
const mailroom = await Mailroom.open({ swarm: defineSwarm({ name: "shop", agents: [desk] }), store });
const authenticator = devAuthenticator();
const map = await MapServer.open({
  store,
  index: store.conversations,
  clock: systemClock,
  ids: systemIds,
  authenticator,
  dev: true,
  runtime: mailroom.runtime,
});
const server = await createServer({ mailroom, authenticator, version: "0.0.0", dev: true, map });
const url = await server.listen();
// Node has a WebSocket of its own since version 22; `ws` works everywhere.
const open = (where: string) => new WebSocket(where);
const connect = (token: string) => ConversationClient.connect(url, { token, open });

// The agent, as little as it can be: a socket, and an answer to each message.
const agent = new WebSocket(`${url.replace("http", "ws")}/map`, {
  headers: { authorization: "Bearer user:worker" },
});
const registered = new Promise<void>((resolve) => {
  let id = 0;
  const request = (method: string, params: object) =>
    agent.send(JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params }));
  agent.on("open", () => {
    request("map/connect", { protocolVersion: 1, participantType: "agent" });
    request("map/agents/register", { agentId: "adder" });
  });
  agent.on("message", (data) => {
    const frame = JSON.parse(String(data));
    if (frame.id === 2) resolve();
    if (frame.method !== "map/message") return;
    const { from, payload, meta } = frame.params.message;
    const sum = payload.numbers.reduce((a: number, b: number) => a + b, 0);
    // Level 1 of adoption: it knows nothing of conversations and hands `meta` on as it came.
    request("map/send", { to: { agent: from }, payload: { sum }, meta });
  });
});
await registered;

// The watcher: hears of everything it may see, in one order.
const watcher = await connect("admin:watcher");
const stop = new AbortController();
const seen: string[] = [];
const events = await watcher.follow({ signal: stop.signal });
const watching = (async () => {
  for await (const { type, source } of events) {
    console.log(`${type.padEnd(24)} ${source}`);
    seen.push(type);
    if (type === "mail.closed") stop.abort();
  }
})();

// The orchestrator: keeps the conversation, asks, and closes it when it has its answer.
const ann = await connect("user:ann");
const conversation = await ann.create({
  type: "multi-agent",
  subject: "A sum",
  initialParticipants: [{ id: "adder" }],
});
const mail = { conversationId: conversation.id };
await ann.request("map/send", { to: { agent: "adder" }, payload: { numbers: [19, 23] }, meta: { mail } });
let answer: unknown;
while (answer === undefined) {
  for await (const turn of ann.turns(conversation.id))
    if (turn.participant === "adder") answer = turn.content;
}
await ann.closeConversation(conversation.id, "answered");
await watching;

// A task of the swarm is a conversation, too.
await mailroom.user("ann").ask("hello");
const tasks: string[] = [];
for await (const { metadata } of ann.list({ type: ["user-session"] }))
  tasks.push(String(metadata.task_status));

for (const client of [ann, watcher]) client.close();
agent.close();
await map.close();
await server.close();
await mailroom.close();
await store.close();

assert.deepEqual(answer, { sum: 42 });
assert.deepEqual(seen, [
  "mail.created",
  "mail.participant.joined",
  "mail.participant.joined",
  "mail.turn.added",
  "mail.turn.added",
  "mail.closed",
]);
assert.deepEqual(tasks, ["completed"]);
