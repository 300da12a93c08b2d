/**
 * The overhead of an agent system besides its models: the same three-hop hand-off in Mailroom, LangGraph.js and the
 * OpenAI Agents SDK, with a model that answers at once, and six slow tools in one answer. The systems alternate, each in a fresh process, several
 * times; the medians are reported.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { percentile, Report } from "../report.js";
import { TOOL_TIME, TOOLS } from "./contender.js";
import type { Measured } from "./run.js";
import {
  LANGGRAPH,
  LANGGRAPH_FSYNC,
  MAILROOM_FAST,
  MAILROOM_FSYNC,
  OPENAI_AGENTS,
  SYSTEMS,
} from "./systems.js";

const QUICK = process.argv.includes("--quick");
const ROUNDS = QUICK ? 3 : 7;
const TIME = QUICK ? 500 : 2_000;

/**
 * The systems that Mailroom is compared with: first the one with the same guarantees, then those with weaker ones.
 */
const RIVALS: Readonly<Record<string, readonly string[]>> = {
  [MAILROOM_FSYNC]: [LANGGRAPH_FSYNC, LANGGRAPH, OPENAI_AGENTS],
  [MAILROOM_FAST]: [LANGGRAPH, OPENAI_AGENTS],
};

interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly of: (measured: Measured) => number;
  /** Whether Mailroom's figure is compared with the others'. */
  readonly compared?: true;
}

const FIGURES: readonly Figure[] = [
  { what: "overhead per turn", unit: "ms", of: ({ overheadPerTurn }) => overheadPerTurn, compared: true },
  { what: "processor time per turn", unit: "ms", of: ({ workPerTurn }) => workPerTurn, compared: true },
  { what: "three-hop tasks", unit: "tasks/s", of: ({ tasksPerSecond }) => tasksPerSecond },
];

function measure(index: number, atOnce: number): Measured {
  const script = fileURLToPath(new URL("./run.js", import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [script, String(index), String(atOnce), String(TIME)],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

function noteOn(name: string, medians: ReadonlyMap<string, number>): string {
  const ours = medians.get(name) ?? Number.NaN;
  return (RIVALS[name] ?? [])
    .map((rival) => `${rival}: ${((medians.get(rival) ?? Number.NaN) / ours).toFixed(1)} ×`)
    .join("; ");
}

const report = new Report("agents");
for (const atOnce of [1, 16]) {
  const runs = SYSTEMS.map((): Measured[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, measured] of runs.entries()) measured.push(measure(index, atOnce));
  }
  for (const { what, unit, of, compared } of FIGURES) {
    const medians = new Map(SYSTEMS.map(({ name }, index) => [name, median((runs[index] ?? []).map(of))]));
    for (const { name, store, durability } of SYSTEMS) {
      report.add({
        what: `${what}, ${atOnce} at once: ${name}`,
        store,
        durability,
        value: medians.get(name) ?? Number.NaN,
        unit,
        ...(compared === true && { note: noteOn(name, medians) }),
      });
    }
  }
}
for (const [index, { name, store, durability }] of SYSTEMS.entries()) {
  const value = measure(index, 0).tools ?? Number.NaN;
  const what = `${TOOLS} tools of ${TOOL_TIME} ms in one answer: ${name}`;
  report.add({ what, store, durability, value, unit: "ms" });
}
report.write();
