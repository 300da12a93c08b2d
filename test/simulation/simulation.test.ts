/**
 * Hundreds of small lives, each from a seed. A failure names its seed: run it again with `SIMULATION_SEED=<seed>`, or
 * many more of them with `SIMULATION_RUNS=<count>`.
 */
import { expect, it } from "vitest";
import { openSqliteStore } from "../../src/store/index.js";
import { type Life, simulate } from "./simulate.js";

const FIRST = Number(process.env.SIMULATION_SEED ?? 1);
const RUNS = process.env.SIMULATION_SEED === undefined ? Number(process.env.SIMULATION_RUNS ?? 200) : 1;
/** Worlds that share a disk, one after the other. */
const PER_DISK = 25;

it("after any faults and restarts nothing acknowledged is lost, nothing is done twice, and every task ends", async () => {
  const total = { crashes: 0, acknowledged: 0, entries: 0 };
  for (let first = FIRST; first < FIRST + RUNS; first += PER_DISK) {
    const disk = await openSqliteStore({ path: ":memory:" });
    for (let seed = first; seed < Math.min(first + PER_DISK, FIRST + RUNS); seed++) {
      const life = await simulate(seed, disk).catch((cause: unknown): Life => {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`SIMULATION_SEED=${seed}: ${reason}`, { cause });
      });
      total.crashes += life.crashes;
      total.acknowledged += life.acknowledged;
      total.entries += life.entries;
    }
    await disk.close();
  }
  // The dice must really have fallen: a simulation in which nothing goes wrong shows nothing.
  expect(total.crashes).toBeGreaterThan(RUNS);
  expect(total.acknowledged).toBeGreaterThan(RUNS);
}, 600_000);
