/**
 * The process that is killed. Opens the data directory, recovers its tasks, and keeps tasks of every kind running.
 *
 *   node child.js <data directory> <effects file> <seed> live|steady|finish|hold|poison <durability> <recoveries>
 *
 * `live` runs until it is killed, `steady` until its standard input ends or the store has failed, `finish` until every
 * task has ended. `hold` only keeps the directory open. `poison` posts a message that ends the process, among others.
 * It starts when it gets a byte on its standard input, so that the next one can load while the current one still runs.
 */
import { readSync } from "node:fs";
import { Mailroom } from "../../src/library/mailroom.js";
import { say } from "./acknowledgements.js";
import { Driver } from "./driver.js";
import { openEffectLog } from "./effects.js";
import { randomFrom } from "./random.js";
import { crashSwarm } from "./swarm.js";

const [data = "", effectsFile = "", seed = "", mode = "", durability = "", recoveries = ""] =
  process.argv.slice(2);
readSync(0, Buffer.alloc(1));
const effects = openEffectLog(effectsFile);
let hasFailed = false;
let fail = (): void => {};
const failed = new Promise<void>((resolve) => {
  fail = () => {
    hasFailed = true;
    resolve();
  };
});
const mailroom = await Mailroom.open({
  swarm: crashSwarm(effects),
  data,
  durability: durability === "fast" ? "fast" : "fsync",
  // Small, so that tasks leave memory and come back, with and without a snapshot.
  limits: { cachedTasks: 4, snapshotAfter: 12, recoveries: Number(recoveries) },
  onProblem: ({ code, message, task }) => {
    if (code === "store_failed") fail();
    else say({ ack: "problem", code, message, ...(task !== undefined && { task }) });
  },
});
say({ ack: "ready", recovered: mailroom.recovered });

const driver = new Driver(mailroom, randomFrom(Number(seed)));
if (mode === "hold") setInterval(() => {}, 60_000);
else if (mode === "poison") await driver.poison();
else if (mode === "live") await driver.live();
else {
  if (mode === "steady") await Promise.race([driver.live(), ended(process.stdin), failed]);
  if (!hasFailed) await driver.finish();
  await mailroom.close();
  effects.close();
  say({ ack: hasFailed ? "failed" : "done" });
  // Work that waits for a failed store must not keep the process alive.
  process.exit();
}

function ended(stream: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    stream.on("end", resolve);
    stream.resume();
  });
}
