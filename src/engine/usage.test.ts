import { describe, expect, it } from "vitest";
import { cleanUsage, totalsOf } from "./usage.js";

describe("usage that an agent reports", () => {
  it("counts fractions of calls and tokens as whole ones, and keeps the cost", () => {
    const clean = cleanUsage({ calls: 1.5, inputTokens: 10.2, outputTokens: 0.1, cost: 0.25 });
    expect(clean).toEqual({ calls: 2, inputTokens: 11, outputTokens: 1, cost: 0.25 });
  });

  it("of journals of earlier versions counts the same way", () => {
    expect(totalsOf({ calls: 1.5, inputTokens: 10.2 })).toMatchObject({ calls: 2, inputTokens: 11 });
  });
});
