/**
 * A thousand small lives, each from a seed. A failure names its seed and is made small first:
 *
 *   SIMULATION_SEED=<seed>                          one life, with its trace if it fails
 *   SIMULATION_RUNS=<count>                         this many, from the first seed on
 *   SIMULATION_SEED=<seed> SIMULATION_RUNS=<count>  this many, from that seed on
 */
import { describe, expect, it } from "vitest";
import { report, shrink } from "./shrink.js";
import { type Summary, simulate } from "./simulate.js";

const { SIMULATION_SEED, SIMULATION_RUNS } = process.env;
const FIRST = Number(SIMULATION_SEED ?? 1);
const RUNS = Number(SIMULATION_RUNS ?? (SIMULATION_SEED === undefined ? 1_000 : 1));
/** Seeds of one test: long runs show how far they are. */
const CHUNK = 250;

/** What must have happened often: a simulation in which nothing goes wrong shows nothing. */
const HAPPENED = [
  "acknowledged",
  "outcomes",
  "reads",
  "refusals",
  "turnsAhead",
  "actions",
  "snapshots",
  "removed",
  "lendings",
  "deaths",
  "inFlight",
  "closes",
  "transient",
  "outage",
  "unknown writes",
  "refused",
  "final",
  "failed read",
];

describe("after any faults and restarts nothing acknowledged is lost, nothing is done twice, and every task ends", () => {
  const total = new Map<string, number>();
  const chunks = Array.from({ length: Math.ceil(RUNS / CHUNK) }, (_, index) => FIRST + index * CHUNK);

  it.each(chunks)(
    "seeds from %i",
    async (from) => {
      for (let seed = from; seed < Math.min(from + CHUNK, FIRST + RUNS); seed++) {
        const summary = await simulate(seed).catch(async (error: unknown): Promise<Summary> => {
          const shrunk = await shrink(seed);
          throw new Error(shrunk === undefined ? `SIMULATION_SEED=${seed}: ${error}` : report(shrunk));
        });
        add(total, summary);
      }
    },
    600_000,
  );

  it.runIf(RUNS >= CHUNK)("the dice have really fallen", () => {
    console.log(`simulation: ${JSON.stringify(Object.fromEntries(total))}`);
    for (const figure of HAPPENED) expect.soft(total.get(figure), figure).toBeGreaterThan(RUNS / 10);
  });
});

function add(total: Map<string, number>, { fates, ...figures }: Summary): void {
  const { unknown, ...others } = fates;
  for (const [name, count] of Object.entries({ ...figures, ...others, "unknown writes": unknown })) {
    total.set(name, (total.get(name) ?? 0) + count);
  }
}
