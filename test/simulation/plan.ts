/** The external operations on a simulated world, generated from the seed. */
import { type Random, seededRandom } from "../kit/seeded.js";

const PEOPLE = ["ulla", "otto", "ida"] as const;

/** The task of an operation: each user has a few of them. */
export interface AtTask {
  readonly who: string;
  readonly slot: number;
}

type What =
  | (AtTask & {
      readonly op: "post";
      readonly type: "request" | "interrupt" | "broadcast";
      /** Has a name that only one message may use. */
      readonly name?: number;
      readonly manual?: true;
      readonly to?: "remote" | "other swarm";
      /** Opens a task with a generated id. */
      readonly fresh?: true;
      /** Contains a value that is not JSON. */
      readonly bad?: true;
      readonly maxSteps?: number;
    })
  | (AtTask & { readonly op: "twice" })
  | { readonly op: "receive"; readonly slot: number }
  | (AtTask & { readonly op: "cancel" })
  | (AtTask & { readonly op: "answer"; readonly wrong: boolean })
  | (AtTask & { readonly op: "decide"; readonly how: number })
  | { readonly op: "bring"; readonly who: string }
  | (AtTask & { readonly op: "retry" })
  | (AtTask & { readonly op: "notify" })
  /** A command on which the rules throw, before or after their first entry. */
  | (AtTask & { readonly op: "nonsense"; readonly midway: boolean })
  | (AtTask & { readonly op: "step"; readonly agent: string })
  | { readonly op: "lend"; readonly ends: "answer" | "release" | "leave"; readonly ms: number }
  | (AtTask & { readonly op: "read"; readonly times: number; readonly thenPost: boolean })
  | (AtTask & { readonly op: "look" })
  | (AtTask & { readonly op: "follow"; readonly after: number; readonly ms: number })
  | { readonly op: "ask again"; readonly which: number }
  | (AtTask & { readonly op: "remove" })
  | { readonly op: "sweep"; readonly maxTasks: number }
  | { readonly op: "redefine" }
  | { readonly op: "outage"; readonly ms: number }
  | { readonly op: "jump"; readonly ms: number }
  | { readonly op: "crash" }
  | { readonly op: "break" }
  | { readonly op: "close"; readonly grace: number; readonly twice: boolean };

export type Operation = What & { readonly at: number };

/** Milliseconds during which operations and faults occur. */
export const LIVELY = 600;
const OPERATIONS = 32;
/** The task that users open in manual mode. */
const MANUAL = 3;

export function planOf(seed: number): Operation[] {
  const random = seededRandom(seed ^ 0x5bd1e995);
  const operations: Operation[] = [];
  for (let count = 0; count < OPERATIONS; count++) {
    const at = random.int(LIVELY);
    operations.push({ ...operation(random), at });
  }
  return operations.sort((a, b) => a.at - b.at);
}

function operation(random: Random): What {
  const at: AtTask = { who: random.pick(PEOPLE), slot: random.chance(0.1) ? MANUAL : random.int(3) };
  const dice = random.int(100);
  if (dice < 33) return post(random, at);
  if (dice < 35) return { op: "twice", ...at };
  if (dice < 38) return { op: "receive", slot: random.int(3) };
  if (dice < 41) return { op: "look", ...at };
  if (dice < 48) return { op: "cancel", ...at };
  if (dice < 54) {
    return random.chance(0.5)
      ? { op: "answer", wrong: random.chance(0.2), ...at }
      : { op: "decide", how: random.int(6), ...at };
  }
  if (dice < 56) return { op: "bring", who: at.who };
  if (dice < 57) return random.chance(0.5) ? { op: "retry", ...at } : { op: "notify", ...at };
  if (dice < 58) return { op: "nonsense", midway: random.chance(0.5), ...at };
  if (dice < 60) return { op: "step", agent: random.pick(["boss", "ann", "bob"]), ...at, slot: MANUAL };
  if (dice < 65) {
    return { op: "lend", ends: random.pick(["answer", "answer", "release", "leave"]), ms: random.int(60) };
  }
  if (dice < 73) return { op: "read", times: 1 + random.int(3), thenPost: random.chance(0.3), ...at };
  if (dice < 77) return { op: "follow", after: random.int(12), ms: random.int(300), ...at };
  if (dice < 79) return { op: "ask again", which: random.int(20) };
  if (dice < 82) return { op: "remove", ...at };
  if (dice < 84) return { op: "sweep", maxTasks: random.int(3) };
  if (dice < 86) return { op: "redefine" };
  if (dice < 89) return { op: "outage", ms: random.chance(0.1) ? 10_000 : random.int(400) };
  if (dice < 91) return { op: "jump", ms: random.int(2_000) - 1_000 };
  if (dice < 96) return { op: "crash" };
  if (dice < 97) return { op: "break" };
  return { op: "close", grace: random.pick([0, 10, 60, 1_000]), twice: random.chance(0.3) };
}

const TYPES = ["request", "request", "request", "interrupt", "broadcast"] as const;

function post(random: Random, at: AtTask): What {
  const type = random.pick<"request" | "interrupt" | "broadcast">(TYPES);
  const oddity = random.int(100);
  const plain = { op: "post", type, ...at } as const;
  if (oddity < 15) return { ...plain, name: random.int(4) };
  if (oddity < 21) return { ...plain, manual: true, slot: MANUAL };
  if (oddity < 27) return { ...plain, to: "remote" };
  if (oddity < 33) return { ...plain, to: "other swarm" };
  if (oddity < 39) return { ...plain, fresh: true };
  if (oddity < 41) return { ...plain, bad: true };
  if (oddity < 46) return { ...plain, maxSteps: random.int(4) };
  return plain;
}
