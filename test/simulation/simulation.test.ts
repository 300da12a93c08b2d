/**
 * Runs a thousand simulations, each from a seed. A failure is shrunk and names its seed:
 *
 *   SIMULATION_SEED=<seed>                          one simulation, with its trace if it fails
 *   SIMULATION_RUNS=<count>                         this many, from the first seed on
 *   SIMULATION_SEED=<seed> SIMULATION_RUNS=<count>  this many, from that seed on
 */
import { describe, expect, it } from "vitest";
import { report, shrink } from "./shrink.js";
import { type Summary, simulate } from "./simulate.js";

const { SIMULATION_SEED, SIMULATION_RUNS } = process.env;
const FIRST = Number(SIMULATION_SEED ?? 1);
const RUNS = Number(SIMULATION_RUNS ?? (SIMULATION_SEED === undefined ? 1_000 : 1));
/** Seeds per test, so that long runs show their progress. */
const CHUNK = 250;

/** Figures that must be high: a simulation without faults proves nothing. */
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

const LAW =
  "after any faults and restarts no acknowledged message is lost, no action runs twice, and every task ends";

// The title contains the number of seeds and the first one: `npm run soak` filters by it and so verifies both.
describe(`${LAW} (${RUNS} seeds from ${FIRST})`, () => {
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

  it.runIf(RUNS >= CHUNK)("every kind of operation and fault occurred", () => {
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
