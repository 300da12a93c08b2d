/**
 * The library: messages, tasks, latency, processor time, large stores, start, recovery and memory.
 *
 *   npm run bench [-- --against <folder>] [--quick] [--rounds 5] [--only one,many,…] [--durability fast] [--profile <folder>]
 *
 * Every figure is the median of several rounds. Each round is a fresh process with a fresh data directory. Compared
 * builds alternate, because the speed of a shared machine changes from minute to minute. Compare within a run only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Build, buildIn } from "./builds.js";
import { besideOf, type Goal, ofRounds, Report } from "./report.js";
import { inTurns, measured, progress } from "./rounds.js";
import { type Figures, MANY, POSTS, type WorkloadName } from "./workloads.js";

const HELP = `npm run bench -- [options]

  --against <folder>   compare with another build of Mailroom: a folder with its own dist/index.js
  --quick              small amounts and two rounds: shows that everything runs, not how fast
  --rounds <n>         default 5
  --only <names>       some of: one, many, tasks, lone, posts, messages, stored, start, recovery, memory
  --durability <how>   fsync (default) or fast
  --profile <folder>   write a CPU profile of every process of this build
  --help
`;

const { values: flags } = parseArgs({
  options: {
    against: { type: "string" },
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    durability: { type: "string", default: "fsync" },
    profile: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const QUICK = flags.quick;
const ROUNDS = Number(flags.rounds ?? (QUICK ? 2 : 5));
const DURABILITY = flags.durability === "fast" ? "fast" : "fsync";
const WHERE = { store: "sqlite", durability: DURABILITY } as const;
const HERE = "this build";
const OTHER = "the other";

interface Figure {
  readonly key: string;
  readonly what: string;
  readonly unit: string;
  readonly goal?: Goal;
}

interface Part {
  readonly name: string;
  readonly workload: WorkloadName;
  readonly figures: readonly Figure[];
  /** Takes too long to repeat, or too long in versions to compare with. */
  readonly rounds?: number;
  readonly alone?: true;
}

const costs = (what: string, one: string): readonly Figure[] => [
  { key: "cpu", what: `${what}: CPU of one ${one}`, unit: "µs" },
  { key: "written", what: `${what}: written for one ${one}`, unit: "bytes" },
];

const posted = (count: number): string => `${count.toLocaleString("en")} messages posted to one task`;

const PARTS: readonly Part[] = [
  {
    name: "one",
    workload: "oneTask",
    figures: [
      { key: "rate", what: "messages, ping-pong in 1 task", unit: "/s" },
      ...costs("messages, ping-pong in 1 task", "message"),
      { key: "single", what: "single-row commits, one after the other", unit: "/s" },
      { key: "share", what: "messages in 1 task : single-row commits", unit: "times", goal: { atLeast: 4 } },
    ],
  },
  {
    name: "many",
    workload: "manyTasks",
    figures: [
      { key: "rate", what: "messages, ping-pong over 256 tasks", unit: "/s" },
      ...costs("messages, ping-pong over 256 tasks", "message"),
    ],
  },
  {
    name: "tasks",
    workload: "threeHopTasks",
    figures: [
      { key: "rate", what: `three-hop tasks, ${MANY} at once, ${MANY} users`, unit: "tasks/s" },
      { key: "p50", what: `three-hop tasks, ${MANY} at once: post to answer, p50`, unit: "ms" },
      { key: "p99", what: `three-hop tasks, ${MANY} at once: post to answer, p99`, unit: "ms" },
      ...costs(`three-hop tasks, ${MANY} at once`, "task"),
    ],
  },
  {
    name: "lone",
    workload: "loneTask",
    figures: [{ key: "p50", what: "three-hop tasks, 1 at once: post to answer, p50", unit: "ms" }],
  },
  {
    name: "start",
    workload: "start",
    figures: [
      { key: "milliseconds", what: "process start to first answer", unit: "ms" },
      { key: "cpu", what: "process start to first answer: CPU", unit: "ms" },
    ],
  },
  {
    name: "recovery",
    workload: "recovery",
    figures: [
      { key: "opened", what: `recovery of ${QUICK ? "1,000" : "10,000"} unfinished tasks: open`, unit: "ms" },
      {
        key: "ended",
        what: `recovery of ${QUICK ? "1,000" : "10,000"} unfinished tasks: all ended`,
        unit: "ms",
      },
    ],
  },
  {
    name: "posts",
    workload: "posts",
    // Versions with more than linear time take minutes.
    alone: true,
    figures: POSTS.flatMap((count) => [
      { key: `time${count}`, what: `${posted(count)}: time of one`, unit: "µs" },
      { key: `cpu${count}`, what: `${posted(count)}: CPU of one`, unit: "µs" },
    ]),
  },
  {
    name: "memory",
    workload: "memory",
    rounds: 1,
    figures: (QUICK ? [1_000, 10_000] : [10_000, 100_000]).map((count) => ({
      key: `after${count}`,
      what: `resident memory after ${count.toLocaleString("en")} completed tasks`,
      unit: "MB",
    })),
  },
];

const NO_FIGURES: readonly Figures[] = [];
const values = (figures: readonly Figures[], key: string): number[] =>
  figures.map((of) => of[key] ?? Number.NaN);

async function comparePart(report: Report, part: Part, here: Build, other: Build | undefined): Promise<void> {
  const contender = (name: string, { folder }: Build, profile?: string) => ({
    name,
    measure: () =>
      measured({ folder, workload: part.workload, durability: DURABILITY, quick: QUICK }, profile),
  });
  const contenders = [contender(HERE, here, flags.profile)];
  if (other !== undefined && part.alone === undefined) contenders.push(contender(OTHER, other));
  const results = await inTurns(part.name, Math.min(part.rounds ?? ROUNDS, ROUNDS), contenders);
  const ours = results.get(HERE) ?? NO_FIGURES;
  const theirs = results.get(OTHER);
  for (const { key, goal, ...figure } of part.figures) {
    report.add({
      ...WHERE,
      ...figure,
      ...ofRounds(values(ours, key)),
      ...(goal !== undefined && { goal }),
      ...(theirs !== undefined && { beside: besideOf(OTHER, values(ours, key), values(theirs, key)) }),
    });
  }
  if (part.name === "posts") addGrowth(report, ours);
}

/** With linear time, the cost per item is constant; processor time depends less on the machine's other load. */
function addGrowth(report: Report, figures: readonly Figures[]): void {
  const [few, , many] = POSTS;
  const growth = values(figures, `cpu${many}`).map(
    (value, n) => value / (values(figures, `cpu${few}`)[n] ?? 0),
  );
  report.add({
    ...WHERE,
    what: `CPU of one, ${many.toLocaleString("en")} posted : ${few.toLocaleString("en")} posted`,
    ...ofRounds(growth),
    unit: "times",
    goal: { atMost: 1.5 },
  });
}

interface Stored {
  readonly what: string;
  readonly things: string;
  readonly fill: WorkloadName;
  readonly workload: WorkloadName;
  readonly unit: string;
  readonly large: number;
}

const STORED: Readonly<Record<string, Stored>> = {
  messages: {
    what: "messages over 256 tasks",
    things: "messages",
    fill: "storeMessages",
    workload: "messagesOnTop",
    unit: "/s",
    large: QUICK ? 50_000 : 1_000_000,
  },
  stored: {
    what: `three-hop tasks, ${MANY} at once`,
    things: `tasks of ${MANY} users`,
    fill: "storeTasks",
    workload: "tasksOnTop",
    unit: "tasks/s",
    large: QUICK ? 20_000 : 100_000,
  },
};

/** The large store is reused in each round: it grows by a few percent, and copying it would keep the disk busy. */
async function compareStored(report: Report, name: string, { folder }: Build, kind: Stored): Promise<void> {
  const { what, things, fill, workload, unit, large } = kind;
  const directory = mkdtempSync(join(tmpdir(), "mailroom-bench-"));
  const common = { folder, durability: DURABILITY, quick: QUICK } as const;
  try {
    const contenders = [];
    for (const amount of [large, 1_000]) {
      const stored = join(directory, String(amount));
      progress(`${name}: storing ${amount.toLocaleString("en")} ${things}`);
      await measured({ ...common, workload: fill, stored, amount });
      const measure = () => measured({ ...common, workload, stored, amount }, flags.profile);
      contenders.push({ name: `${amount.toLocaleString("en")} ${things} stored`, measure });
    }
    const results = await inTurns(name, ROUNDS, contenders);
    const [manyName = "", fewName = ""] = results.keys();
    const of = (name: string, key: string): number[] => values(results.get(name) ?? NO_FIGURES, key);
    for (const { key, more, unit: measure } of [
      { key: "rate", more: "", unit },
      { key: "cpu", more: ": CPU of one", unit: "µs" },
      { key: "written", more: ": written for one", unit: "bytes" },
    ]) {
      const beside = besideOf(fewName, of(manyName, key), of(fewName, key));
      const many = ofRounds(of(manyName, key));
      report.add({ ...WHERE, what: `${what}, ${manyName}${more}`, ...many, unit: measure, beside });
    }
    const { ratio: value, ratioRange: range } = besideOf(fewName, of(manyName, "rate"), of(fewName, "rate"));
    report.add({
      ...WHERE,
      what: `${what}, many stored : few`,
      value,
      range,
      unit: "times",
      goal: { atLeast: 0.95 },
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const chosen = flags.only?.split(",");
  const isChosen = (name: string): boolean => chosen === undefined || chosen.includes(name);
  const here = buildIn(".");
  const other = flags.against === undefined ? undefined : buildIn(flags.against);
  const report = new Report("engine", {
    rounds: ROUNDS,
    quick: QUICK,
    ...(other !== undefined && { other }),
  });
  if (other !== undefined) console.log(`${OTHER}: ${other.folder}, version ${other.version}`);
  for (const part of PARTS) if (isChosen(part.name)) await comparePart(report, part, here, other);
  for (const [name, kind] of Object.entries(STORED)) {
    if (isChosen(name)) await compareStored(report, name, here, kind);
  }
  report.write();
}

if (flags.help) console.log(HELP);
else await main();
