import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MailroomError } from "../base/index.js";
import { Slots } from "./slots.js";

describe("Places", () => {
  it("slots never exceed the total or per-caller limit, and each is released once", () => {
    const step = fc.record({ caller: fc.constantFrom("a", "b", "c"), take: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const slots = new Slots("things", 5, 3);
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
          if (mayTake) mine.push(slots.take(caller));
          else expect(() => slots.take(caller)).toThrow(MailroomError);
          expect(slots.taken).toBe(count());
        }
      }),
    );
  });
});
