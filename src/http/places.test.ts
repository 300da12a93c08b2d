import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HttpError } from "./errors.js";
import { Places } from "./places.js";

describe("Places", () => {
  it("never hands out more than there are, in all or to one caller, and takes each back once", () => {
    const step = fc.record({ caller: fc.constantFrom("a", "b", "c"), take: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const places = new Places("things", 5, 3);
        const held = new Map<string, (() => void)[]>([
          ["a", []],
          ["b", []],
          ["c", []],
        ]);
        const count = () => [...held.values()].reduce((sum, mine) => sum + mine.length, 0);
        for (const { caller, take } of steps) {
          const mine = held.get(caller) ?? [];
          const leave = take ? undefined : mine.pop();
          leave?.();
          leave?.();
          if (!take) continue;
          const mayTake = count() < 5 && mine.length < 3;
          if (mayTake) mine.push(places.take(caller));
          else expect(() => places.take(caller)).toThrow(HttpError);
          expect(places.taken).toBe(count());
        }
      }),
    );
  });
});
