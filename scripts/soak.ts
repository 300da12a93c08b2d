/**
 * Runs the crash, fault and simulation harnesses for a given time: `npm run soak -- --help`.
 *
 * Stops at the first violation, prints its seed, and keeps the data directory of the killed processes.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compileChild } from "../test/crash/compile.js";
import { runAndVerify, VARIANTS } from "../test/crash/variants.js";

const HELP = `Usage: npm run soak -- [options]

Runs seven harnesses one after the other and stops at the first violation.

  crash        processes under load that are killed (1,000 times)
  faults       processes whose disk is full, locked or broken at random moments (20 of each, for up to 10 s)
  simulation   simulated lives of the kernel, each from a seed (20,000)
  questions    questions between two servers that are killed, over slow connections that are cut (5,000)
  mutations    changed requests at every door (1,000,000)
  mesh         three mesh nodes under transfers, kicks, key changes, restarts and cuts, each from a seed (1,000)
  hostile      attackers beside honest clients at every door (once, for 60 s each)

Options:
  --only <harness>   run only this one
  --minutes <n>      run each for this many minutes instead
  --help             this text

Environment:
  CRASH_SEED, FAULTS_SEED, SIMULATION_SEED, QUESTIONS_SEED, MUTATIONS_SEED   the first seed (default: a random one)
  CRASH_KILLS, FAULTS_COUNT, SIMULATION_RUNS, QUESTIONS, MUTATIONS, HOSTILE_ROUNDS   how many, instead of the numbers above
  MESH_SEED, MESH_RUNS, MESH_STEPS                           of the mesh: the first seed, runs, and operations in each (300)
  FAULTS_MS                                                  the longest that a fault lasts, in milliseconds
  HOSTILE_SECONDS, HOSTILE_SETTLE                            how long an attack lasts, and how long memory may take to return
`;

/** Kills per round; after a round everything finishes and is verified. */
const KILLS_PER_ROUND = 250;
const KILLS_PER_LINE = 50;
const FAULTS_PER_ROUND = 2;
const RUNS_PER_ROUND = 1_000;
const QUESTIONS_PER_ROUND = 500;
const MUTATIONS_PER_ROUND = 25_000;
/** The share of the mesh, which has a listener of its own. */
const MESH_MUTATIONS = 0.2;

const MESH_RUNS_PER_ROUND = 50;

const HARNESSES = ["crash", "faults", "simulation", "questions", "mutations", "mesh", "hostile"] as const;
type Harness = (typeof HARNESSES)[number];

/** How many of a round are due next, given the number done so far; undefined when the goal is reached. */
type Goal = (done: number, perRound: number) => number;

const SOAKS: Readonly<Record<Harness, (due: (all: number) => Goal) => Promise<void>>> = {
  crash: (due) => soakCrash(due(fromEnvironment("CRASH_KILLS", 1_000))),
  faults: (due) => soakFaults(due(fromEnvironment("FAULTS_COUNT", 20))),
  simulation: (due) => soakSimulation(due(fromEnvironment("SIMULATION_RUNS", 20_000))),
  questions: (due) => soakQuestions(due(fromEnvironment("QUESTIONS", 5_000))),
  mutations: (due) => soakMutations(due(fromEnvironment("MUTATIONS", 1_000_000))),
  mesh: (due) => soakMesh(due(fromEnvironment("MESH_RUNS", 1_000))),
  hostile: (due) => soakHostile(due(fromEnvironment("HOSTILE_ROUNDS", 1))),
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
      const seed = first + round * VARIANTS.length;
      const verdicts = await Promise.all(
        VARIANTS.map((variant, index) =>
          runAndVerify({
            ...variant,
            script: child.script,
            // Every round continues with the data of the last one.
            folder: join(folder, variant.name),
            seed: seed + index,
            kills: Math.floor((kills + index) / VARIANTS.length),
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

async function soakQuestions(next: Goal): Promise<void> {
  const first = seedFrom("QUESTIONS_SEED");
  let done = 0;
  let round = 0;
  for (let count = next(0, QUESTIONS_PER_ROUND); count > 0; count = next(done, QUESTIONS_PER_ROUND)) {
    const seed = first + round++;
    const env = { QUESTIONS_SEED: `${seed}`, QUESTIONS: `${count}` };
    await vitest("test/federation/questions.test.ts", env, `QUESTIONS_SEED=${seed}`);
    done += count;
    say(`questions: ${done} asked, QUESTIONS_SEED=${seed} QUESTIONS=${count}`);
  }
}

async function soakMutations(next: Goal): Promise<void> {
  const first = seedFrom("MUTATIONS_SEED");
  let done = 0;
  let round = 0;
  for (let count = next(0, MUTATIONS_PER_ROUND); count > 0; count = next(done, MUTATIONS_PER_ROUND)) {
    const seed = first + round++;
    const mesh = Math.floor(count * MESH_MUTATIONS);
    const run = (path: string, requests: number, proof: string) =>
      vitest(path, { MUTATIONS_SEED: `${seed}`, MUTATIONS: `${requests}` }, proof);
    await run("test/hostile/mutations.test.ts", count - mesh, `MUTATIONS_SEED=${seed}`);
    await run("test/mesh/mutation.test.ts", mesh, `seed ${seed}`);
    done += count;
    say(`mutations: ${done} requests, ${mesh} of the last ${count} at the mesh, MUTATIONS_SEED=${seed}`);
  }
}

async function soakMesh(next: Goal): Promise<void> {
  const first = seedFrom("MESH_SEED");
  const steps = fromEnvironment("MESH_STEPS", 300);
  let done = 0;
  for (let runs = next(0, MESH_RUNS_PER_ROUND); runs > 0; runs = next(done, MESH_RUNS_PER_ROUND)) {
    const seed = first + done;
    const env = { MESH_SEED: `${seed}`, MESH_RUNS: `${runs}`, MESH_STEPS: `${steps}` };
    await vitest("test/mesh/chaos.test.ts", env, `${runs} runs from MESH_SEED=${seed}`);
    done += runs;
    say(`mesh: ${done} runs of ${steps} steps, MESH_SEED=${seed} MESH_RUNS=${runs}`);
  }
}

async function soakHostile(next: Goal): Promise<void> {
  const seconds = fromEnvironment("HOSTILE_SECONDS", 60);
  const settle = fromEnvironment("HOSTILE_SETTLE", 60);
  for (let done = 0; next(done, 1) > 0; done += 1) {
    const env = { HOSTILE_SECONDS: `${seconds}`, HOSTILE_SETTLE: `${settle}` };
    const output = await vitest("test/hostile/hostile.test.ts", env, `attacks for ${seconds} s`);
    for (const line of new Set(output.match(/^hostile .*$/gm))) say(line);
  }
}

/**
 *
 * @param proof part of a test's title that shows that it used its parameters
 */
async function vitest(path: string, env: Readonly<Record<string, string>>, proof: string): Promise<string> {
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
    fail([output, `${path} did not run with its parameters: '${proof}' is missing`]);
  return output;
}

function seedFrom(variable: string): number {
  return fromEnvironment(variable, Math.floor(Math.random() * 2 ** 30));
}

function fromEnvironment(variable: string, otherwise: number): number {
  const given = process.env[variable];
  if (given === undefined) return otherwise;
  const number = Number(given);
  if (!Number.isSafeInteger(number) || number < 0)
    fail([`${variable} must be a whole number, not '${given}'`]);
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
  if (minutes !== undefined && !(minutes > 0)) fail(["--minutes must be a number greater than 0"]);
  const only = HARNESSES.find((harness) => harness === values.only);
  if (values.only !== undefined && only === undefined)
    fail([`--only must be one of: ${HARNESSES.join(", ")}`]);
  return { minutes, only };
}
