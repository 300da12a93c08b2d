/**
 * A conversation: one task, several turns, over HTTP. The swarm keeps its history, also when the server restarts in
 * between.
 *
 *   npx tsx examples/conversation/main.ts
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent, defineSwarm } from "agent-mailroom";
import { MailClient } from "agent-mailroom/client";
import { createServer } from "agent-mailroom/server";

/** Keeps a shopping list. It has no variables: its state is its own history of the task. */
const keeper = defineAgent({
  name: "keeper",
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => {
    const said = mail.history.flatMap((item) =>
      item.kind === "message" && item.message.message.sender.address_type === "user"
        ? [item.message.message.body]
        : [],
    );
    const items = said.flatMap((text) => /^add (.+)$/i.exec(text)?.[1] ?? []);
    mail.complete(
      /^add /i.test(mail.body) ? `${items.length} on the list` : items.join(", ") || "nothing yet",
    );
  },
});
const swarm = defineSwarm({ name: "list", agents: [keeper] });
const data = await mkdtemp(join(tmpdir(), "conversation-"));

/** Runs a server while `work` runs. */
async function withServer(work: (client: MailClient) => Promise<void>): Promise<void> {
  const server = await createServer({ swarm, data, dev: true, settings: { log: { level: "warn" } } });
  try {
    const url = await server.listen({ port: 0 });
    await work(new MailClient(url, { token: "user:ann" }));
  } finally {
    await server.close();
  }
}

const answers: string[] = [];
async function say(client: MailClient, text: string): Promise<void> {
  // Messages with the same task id are one conversation.
  const { response } = await client.postMessage(text, { taskId: "shopping" });
  console.log(`ann:    ${text}\nkeeper: ${response}`);
  answers.push(response);
}

await withServer(async (client) => {
  await say(client, "What is on the list?");
  await say(client, "add bread");
});
console.log("(the server restarts)");
await withServer(async (client) => {
  await say(client, "add apples");
  await say(client, "What is on the list?");
});
await rm(data, { recursive: true });

assert.deepEqual(answers, ["nothing yet", "1 on the list", "2 on the list", "bread, apples"]);
