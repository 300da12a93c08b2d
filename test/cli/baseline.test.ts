import { describe, expect, it } from "vitest";
import { currentBaseline, storedBaseline } from "../../scripts/baseline.js";

describe("the public surface", () => {
  it("equals the recorded HTTP interface, help texts and settings", async () => {
    const current = await currentBaseline();
    expect(Object.keys(current)).toHaveLength(3);
    // After an intended change: npx tsx scripts/baseline.ts
    for (const [name, text] of Object.entries(current)) expect(text, name).toBe(storedBaseline(name));
  });
});
