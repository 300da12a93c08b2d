/** A stream that outlives its server, which is killed and restarted several times during a task. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MailClient, type TaskEvent } from "../../src/client/index.js";
import { freePort } from "../kit/free-port.js";
import { folder, type Started, serve } from "./cli.js";

const AGENTS = `
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
export const desk = {
  async run(mail) {
    await pause();
    const done = mail.fromType === "agent" ? Number(mail.body) : 0;
    if (done < 40) mail.request("clerk", "Next", String(done));
    else mail.complete("counted to " + done);
  },
};
export const clerk = { async run(mail) { await pause(); mail.reply(String(Number(mail.body) + 1)); } };
`;

const SWARM = [
  {
    name: "counting",
    version: "1.0.0",
    entrypoint: "desk",
    agents: [
      {
        name: "desk",
        factory: "module:./agents.mjs#desk",
        comm_targets: ["clerk"],
        enable_entrypoint: true,
        can_complete_tasks: true,
      },
      { name: "clerk", factory: "module:./agents.mjs#clerk", comm_targets: ["desk"] },
    ],
  },
];

const SETTINGS = "[server.settings]\ntask_message_limit = 0\n";

it("yields exactly the journal", { timeout: 180_000 }, async () => {
  await using here = await folder();
  const cwd = here.path;
  await writeFile(join(cwd, "swarms.json"), JSON.stringify(SWARM));
  await writeFile(join(cwd, "agents.mjs"), AGENTS);
  await writeFile(join(cwd, "mail.toml"), SETTINGS);
  const port = String(await freePort());
  const start = () => serve(["--dev", "--port", port], { cwd });
  let server: Started = await start();
  const client = new MailClient(server.url, {
    token: "user:ann",
    reconnects: 200,
    retries: 200,
    retryPause: 20,
  });
  const killAt = new Set([5, 60, 130]);
  const seen: TaskEvent[] = [];
  let restarts = 0;
  let restarting: Promise<void> = Promise.resolve();
  try {
    for await (const event of client.postMessageStream("count", { taskId: "t" })) {
      seen.push(event);
      if (!killAt.has(seen.length)) continue;
      // Not awaited: the reader continues with what it has.
      restarting = restarting.then(async () => {
        await server[Symbol.asyncDispose]();
        restarts += 1;
        server = await start();
      });
    }
    await restarting;
    expect(restarts).toBe(killAt.size);
    expect(seen.at(-1)?.data).toMatchObject({ status: "completed", response: "counted to 40" });
    const { events } = await client.getTask("t");
    expect(seen).toEqual(events);
  } finally {
    await restarting.catch(() => {});
    await server[Symbol.asyncDispose]();
  }
});
