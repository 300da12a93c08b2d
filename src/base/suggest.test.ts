import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { didYouMean, editDistance, nearest } from "./suggest.js";

describe("editDistance", () => {
  it("counts insertions, deletions, substitutions and swaps", () => {
    expect(editDistance("weather", "weather")).toBe(0);
    expect(editDistance("weather", "wether")).toBe(1);
    expect(editDistance("weather", "waether")).toBe(1);
    expect(editDistance("kitten", "sitting")).toBe(3);
    expect(editDistance("", "abc")).toBe(3);
  });

  it("is the same in both directions and never more than the longer text", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});

describe("suggestions", () => {
  it("are the nearest name, if one is near", () => {
    expect(nearest("wether", ["math", "weather"])).toBe("weather");
    expect(nearest("Weather", ["weather"])).toBe("weather");
    expect(nearest("match", ["contains", "matches"])).toBe("matches");
    expect(nearest("finance", ["math", "weather"])).toBeUndefined();
  });

  it("list what there is otherwise", () => {
    expect(didYouMean("wether", ["weather"])).toBe("did you mean 'weather'?");
    expect(didYouMean("finance", ["math", "weather"])).toBe("known: 'math', 'weather'");
    expect(didYouMean("finance", [])).toBeUndefined();
  });
});
