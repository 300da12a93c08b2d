/**
 * The crash and simulation harnesses for as long as one likes.
 *
 *   npx tsx scripts/soak.ts                     5,000 kills, then 20,000 simulated runs
 *   npx tsx scripts/soak.ts --minutes 30        each harness for half an hour instead
 *   npx tsx scripts/soak.ts --only crash|simulation
 *   CRASH_SEED=<n>, SIMULATION_SEED=<n>         begin with this seed
 *
 * Stops at the first violation, says with which seed it was, and leaves the data directory for whoever looks into it.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compileChild } from "../test/crash/compile.js";
import { HOUSES, judge } from "../test/crash/houses.js";

const KILLS = 5_000;
/** Kills after which everything is let finish and looked at. */
const KILLS_PER_ROUND = 250;
const SIMULATED_RUNS = 20_000;
const RUNS_PER_ROUND = 1_000;
const HARNESSES = ["crash", "simulation"] as const;
type Harness = (typeof HARNESSES)[number];

/** Says whether the next round is still due, given what was done so far. */
type Goal = (done: number) => boolean;

const { minutes, only } = readOptions();
for (const harness of only === undefined ? HARNESSES : [only]) {
  const end = minutes === undefined ? undefined : Date.now() + minutes * 60_000;
  const until =
    (all: number): Goal =>
    (done) =>
      end === undefined ? done < all : Date.now() < end;
  if (harness === "crash") await soakCrash(until(KILLS));
  else soakSimulation(until(SIMULATED_RUNS));
}

async function soakCrash(isDue: Goal): Promise<void> {
  const child = compileChild();
  const folder = mkdtempSync(join(tmpdir(), "mailroom-soak-"));
  try {
    const first = seedFrom("CRASH_SEED");
    for (let kills = 0, round = 0; isDue(kills); kills += KILLS_PER_ROUND, round += 1) {
      const seed = first + round * HOUSES.length;
      const verdicts = await Promise.all(
        HOUSES.map((house, index) =>
          judge({
            ...house,
            script: child.script,
            // Every round goes on with the data of the last one.
            folder: join(folder, house.name),
            seed: seed + index,
            kills: Math.ceil(KILLS_PER_ROUND / HOUSES.length),
          }),
        ),
      );
      const violations = verdicts.flatMap((verdict) => verdict.violations);
      const tasks = verdicts.reduce((sum, verdict) => sum + verdict.tasks, 0);
      say(`crash: ${kills + KILLS_PER_ROUND} kills, ${tasks} tasks, CRASH_SEED=${seed}`);
      if (violations.length > 0)
        fail([`${violations.length} violations; the data is in ${folder}`, ...violations]);
    }
    rmSync(folder, { recursive: true });
  } finally {
    child.remove();
  }
}

function soakSimulation(isDue: Goal): void {
  const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
  const first = seedFrom("SIMULATION_SEED");
  for (let runs = 0; isDue(runs); runs += RUNS_PER_ROUND) {
    const seed = first + runs;
    const { status, stdout, stderr } = spawnSync(process.execPath, [vitest, "run", "test/simulation"], {
      encoding: "utf8",
      env: { ...process.env, SIMULATION_SEED: `${seed}`, SIMULATION_RUNS: `${RUNS_PER_ROUND}` },
    });
    say(`simulation: ${runs + RUNS_PER_ROUND} runs, SIMULATION_SEED=${seed}`);
    if (status !== 0) fail([stdout, stderr]);
  }
}

function seedFrom(variable: string): number {
  return Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 30));
}

function say(text: string): void {
  console.log(`${new Date().toISOString()} ${text}`);
}

function fail(lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}

function readOptions(): { minutes: number | undefined; only: Harness | undefined } {
  const { values } = parseArgs({ options: { minutes: { type: "string" }, only: { type: "string" } } });
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  if (minutes !== undefined && !(minutes > 0)) fail(["--minutes takes a number greater than 0"]);
  const only = HARNESSES.find((harness) => harness === values.only);
  if (values.only !== undefined && only === undefined) fail([`--only takes one of: ${HARNESSES.join(", ")}`]);
  return { minutes, only };
}
