/**
 * Three swarms work on one task. A planner in `desk` asks a forecaster in `weather` and a guide in `travel`; the guide
 * asks the forecaster, too, before it answers. The task has the same id and the same owner everywhere, and when its
 * owner is done, it is over everywhere.
 *
 *   npx tsx examples/three-swarms/main.ts
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "../../src/cli/server/start.js";
// In a project of your own: from "mailroom/client", and three terminals with `mailroom server`.
import { MailClient, type TaskSummary } from "../../src/client/index.js";
import { loadConfig } from "../../src/config/index.js";

const NAMES = ["desk", "weather", "travel"] as const;
const directory = mkdtempSync(join(tmpdir(), "three-swarms-"));

const servers = await Promise.all(
  NAMES.map((swarmName) => {
    const swarm = join(import.meta.dirname, "swarms.json");
    const flags = { dev: true, port: 0, data: join(directory, swarmName), swarm, swarmName };
    const { settings } = loadConfig({ flags, env: {}, directory });
    return startServer(settings, directory);
  }),
);
const swarms = servers.map(({ url, swarm }) => ({ name: swarm.definition.name, url }));

// Everybody makes everybody else known, with the token under which it may call there.
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
  // What other swarms do for the task comes marked with their names.
  const { swarm, event: there } = data.extra_data;
  const copied = event === "interswarm_event";
  console.log(copied ? `${String(swarm).padEnd(8)} ${String(there)}` : `desk     ${event}`);
  if (event === "task_complete") response = data.response;
}
console.log(`\n${response}\n`);

/** What a server has of the task, in any of its instances, once it is over there. */
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
