import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/kit/seeded.js";
import { backoffDelay, parseRetryAfter } from "./backoff.js";

const policy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.25 };

describe("backoff", () => {
  it("lies between the nominal wait and what jitter takes off, and never above the cap", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer(), (failures, seed) => {
        const nominal = Math.min(60_000, 1_000 * 2 ** Math.min(failures - 1, 64));
        const delay = backoffDelay(policy, failures, seededRandom(seed).next);
        expect(delay).toBeGreaterThanOrEqual(Math.round(nominal * 0.75));
        expect(delay).toBeLessThanOrEqual(nominal);
      }),
    );
  });

  it("repeats itself with the same seed and not with another", () => {
    const draw = (seed: number): number[] => {
      const random = seededRandom(seed).next;
      return Array.from({ length: 8 }, (_, index) => backoffDelay(policy, index + 1, random));
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });
});

describe("Retry-After", () => {
  const now = Date.parse("2026-11-16T01:30:00Z");
  it.each([
    ["3", 3_000],
    ["0", 0],
    ["Mon, 16 Nov 2026 01:30:10 GMT", 10_000],
    ["Mon, 16 Nov 2026 01:29:00 GMT", 0],
    [String(now / 1_000 + 45), 45_000],
    ["1794792705", 105_000],
    ["86400", 300_000],
    ["soon", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("%j is a wait of %s ms", (text, wait) => expect(parseRetryAfter(text, now)).toBe(wait));
});
