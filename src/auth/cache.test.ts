import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ExpiringCache, fingerprint } from "./cache.js";

describe("ExpiringCache", () => {
  it("never holds more than its limit, and never returns an expired entry", () => {
    const step = fc.record({ key: fc.nat(8), lives: fc.integer({ min: -2, max: 20 }), passes: fc.nat(6) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
        let now = 0;
        const cache = new ExpiringCache<{ until: number }>(max, { now: () => now });
        const newest = new Map<string, number>();
        for (const { key, lives, passes } of steps) {
          const until = now + lives;
          cache.set(String(key), { until }, until);
          if (lives > 0) {
            newest.set(String(key), until);
            // What was just set is there.
            expect(cache.get(String(key))).toEqual({ until });
          }
          now += passes;
          expect(cache.size).toBeLessThanOrEqual(max);
          for (const [name, expected] of newest) {
            const found = cache.get(name);
            if (found !== undefined) expect([found.until, found.until > now]).toEqual([expected, true]);
          }
        }
      }),
    );
  });

  it("drops the least used first", () => {
    const cache = new ExpiringCache<object>(2, { now: () => 0 });
    cache.set("a", {}, 1);
    cache.set("b", {}, 1);
    cache.get("a");
    cache.set("c", {}, 1);
    expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([{}, undefined, {}]);
  });
});

describe("fingerprint", () => {
  it("does not hold the credential", () => {
    expect(fingerprint("open sesame")).not.toContain("sesame");
    expect(fingerprint("a")).not.toBe(fingerprint("b"));
  });
});
