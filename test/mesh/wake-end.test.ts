/** Closing an agent does not wait for its wake triggers. */
import { mkdtempSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { commandWaker, type WakeNotification, WakeTrigger } from "../../src/doors/mesh/wake.js";

const noteOf = (number: number): WakeNotification => ({
  message_id: String(number),
  swarm_id: "s",
  sender_id: "alice",
  notification_level: "normal",
});

it("closing drops queued wake-ups and accepts no more", async () => {
  const woken: string[] = [];
  let finish: () => void = () => undefined;
  const waker = ({ message_id }: WakeNotification) =>
    new Promise<void>((resolve) => {
      woken.push(message_id);
      finish = resolve;
    });
  const trigger = new WakeTrigger(waker, () => undefined);
  for (let number = 0; number < 100; number += 1) trigger.wake(noteOf(number));
  const closed = trigger.close();
  finish();
  await closed;
  trigger.wake(noteOf(100));
  await trigger.quiet();
  expect(woken).toEqual(["0"]);
});

/** A program that ignores SIGTERM; resolves when it is running. */
function stubborn(): { argv: [string, ...string[]]; running: Promise<void> } {
  const directory = mkdtempSync(join(tmpdir(), "mesh-wake-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const running = new Promise<void>((resolve) => {
    const watcher = watch(directory, () => {
      watcher.close();
      resolve();
    });
  });
  const script =
    "process.on('SIGTERM', () => undefined); setInterval(() => undefined, 1000);" +
    "fs.writeFileSync(process.argv[1], '');";
  return { argv: [process.execPath, "-e", script, join(directory, "running")], running };
}

it("a wake program that ignores SIGTERM is killed", async () => {
  const { argv, running } = stubborn();
  const causes: unknown[] = [];
  const trigger = new WakeTrigger(commandWaker(argv, { grace: 50 }), ({ cause }) => causes.push(cause));
  trigger.wake(noteOf(1));
  await running;
  await trigger.close();
  expect(String(causes[0])).toContain("SIGKILL");
});

it("a wake program that exceeds its time limit is killed", async () => {
  const { argv } = stubborn();
  // Long enough for the program to start and ignore the signal on any machine.
  const waker = commandWaker(argv, { timeLimit: 2_000, grace: 50 });
  await expect(waker(noteOf(1))).rejects.toThrow("SIGKILL");
});
