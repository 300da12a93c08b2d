/**
 * Three agents of three owners in one mesh swarm, over real TLS on this machine: an invite, a message to all, a task
 * in which one owner's agent asks another's, and a member that is kicked. Each agent is a server in this program; the
 * operator's commands are those of `mailroom mesh`.
 *
 *   npx tsx examples/mesh-three-agents/main.ts
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { defineAgent, defineSwarm } from "agent-mailroom";
import { createServer } from "agent-mailroom/server";

const directory = await mkdtemp(join(tmpdir(), "mesh-"));
const program = join(
  dirname(fileURLToPath(import.meta.resolve("agent-mailroom/package.json"))),
  "bin/mailroom.js",
);

/** Runs `mailroom mesh …` on an agent's data directory, through its server if one runs there. */
async function mesh(agent: string, command: string, ...options: readonly string[]): Promise<string> {
  const data = ["--data", join(directory, agent)];
  const { stdout } = await promisify(execFile)(process.execPath, [
    program,
    "mesh",
    command,
    ...data,
    ...options,
  ]);
  return stdout.trim();
}

/** Answers questions; a question for bob is forwarded to him. */
const clerk = (name: string) =>
  defineSwarm({
    name: `${name}-office`,
    enableInterswarm: true,
    agents: [
      defineAgent({
        name: "clerk",
        enableEntrypoint: true,
        enableInterswarm: true,
        canCompleteTasks: true,
        commTargets: name === "alice" ? ["bob@lab"] : [],
        run: (mail) => {
          if (mail.fromType === "agent") mail.complete(`${mail.from} says: ${mail.body}`);
          else if (name === "alice") {
            mail.request("bob@lab", "A question", mail.body);
            mail.await();
          } else mail.complete(`I am ${name}, and I read: ${mail.body.split("\n")[0]}`);
        },
      }),
    ],
  });

async function freePort(): Promise<number> {
  const socket = createSocket();
  await new Promise<void>((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const address = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function openAgent(name: string) {
  const data = join(directory, name);
  const port = await freePort();
  await mesh(name, "init", "--dev", "--agent-id", name, "--endpoint", `https://localhost:${port}/swarm`);
  // All three trust the same development CA.
  if (name !== "alice") await cp(join(directory, "alice", "tls"), join(data, "tls"), { recursive: true });
  const settings = { log: { level: "warn" }, mesh: { listen: `localhost:${port}` } } as const;
  const server = await createServer({ swarm: clerk(name), data, dev: true, settings });
  await server.listen({ port: 0 });
  // Commands reach the server through this socket.
  await server.openControl(join(data, "control.sock"));
  return server;
}

await mesh("alice", "dev-ca");
const servers = [await openAgent("alice"), await openAgent("bob"), await openAgent("carol")];
const [alice] = servers;
assert(alice !== undefined);

// Alice creates the swarm; one invite for two.
await mesh("alice", "create", "--name", "Lab");
const invite = await mesh("alice", "invite", "--max-uses", "2");
for (const name of ["bob", "carol"]) await mesh(name, "join", "--token", invite);
console.log(await mesh("carol", "list", "--members"));

// A signed message to all. Each answer comes from the swarm behind the agent.
await mesh("alice", "send", "--message", "Who reads this?");
let messages = "";
while (!["I am bob", "I am carol"].every((answer) => messages.includes(answer))) {
  await pause(50);
  messages = await mesh("alice", "messages");
}
console.log(messages);

// A task of Alice's own swarm, in which her clerk asks bob@lab.
const { status, response } = await alice.mailroom.user("ann").ask("What is the news?");
console.log(response);
assert.equal(status, "completed");
assert.match(response, /^bob@lab says: I am bob/u);

// A kick takes effect whether or not the member answers.
await mesh("alice", "kick", "--agent", "carol", "--reason", "the example is over");
assert.doesNotMatch(await mesh("alice", "list", "--members"), /carol/u);

for (const server of servers) await server.close();
await rm(directory, { recursive: true });
console.log("all checks passed");
