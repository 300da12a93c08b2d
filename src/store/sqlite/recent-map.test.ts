import fc from "fast-check";
import { expect, it } from "vitest";
import { RecentMap } from "./recent-map.js";

it("holds at most its capacity, and always the entry used last", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 10 }),
      fc.array(fc.record({ key: fc.nat(20), write: fc.boolean() }), { maxLength: 200 }),
      (capacity, steps) => {
        const map = new RecentMap<number, number>(capacity);
        const written = new Map<number, number>();
        for (const [time, { key, write }] of steps.entries()) {
          if (write) {
            map.set(key, time);
            written.set(key, time);
            expect(map.get(key)).toBe(time);
          } else {
            // It may have dropped the entry, but never returns an older value.
            expect([undefined, written.get(key)]).toContain(map.get(key));
          }
          expect(map.size).toBeLessThanOrEqual(capacity);
        }
      },
    ),
  );
});

it("keeps an entry that is used repeatedly while many others pass through", () => {
  const map = new RecentMap<string, number>(10);
  map.set("busy", 1);
  for (let other = 0; other < 1000; other += 1) {
    map.set(`other ${other}`, other);
    expect(map.get("busy")).toBe(1);
  }
});

it("removes a deleted entry from both generations", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  map.delete("a");
  map.delete("b");
  expect([map.get("a"), map.get("b")]).toEqual([undefined, undefined]);
});
