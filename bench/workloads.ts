/** The library's workloads, each in its own process (measure.ts) and only through the public library. */
import { cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mailroom, SwarmDefinition } from "../src/index.js";
import type { Durability } from "../src/store/index.js";
import { type Library, openerOf } from "./builds.js";
import { seconds, singleCommits } from "./commits.js";
import { percentile } from "./report.js";
import { echo, pingPong, QUESTION, silence, threeHops } from "./swarms.js";

export interface Surroundings {
  readonly library: Library;
  /** An empty directory; the caller removes it. */
  readonly directory: string;
  readonly durability: Durability;
  readonly quick: boolean;
  /** An existing data directory. */
  readonly stored?: string;
  /** How much a data directory should contain. */
  readonly amount?: number;
  /** A swarm file with agents that do three hops. */
  readonly swarmFile?: string;
}

export type Figures = Readonly<Record<string, number>>;

/** Number of users of three-hop tasks, and of concurrent tasks. */
export const MANY = 64;
const TASKS = 256;
/** Milliseconds of warm-up before the measurement. */
const WARM_UP = 1_000;

async function withMailroom<T>(
  surroundings: Surroundings,
  swarm: SwarmDefinition,
  use: (mailroom: Mailroom) => Promise<T>,
  data = mkdtempSync(join(surroundings.directory, "data-")),
): Promise<T> {
  const { library, durability } = surroundings;
  const mailroom = await library.Mailroom.open({
    swarm,
    data,
    durability,
    limits: TURNS,
  });
  try {
    return await use(mailroom);
  } finally {
    await mailroom.close();
  }
}

/** Older builds also have a limit per caller; others ignore it. */
const TURNS: Record<string, number> = { turns: 1024, turnsPerInstance: 1024 };

async function warmUp(work: () => Promise<unknown>): Promise<void> {
  const start = performance.now();
  do await work();
  while (performance.now() - start < WARM_UP);
}

interface Spent {
  readonly seconds: number;
  /** Microseconds of processor time, all threads together. */
  readonly cpu: number;
  /** Bytes that the process wrote; NaN where the system does not report it. */
  readonly written: number;
}

async function spentOn(work: () => Promise<unknown>): Promise<Spent> {
  const writtenBefore = writtenSoFar();
  const cpuBefore = process.cpuUsage();
  const took = await seconds(work);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { seconds: took, cpu: user + system, written: writtenSoFar() - writtenBefore };
}

function writtenSoFar(): number {
  if (!existsSync("/proc/self/io")) return Number.NaN;
  return Number(/^wchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

const each = ({ seconds: took, cpu, written }: Spent, count: number): Figures => ({
  rate: count / took,
  cpu: cpu / count,
  written: written / count,
});

async function countTo(mailroom: Mailroom, user: string, hops: number): Promise<void> {
  const answer = await mailroom.user(user).ask("0");
  if (answer.status !== "completed" || answer.response !== String(hops))
    throw new Error(JSON.stringify(answer));
}

async function countInMany(mailroom: Mailroom, tasks: number, hops: number, users = 16): Promise<void> {
  for (let done = 0; done < tasks; done += TASKS) {
    const batch = Math.min(TASKS, tasks - done);
    await Promise.all(Array.from({ length: batch }, (_, n) => countTo(mailroom, `user-${n % users}`, hops)));
  }
}

/** Asks a number of questions, some concurrently, each caller as its own user. Milliseconds, ascending. */
async function askMany(mailroom: Mailroom, questions: number, atOnce: number): Promise<number[]> {
  const latencies: number[] = [];
  let left = questions;
  const caller = async (n: number): Promise<void> => {
    const user = mailroom.user(`user-${n}`);
    while (left-- > 0) {
      const start = performance.now();
      const { status } = await user.ask(QUESTION);
      if (status !== "completed") throw new Error(`a task is ${status}`);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, n) => caller(n)));
  return latencies.sort((a, b) => a - b);
}

/** Measures the disk before and after, because a shared disk changes its speed. */
async function oneTask(surroundings: Surroundings): Promise<Figures> {
  const { library, durability, quick } = surroundings;
  const hops = quick ? 1_000 : 4_000;
  const tasks = quick ? 2 : 5;
  const swarm = pingPong(library, hops);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => countTo(mailroom, "ann", hops)));
  const commits = () => singleCommits(openerOf(library), durability, quick ? 500 : 2_000);
  const before = await commits();
  const spent = await withMailroom(surroundings, swarm, (mailroom) =>
    spentOn(async () => {
      for (let n = 0; n < tasks; n++) await countTo(mailroom, "ann", hops);
    }),
  );
  const single = (before + (await commits())) / 2;
  const figures = each(spent, tasks * hops);
  return { ...figures, single, share: (tasks * hops) / spent.seconds / single };
}

async function manyTasks(surroundings: Surroundings): Promise<Figures> {
  const hops = surroundings.quick ? 100 : 400;
  const swarm = pingPong(surroundings.library, hops);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => countInMany(mailroom, 32, hops)));
  const spent = await withMailroom(surroundings, swarm, (mailroom) =>
    spentOn(() => countInMany(mailroom, TASKS, hops)),
  );
  return each(spent, TASKS * hops);
}

async function threeHopTasks(surroundings: Surroundings): Promise<Figures> {
  const count = surroundings.quick ? 2_000 : 12_000;
  const swarm = threeHops(surroundings.library);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => askMany(mailroom, 1_000, MANY)));
  return withMailroom(surroundings, swarm, async (mailroom) => {
    let latencies: number[] = [];
    const spent = await spentOn(async () => {
      latencies = await askMany(mailroom, count, MANY);
    });
    return { ...each(spent, count), p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
  });
}

async function loneTask(surroundings: Surroundings): Promise<Figures> {
  const swarm = threeHops(surroundings.library);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => askMany(mailroom, 500, 1)));
  const latencies = await withMailroom(surroundings, swarm, (mailroom) =>
    askMany(mailroom, surroundings.quick ? 200 : 1_000, 1),
  );
  return { p50: percentile(latencies, 0.5) };
}

/** Everything that many users post to one task before the first answer. */
async function posts(surroundings: Surroundings): Promise<Figures> {
  const swarm = echo(surroundings.library);
  const largest = Math.max(...POSTS);
  const post = (count: number): Promise<Spent> =>
    withMailroom(surroundings, swarm, async (mailroom) => {
      const ann = mailroom.user("ann");
      const { taskId } = await ann.ask("first");
      return spentOn(async () => {
        const posted = await Promise.all(
          Array.from({ length: count }, (_, n) => ann.post(`message ${n}`, { taskId })),
        );
        await Promise.all(posted.map(({ outcome }) => outcome));
      });
    });
  for (let pass = 0; pass < (surroundings.quick ? 1 : 4); pass++) await post(largest);
  const figures: Record<string, number> = {};
  const add = (name: string, value: number): void => {
    figures[name] = (figures[name] ?? 0) + value / (2 * largest);
  };
  // The same number of each, forwards and backwards, because a warm process is faster.
  for (const count of [...POSTS, ...POSTS.toReversed()]) {
    for (let left = largest; left > 0; left -= count) {
      const spent = await post(count);
      add(`time${count}`, spent.seconds * 1e6);
      add(`cpu${count}`, spent.cpu);
    }
  }
  return figures;
}

export const POSTS = [1_000, 2_500, 5_000] as const;

/** Fills a data directory; nothing is measured. */
async function storeMessages(surroundings: Surroundings): Promise<Figures> {
  const { library, amount = 0, stored } = surroundings;
  const use = (mailroom: Mailroom) => countInMany(mailroom, Math.ceil(amount / 100), 100, TASKS);
  await withMailroom({ ...surroundings, durability: "fast" }, pingPong(library, 100), use, stored);
  return {};
}

async function storeTasks(surroundings: Surroundings): Promise<Figures> {
  const { library, amount = 0, stored } = surroundings;
  const use = (mailroom: Mailroom) => askMany(mailroom, amount, MANY);
  await withMailroom({ ...surroundings, durability: "fast" }, threeHops(library), use, stored);
  return {};
}

/** A small store would grow with the measurement, so a copy is used. A large one is used directly. */
const SMALL = 10_000;

function dataToUse({ directory, stored = "", amount = 0 }: Surroundings): string {
  if (amount > SMALL) return stored;
  const copy = join(directory, "copy");
  cpSync(stored, copy, { recursive: true });
  return copy;
}

async function messagesOnTop(surroundings: Surroundings): Promise<Figures> {
  const hops = 100;
  const tasks = surroundings.quick ? TASKS : 4 * TASKS;
  const swarm = pingPong(surroundings.library, hops);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => countInMany(mailroom, TASKS, hops)));
  const measured = async (mailroom: Mailroom): Promise<Spent> => {
    await countInMany(mailroom, TASKS / 4, hops);
    return spentOn(() => countInMany(mailroom, tasks, hops));
  };
  return each(await withMailroom(surroundings, swarm, measured, dataToUse(surroundings)), tasks * hops);
}

async function tasksOnTop(surroundings: Surroundings): Promise<Figures> {
  const count = surroundings.quick ? 2_000 : 12_000;
  const swarm = threeHops(surroundings.library);
  await warmUp(() => withMailroom(surroundings, swarm, (mailroom) => askMany(mailroom, 1_000, MANY)));
  const measured = async (mailroom: Mailroom): Promise<Spent> => {
    await askMany(mailroom, 500, MANY);
    return spentOn(() => askMany(mailroom, count, MANY));
  };
  return each(await withMailroom(surroundings, swarm, measured, dataToUse(surroundings)), count);
}

/** Every build can load it by the names of the bundled agents. */
const EXAMPLE_SWARM = JSON.stringify([
  {
    name: "demo",
    version: "1.0.0",
    entrypoint: "supervisor",
    agents: [
      {
        name: "supervisor",
        factory: "mail:example/supervisor",
        comm_targets: ["math"],
        enable_entrypoint: true,
        can_complete_tasks: true,
        agent_params: {},
      },
      {
        name: "math",
        factory: "mail:example/math",
        comm_targets: ["supervisor"],
        actions: ["calculate"],
        agent_params: {},
      },
    ],
    action_imports: ["mail:example/calculate"],
  },
]);

/** The process has just started: measures everything since then. */
async function start(surroundings: Surroundings): Promise<Figures> {
  const [loaded] = await surroundings.library.loadSwarmsFromText(EXAMPLE_SWARM);
  if (loaded === undefined) throw new Error("the example swarm could not be loaded");
  const answer = await withMailroom(surroundings, loaded.definition, (mailroom) =>
    mailroom.user("ann").ask("What is 2 + 2?"),
  );
  if (answer.status !== "completed") throw new Error(`the task is ${answer.status}`);
  const { user, system } = process.cpuUsage();
  return { milliseconds: performance.now(), cpu: (user + system) / 1000 };
}

/** Tasks that a process left in the middle of a turn: time until they can be queried, and until all have ended. */
async function recovery(surroundings: Surroundings): Promise<Figures> {
  const { library, directory, quick } = surroundings;
  const count = quick ? 1_000 : 10_000;
  const data = join(directory, "left");
  const first = await library.Mailroom.open({ swarm: silence(library), data, durability: "fast" });
  for (let done = 0; done < count; done += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, n) => first.user(`user-${n}`).post(QUESTION)));
  }
  await first.close({ grace: 0 });
  let left = count;
  let ended = (): void => {};
  const all = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const swarm = echo(library, () => {
    if (--left === 0) ended();
  });
  const begin = performance.now();
  return withMailroom(
    surroundings,
    swarm,
    async () => {
      const opened = performance.now() - begin;
      await all;
      return { opened, ended: performance.now() - begin };
    },
    data,
  );
}

/** With the default limits, under which tasks wait for each other. */
async function memory({ library, directory, quick }: Surroundings): Promise<Figures> {
  const data = join(directory, "memory");
  const mailroom = await library.Mailroom.open({ swarm: threeHops(library), data, durability: "fast" });
  const figures: Record<string, number> = {};
  let done = 0;
  for (const goal of quick ? [1_000, 10_000] : [10_000, 100_000]) {
    await askMany(mailroom, goal - done, 500);
    done = goal;
    globalThis.gc?.();
    figures[`after${goal}`] = process.memoryUsage().rss / 2 ** 20;
  }
  await mailroom.close();
  return figures;
}

/** Tasks of a swarm file, with the default limits: a server's work without the server. */
async function swarmFileTasks(surroundings: Surroundings): Promise<Figures> {
  const { library, directory, durability, quick, swarmFile = "" } = surroundings;
  const { definition: swarm } = await library.loadSwarm(swarmFile);
  const mailroom = await library.Mailroom.open({ swarm, data: join(directory, "file"), durability });
  const atOnce = surroundings.amount ?? MANY;
  await askMany(mailroom, (quick ? 10 : 125) * atOnce, atOnce);
  const count = (quick ? 20 : 200) * atOnce;
  const spent = await spentOn(() => askMany(mailroom, count, atOnce));
  await mailroom.close();
  return each(spent, count);
}

export const WORKLOADS = {
  oneTask,
  manyTasks,
  threeHopTasks,
  loneTask,
  posts,
  storeMessages,
  messagesOnTop,
  storeTasks,
  tasksOnTop,
  start,
  recovery,
  memory,
  swarmFileTasks,
} as const satisfies Record<string, (surroundings: Surroundings) => Promise<Figures>>;

export type WorkloadName = keyof typeof WORKLOADS;
