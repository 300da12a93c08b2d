/**
 * Tests the simulation itself: each mistake in the sources must be found within a few hundred seeds.
 */
import { describe, expect, it } from "vitest";
import { OF_THE_KERNEL, OF_THE_SHELL } from "./mistakes.js";
import { buildMutant, firstViolation } from "./mutants.js";

describe.each([
  ["the kernel", OF_THE_KERNEL],
  ["the shell", OF_THE_SHELL],
])("mistakes in %s are found", (_, planted) => {
  it.each(planted)(
    "$name",
    async ({ mistakes, within = 300 }) => {
      const mutant = await buildMutant(mistakes);
      try {
        const violation = await firstViolation(mutant, within);
        expect(violation).toBeDefined();
        // Found by its behavior, not because the changed source is broken.
        expect(violation).not.toMatch(/^uncaught/);
      } finally {
        mutant.remove();
      }
    },
    600_000,
  );
});
