/**
 * The crash, fault and simulation harnesses for as long as one likes: `npm run soak -- --help`.
 *
 * Stops at the first violation, says with which seed it was, and leaves the data directory of killed processes for
 * whoever looks into it.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compileChild } from "../test/crash/compile.js";
import { HOUSES, judge } from "../test/crash/houses.js";

const HELP = `Usage: npm run soak -- [options]

Runs three harnesses one after the other and stops at the first violation.

  crash        processes under load that are killed (1,000 times)
  faults       processes whose disk is full, locked or broken at random moments (20 of each, for up to 10 s)
  simulation   simulated lives of the kernel, each from a seed (20,000)

Options:
  --only <harness>   one of them
  --minutes <n>      each for so many minutes instead
  --help             this text

Environment:
  CRASH_SEED, FAULTS_SEED, SIMULATION_SEED     the first seed (default: a random one)
  CRASH_KILLS, FAULTS_COUNT, SIMULATION_RUNS   how many, instead of the numbers above
  FAULTS_MS                                    the longest that a fault lasts, in milliseconds
`;

/** Kills after which everything is let finish and looked at. */
const KILLS_PER_ROUND = 250;
const KILLS_PER_LINE = 50;
const FAULTS_PER_ROUND = 2;
const RUNS_PER_ROUND = 1_000;

const HARNESSES = ["crash", "faults", "simulation"] as const;
type Harness = (typeof HARNESSES)[number];

/** How much of so much is due next, given what was done so far; nothing when it is over. */
type Goal = (done: number, perRound: number) => number;

const SOAKS: Readonly<Record<Harness, (due: (all: number) => Goal) => Promise<void>>> = {
  crash: (due) => soakCrash(due(fromEnvironment("CRASH_KILLS", 1_000))),
  faults: (due) => soakFaults(due(fromEnvironment("FAULTS_COUNT", 20))),
  simulation: (due) => soakSimulation(due(fromEnvironment("SIMULATION_RUNS", 20_000))),
};

const { minutes, only } = readOptions();
for (const harness of only === undefined ? HARNESSES : [only]) {
  const end = minutes === undefined ? undefined : Date.now() + minutes * 60_000;
  await SOAKS[harness]((all) => (done, perRound) => {
    if (end !== undefined) return Date.now() < end ? perRound : 0;
    return Math.max(0, Math.min(perRound, all - done));
  });
}

async function soakCrash(next: Goal): Promise<void> {
  const child = compileChild();
  const folder = mkdtempSync(join(tmpdir(), "mailroom-soak-"));
  try {
    const first = seedFrom("CRASH_SEED");
    let killed = 0;
    for (let round = 0, kills = next(0, KILLS_PER_ROUND); kills > 0; kills = next(killed, KILLS_PER_ROUND)) {
      const seed = first + round * HOUSES.length;
      const verdicts = await Promise.all(
        HOUSES.map((house, index) =>
          judge({
            ...house,
            script: child.script,
            // Every round goes on with the data of the last one.
            folder: join(folder, house.name),
            seed: seed + index,
            kills: Math.floor((kills + index) / HOUSES.length),
            onKill: () => {
              killed += 1;
              if (killed % KILLS_PER_LINE === 0) say(`crash: ${killed} kills, CRASH_SEED=${seed}`);
            },
          }),
        ),
      );
      const violations = verdicts.flatMap((verdict) => verdict.violations);
      const tasks = verdicts.reduce((sum, verdict) => sum + verdict.tasks, 0);
      say(`crash: ${killed} kills, ${tasks} tasks, ${violations.length} violations, CRASH_SEED=${seed}`);
      if (violations.length > 0) fail([`the data is in ${folder}`, ...violations]);
      round += 1;
    }
    rmSync(folder, { recursive: true });
  } finally {
    child.remove();
  }
}

async function soakFaults(next: Goal): Promise<void> {
  const first = seedFrom("FAULTS_SEED");
  const longest = fromEnvironment("FAULTS_MS", 10_000);
  let done = 0;
  for (let count = next(0, FAULTS_PER_ROUND); count > 0; count = next(done, FAULTS_PER_ROUND)) {
    const seed = first + done * 1_000;
    const env = { FAULTS_SEED: `${seed}`, FAULTS_COUNT: `${count}`, FAULTS_MS: `${longest}`, CI: "true" };
    await vitest("test/faults", env, `FAULTS_SEED=${seed}`);
    done += count;
    say(`faults: ${done} of each kind, up to ${longest} ms, FAULTS_SEED=${seed}`);
  }
}

async function soakSimulation(next: Goal): Promise<void> {
  const first = seedFrom("SIMULATION_SEED");
  let done = 0;
  for (let runs = next(0, RUNS_PER_ROUND); runs > 0; runs = next(done, RUNS_PER_ROUND)) {
    const seed = first + done;
    const env = { SIMULATION_SEED: `${seed}`, SIMULATION_RUNS: `${runs}` };
    await vitest("test/simulation/simulation.test.ts", env, `${runs} seeds from ${seed}`);
    done += runs;
    say(`simulation: ${done} runs, SIMULATION_SEED=${seed} SIMULATION_RUNS=${runs}`);
  }
}

/** @param proof part of a test's name that says that it did what it was told */
async function vitest(path: string, env: Readonly<Record<string, string>>, proof: string): Promise<void> {
  const program = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
  const child = spawn(process.execPath, [program, "run", path, "--reporter=verbose"], {
    env: { ...process.env, ...env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text: Buffer) => {
      output += text.toString();
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (code !== 0) fail([output]);
  if (!output.includes(proof))
    fail([output, `${path} did not run what it was told to: '${proof}' is missing`]);
}

function seedFrom(variable: string): number {
  return fromEnvironment(variable, Math.floor(Math.random() * 2 ** 30));
}

function fromEnvironment(variable: string, otherwise: number): number {
  const given = process.env[variable];
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (!Number.isSafeInteger(number) || number < 0) fail([`${variable} takes a whole number, not '${given}'`]);
  return number;
}

function say(text: string): void {
  console.log(`${new Date().toISOString()} ${text}`);
}

function fail(lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}

function readOptions(): { minutes: number | undefined; only: Harness | undefined } {
  const { values } = parseArgs({
    options: { minutes: { type: "string" }, only: { type: "string" }, help: { type: "boolean" } },
  });
  if (values.help === true) {
    console.log(HELP);
    process.exit(0);
  }
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  if (minutes !== undefined && !(minutes > 0)) fail(["--minutes takes a number greater than 0"]);
  const only = HARNESSES.find((harness) => harness === values.only);
  if (values.only !== undefined && only === undefined) fail([`--only takes one of: ${HARNESSES.join(", ")}`]);
  return { minutes, only };
}
