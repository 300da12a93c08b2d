/**
 * A swarm with an agent in another process. The process is killed while it has work; the message waits and the next
 * process answers it.
 *
 *   npx tsx examples/agent-elsewhere/main.ts
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { defineAgent, defineSwarm } from "agent-mailroom";
import { MailClient } from "agent-mailroom/client";
import { createServer } from "agent-mailroom/server";

const boss = defineAgent({
  name: "boss",
  commTargets: ["coder"],
  enableEntrypoint: true,
  canCompleteTasks: true,
  run: (mail) => {
    const review = mail.answerFrom("coder");
    if (review === undefined) mail.request("coder", "Please review", mail.body);
    else mail.complete(review);
  },
});
// No `run`: its mail waits until a process takes it.
const coder = defineAgent({ name: "coder", commTargets: ["boss"], remote: true });

const swarm = defineSwarm({ name: "lab", agents: [boss, coder] });
const server = await createServer({ swarm, data: false, dev: true, settings: { log: { level: "warn" } } });
const url = await server.listen({ port: 0 });
const ann = new MailClient(url, { token: "user:ann" });

const startAgent = () => {
  const program = fileURLToPath(new URL("agent.ts", import.meta.url));
  const args = ["--import", import.meta.resolve("tsx"), program, url, "member:coder"];
  return spawn(process.execPath, args, { stdio: "inherit" });
};

// The question comes first: the mail waits for a process.
const { task_id: early = "" } = await ann.postMessage("the first draft", { wait: false });
const first = startAgent();
for await (const _ of ann.taskEvents(early));
console.log((await ann.getTask(early)).status);

// Without a process the mail waits again.
first.kill("SIGKILL");
await once(first, "close");
const answer = ann.postMessage("the second draft");
const second = startAgent();
const { status, response } = await answer;
console.log(status, response);

second.kill("SIGTERM");
const [code] = await once(second, "close");
await server.close();

assert.equal(response, "Reviewed: the second draft");
assert.equal(code, 0);
