/** A start with many unfinished tasks serves requests during recovery. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { MailClient } from "../../src/client/index.js";
import { loadConfig } from "../../src/server/catalog.js";
import { startServer } from "../../src/server/start.js";
import { freePort } from "../federation/processes.js";
import { until } from "../federation/until.js";
import { served } from "../kit/served.js";
import { ASKING_SWARM } from "./breakpoint-swarm.js";

/** START_TASKS=20000 runs it with more. */
const TASKS = Number(process.env.START_TASKS ?? 2_000);
const AT_ONCE = 500;

it("[ENGINE-C-3] a server with many running tasks answers while it recovers them, and shows the progress", {
  timeout: 120_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), "mailroom-start-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const first = await served(ASKING_SWARM, "", directory);
  const { mailroom } = first.running;
  for (let posted = 0; posted < TASKS; posted += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, (_, user) => mailroom.user(`u${user}`).post("wait")));
  }
  await first.running.close(0);

  // Another version of the swarm: every task records it, so that there is something to write.
  writeFileSync(join(directory, "swarms.json"), ASKING_SWARM.replace("1.0.0", "1.0.1"));
  const port = await freePort();
  const client = new MailClient(`http://127.0.0.1:${port}`, { token: "user:u0", retries: 0 });
  const seen: { done: number; of: number }[] = [];
  let over = false;
  const asking = (async () => {
    // Until it listens. From then on, no request may fail.
    await until(() => client.getHealth().catch(() => undefined));
    while (!over) {
      const health = await client.getHealth();
      if (health.taking_up !== undefined) seen.push(health.taking_up);
      // A new caller's message is accepted and answered in the meantime.
      if (seen.length === 1) expect((await client.postMessage("hello")).response).toBe("You said: hello");
    }
  })();
  const { settings } = loadConfig({ flags: { dev: true, port: String(port) }, env: {}, directory });
  const running = await startServer(settings, directory);
  onTestFinished(() => running.close(0));
  expect(running.unfinishedTasks).toBe(TASKS);
  await running.mailroom.recover();
  over = true;
  await asking;
  expect(seen.length).toBeGreaterThan(1);
  expect(seen.some(({ done }) => done < TASKS)).toBe(true);
  expect(new Set(seen.map(({ of }) => of))).toEqual(new Set([TASKS]));
  expect(seen.map(({ done }) => done)).toEqual(seen.map(({ done }) => done).toSorted((a, b) => a - b));
  expect(running.mailroom.runtime.stats.runningTasks).toBe(TASKS);
  await until(async () => (await client.getHealth()).taking_up === undefined);
});
