/** Kills the child at random moments and starts it again on the same data, many times; then lets it finish. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { defaultsOf } from "../../src/base/index.js";
import { runtimeSettings } from "../../src/engine/settings.js";
import type { Durability } from "../../src/store/index.js";
import type { Acknowledgement } from "./acknowledgements.js";
import { Life, type Mode } from "./process.js";
import { type Random, randomFrom } from "./random.js";

export interface RunOptions {
  /** The compiled child. */
  readonly script: string;
  /** An empty folder, or the folder of an earlier run. */
  readonly folder: string;
  readonly seed: number;
  readonly kills: number;
  readonly durability?: Durability;
  /**
   * A turn that is interrupted three times in a row is abandoned, because it may be the cause (decision B12). `spare`
   * keeps that guard, and lets every second process run until its recovered turns made progress. Without it the guard is
   * off, and any process may be killed early.
   */
  readonly spare?: boolean;
  /** Milliseconds that the last process may take to finish everything. */
  readonly patience?: number;
  readonly onKill?: (kills: number) => void;
}

export interface Run {
  readonly data: string;
  readonly effects: string;
  readonly kills: number;
  readonly acknowledged: readonly Acknowledgement[];
  /** Problems with the processes themselves. */
  readonly problems: readonly string[];
}

export async function runAndKill(options: RunOptions): Promise<Run> {
  const { script, folder, seed, kills, patience = 60_000, durability = "fsync", spare = true } = options;
  const recoveries = spare ? defaultsOf(runtimeSettings).recoveries : Number.MAX_SAFE_INTEGER;
  const random = randomFrom(seed);
  const data = join(folder, "data");
  const effects = join(folder, "effects");
  const acknowledged: Acknowledgement[] = [];
  const problems: string[] = [];
  const load = (mode: Mode) =>
    new Life({ script, data, effects, seed: random.whole(0, 2 ** 31), mode, durability, recoveries });

  let cutShort = false;
  let life = load(kills > 0 ? "live" : "finish");
  for (let killed = 0; killed < kills; killed += 1) {
    life.begin();
    // The next process loads meanwhile, because loading takes longer than most processes run.
    const next = load(killed + 1 < kills ? "live" : "finish");
    await untilSomeMoment(life, random);
    if (spare && cutShort) await life.hasCaughtUp();
    life.kill();
    const { code, signal } = await life.ended;
    if (signal !== "SIGKILL") {
      problems.push(`process ${killed + 1} ended by itself (${code ?? signal}): ${life.stderr}`);
    }
    cutShort = !life.caughtUp;
    acknowledged.push(...life.said);
    options.onKill?.(killed + 1);
    life = next;
  }

  life.begin();
  const tooLong = setTimeout(() => life.kill(), patience);
  const { code } = await life.ended;
  clearTimeout(tooLong);
  acknowledged.push(...life.said);
  if (code !== 0 || life.said.at(-1)?.ack !== "done") {
    problems.push(`the last process did not finish within ${patience} ms (${code}): ${life.stderr}`);
  }
  return { data, effects, kills, acknowledged, problems };
}

/** While it opens and recovers, a while after it is open, or after a number of acknowledgements. */
async function untilSomeMoment(life: Life, random: Random): Promise<void> {
  const kind = random.next();
  if (kind < 0.2) {
    await delay(random.whole(0, 60));
  } else if (kind < 0.55) {
    await life.hasSaid(1);
    await delay(random.whole(0, 150));
  } else {
    await life.hasSaid(random.whole(2, 40));
    if (random.chance(0.5)) await delay(random.whole(0, 4));
  }
}
