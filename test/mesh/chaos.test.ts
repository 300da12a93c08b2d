/** The mesh under random transfers, kicks, key changes, restarts and cuts. `npm run soak -- --only mesh` runs more. */
import { describe, expect, it, vi } from "vitest";
import { runChaos } from "./chaos.js";

const seed = Number(process.env.MESH_SEED ?? 1);
const runs = Number(process.env.MESH_RUNS ?? 4);
const steps = Number(process.env.MESH_STEPS ?? 80);

vi.setConfig({ testTimeout: 30 * 60_000 });

describe(`${runs} runs from MESH_SEED=${seed}`, () => {
  it.each(Array.from({ length: runs }, (_, index) => seed + index))(
    "[MESH-M-2] nothing accepted is lost, no lane is stuck and all members agree once everybody is back: seed %i",
    async (one) => {
      const { violations, counts } = await runChaos(one, steps);
      expect(counts.messages).toBeGreaterThan(steps / 10);
      expect({ seed: one, counts, violations }).toEqual({ seed: one, counts, violations: [] });
    },
  );
});
