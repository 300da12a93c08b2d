/**
 * Three parties and one conversation: an orchestrator that manages it, an agent that only answers messages and returns
 * `meta.mail`, and a client that watches without participating.
 *
 *   npx tsx examples/watching-client/main.ts
 */
import assert from "node:assert/strict";
import { defineAgent, defineSwarm } from "agent-mailroom";
import { ConversationClient } from "agent-mailroom/client";
import { createServer } from "agent-mailroom/server";
import { WebSocket } from "ws";

const desk = defineAgent({
  name: "desk",
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => mail.complete(`You said: ${mail.body}`),
});
const swarm = defineSwarm({ name: "shop", agents: [desk] });
const server = await createServer({ swarm, data: false, dev: true, settings: { log: { level: "warn" } } });
const url = await server.listen({ port: 0 });
const connect = (token: string) => ConversationClient.connect(url, { token });

// A minimal agent: a socket, and an answer to each message.
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
    // Level 1 of adoption: the agent ignores conversations and returns `meta` unchanged.
    request("map/send", { to: { agent: from }, payload: { sum }, meta });
  });
});
await registered;

// The watcher receives every event it may see, in one order.
const watcher = await connect("admin:watcher");
const stop = new AbortController();
const seen: string[] = [];
const events = await watcher.follow({ filter: { eventTypes: ["mail.*"] }, signal: stop.signal });
const watching = (async () => {
  for await (const { type, source } of events) {
    console.log(`${type.padEnd(24)} ${source}`);
    seen.push(type);
    if (type === "mail.closed") stop.abort();
  }
})();

// The orchestrator creates the conversation, asks, and closes it after the answer.
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

// A task of the swarm is also a conversation.
await server.mailroom.user("ann").ask("hello");
const tasks: string[] = [];
for await (const { metadata } of ann.list({ type: ["user-session"] }))
  tasks.push(String(metadata.task_status));

for (const client of [ann, watcher]) client.close();
agent.close();
await server.close();

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
