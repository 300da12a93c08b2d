/** A remote agent's process is killed while it works, and restarted (decision B18, decision F5). */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { BridgeHarness } from "./bridge-harness.js";

const PROGRAM = join(import.meta.dirname, "coder-process.mjs");
const TASKS = 40;
const KILLS = 4;

it("[MAP-OURS-24] a remote agent that is killed and restarted loses no task and answers none twice", async () => {
  const bridge = await BridgeHarness.start();
  const url = `${bridge.url.replace("http", "ws")}/map`;
  const ann = bridge.mailroom.user("ann");
  const posted = await Promise.all(
    Array.from({ length: TASKS }, (_, index) => ann.post(`job ${index}`, { taskId: `task-${index}` })),
  );
  for (let kill = 1; kill <= KILLS; kill++) {
    // It answers a few messages and is killed while it holds others.
    const child = start(url, 5);
    await lines(child, 8);
    child.kill("SIGKILL");
    await once(child, "close");
  }
  const last = start(url, Number.MAX_SAFE_INTEGER);
  const outcomes = await Promise.all(posted.map(({ outcome }) => outcome));
  expect(outcomes.map(({ status }) => status)).toEqual(posted.map(() => "completed"));
  for (const [index, { task }] of posted.entries()) {
    let answered = 0;
    for await (const { entry } of task.journal()) {
      if (entry.t === "sent" && entry.message.message.sender.address === "coder") {
        answered++;
        expect(entry.message.message.body).toBe(`did job ${index}`);
      }
    }
    expect(answered).toBe(1);
  }
  last.kill("SIGKILL");
  await once(last, "close");
  await bridge.stop();
  expect(bridge.problems).toEqual([]);
}, 60_000);

function start(url: string, answers: number): ChildProcess {
  return spawn(process.execPath, [PROGRAM, url, `${answers}`], { stdio: ["ignore", "pipe", "inherit"] });
}

/** Waits until the child has received this many messages. */
async function lines(child: ChildProcess, wanted: number): Promise<void> {
  let seen = 0;
  for await (const chunk of child.stdout ?? []) {
    seen += String(chunk).split("\n").length - 1;
    if (seen >= wanted) return;
  }
  throw new Error(`the child exited after ${seen} messages`);
}
