/**
 * A conversation: one task, several turns, over HTTP. The swarm remembers what was said before, also when the server was
 * stopped in between.
 *
 *   npx tsx examples/conversation/main.ts
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
// In a project of your own: from "mailroom/client", "mailroom" and "mailroom/server".
import { devAuthenticator } from "../../src/auth/index.js";
import { MailClient } from "../../src/client/index.js";
import { createServer } from "../../src/http/index.js";
import { defineAgent, defineSwarm, Mailroom } from "../../src/index.js";

/** Keeps a shopping list. It has no variables: what it knows is what it finds in its own history of the task. */
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

/** Runs a server for as long as `work` takes. */
async function withServer(work: (client: MailClient) => Promise<void>): Promise<void> {
  const mailroom = await Mailroom.open({ swarm, data });
  const server = await createServer({
    mailroom,
    authenticator: devAuthenticator(),
    version: "0.0.0",
    dev: true,
  });
  try {
    await work(new MailClient(await server.listen(), { token: "user:ann" }));
  } finally {
    await server.close();
    await mailroom.close();
  }
}

const answers: string[] = [];
async function say(client: MailClient, text: string): Promise<void> {
  // The task's id is what makes it one conversation.
  const { response } = await client.postMessage(text, { taskId: "shopping" });
  console.log(`ann:    ${text}\nkeeper: ${response}`);
  answers.push(response);
}

await withServer(async (client) => {
  await say(client, "What is on the list?");
  await say(client, "add bread");
});
console.log("        (the server is stopped and started again)");
await withServer(async (client) => {
  await say(client, "add apples");
  await say(client, "What is on the list?");
});
await rm(data, { recursive: true });

assert.deepEqual(answers, ["nothing yet", "1 on the list", "2 on the list", "bread, apples"]);
