/**
 * Three swarms work on one task. A planner in `desk` asks a forecaster in `weather` and a guide in `travel`; the guide
 * also asks the forecaster before it answers. The task has the same id and owner everywhere, and when its owner
 * completes it, it ends everywhere.
 *
 *   npx tsx examples/three-swarms/main.ts
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { loadSwarm } from "agent-mailroom";
import { MailClient, type TaskSummary } from "agent-mailroom/client";
import { createServer } from "agent-mailroom/server";

const NAMES = ["desk", "weather", "travel"] as const;
const directory = mkdtempSync(join(tmpdir(), "three-swarms-"));

const servers = await Promise.all(
  NAMES.map(async (name) => {
    const { definition } = await loadSwarm(join(import.meta.dirname, "swarms.json"), name);
    const settings = { log: { level: "warn" } } as const;
    const data = join(directory, name);
    const server = await createServer({ swarm: definition, data, dev: true, settings });
    return { name, url: await server.listen({ port: 0 }), close: () => server.close() };
  }),
);
const swarms = servers.map(({ name, url }) => ({ name, url }));

// Each server registers the others, with its token for them.
const adminOf = (url: string) => new MailClient(url, { token: "admin:root" });
for (const here of swarms) {
  for (const there of swarms.filter((other) => other !== here)) {
    const authToken = `agent:${here.name}`;
    await adminOf(here.url).registerSwarm({ name: there.name, baseUrl: there.url, authToken });
  }
}

const [desk] = swarms;
assert(desk !== undefined);
const ann = new MailClient(desk.url, { token: "user:ann" });
let response: string | undefined;
for await (const { event, data } of ann.postMessageStream("What shall I do in Oslo?", { taskId: "oslo" })) {
  // Events of other swarms are marked with the swarm's name.
  const { swarm, event: there } = data.extra_data;
  const copied = event === "interswarm_event";
  console.log(copied ? `${String(swarm).padEnd(8)} ${String(there)}` : `desk     ${event}`);
  if (event === "task_complete") response = data.response;
}
console.log(`\n${response}\n`);

/** The tasks on a server, in all instances, once they have ended. */
async function ended(url: string): Promise<TaskSummary[]> {
  for (;;) {
    const all: TaskSummary[] = [];
    for await (const summary of adminOf(url).admin.listTasks()) all.push(summary);
    if (all.length > 0 && all.every(({ status }) => status !== "running")) return all;
    await pause(20);
  }
}

for (const { name, url } of swarms) {
  for (const { task_id, task_owner, status } of await ended(url)) {
    console.log(`${name.padEnd(8)} task ${task_id} of ${task_owner}: ${status}`);
    assert.deepEqual(
      { task_id, task_owner, status },
      { task_id: "oslo", task_owner: "user:ann@desk", status: "completed" },
    );
  }
}
const { task_contributors: contributors } = await ann.getTask("oslo");
for (const server of servers) await server.close();
rmSync(directory, { recursive: true, force: true });

assert.equal(response, "Oslo: rain. Go to the museums");
assert.deepEqual(
  new Set(contributors),
  new Set(["user:ann@desk", "swarm:desk@weather", "swarm:desk@travel", "swarm:travel@weather"]),
);
