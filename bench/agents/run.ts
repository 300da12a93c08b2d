/**
 * One measurement of one system, in its own process: `run.js <index of the system> <concurrency> <milliseconds>`. With a
 * concurrency of 0, the task with slow tools.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Contender, FORECAST, type Surroundings, TURNS } from "./contender.js";
import { SYSTEMS } from "./systems.js";

/** Tasks with slow tools after the first, which warms up. */
const TOOL_RUNS = 3;

export interface Measured {
  /** Milliseconds of the task with slow tools. */
  readonly tools?: number;
  readonly tasksPerSecond: number;
  /** Milliseconds from request to answer, without the model, per turn. */
  readonly overheadPerTurn: number;
  /** Milliseconds of processor time per turn: independent of the machine's other load. */
  readonly workPerTurn: number;
}

const [index = 0, atOnce = 1, time = 1_000] = process.argv.slice(2).map(Number);
const system = SYSTEMS[index];
if (system === undefined) throw new Error(`there is no system ${index}`);
const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
const { open }: { open(surroundings: Surroundings): Promise<Contender> } = await import(system.module.href);
const contender = await open({ directory, fsync: system.fsync });

async function load(milliseconds: number): Promise<{ tasks: number; waited: number; took: number }> {
  const begin = performance.now();
  let tasks = 0;
  let waited = 0;
  const caller = async (n: number): Promise<void> => {
    while (performance.now() - begin < milliseconds) {
      const start = performance.now();
      const answer = await contender.run(n);
      if (answer !== FORECAST) throw new Error(`${system?.name} answered: ${answer}`);
      waited += performance.now() - start;
      tasks++;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, n) => caller(n)));
  return { tasks, waited, took: performance.now() - begin };
}

async function timeOfTools(): Promise<number> {
  const start = performance.now();
  const answer = await contender.runTools();
  if (answer !== FORECAST) throw new Error(`${system?.name} answered: ${answer}`);
  return performance.now() - start;
}

async function finish(measured: Partial<Measured>): Promise<never> {
  await contender.close();
  rmSync(directory, { recursive: true, force: true });
  console.log(JSON.stringify(measured));
  process.exit();
}

if (atOnce === 0) {
  await timeOfTools();
  const times: number[] = [];
  for (let n = 0; n < TOOL_RUNS; n++) times.push(await timeOfTools());
  await finish({ tools: times.sort((a, b) => a - b)[1] ?? Number.NaN });
}

// Warm up the compilers.
await load(time);
const before = contender.modelTime();
const cpuBefore = process.cpuUsage();
const { tasks, waited, took } = await load(time);
const cpu = process.cpuUsage(cpuBefore);
const inModel = contender.modelTime() - before;
await finish({
  tasksPerSecond: (tasks * 1_000) / took,
  overheadPerTurn: (waited - inModel) / (tasks * TURNS),
  workPerTurn: ((cpu.user + cpu.system) / 1_000 - inModel) / (tasks * TURNS),
});
