import { describe, expect, it } from "vitest";
import { describeNumbers, numbersIn } from "./describe-numbers.js";

describe("describing numbers", () => {
  it("numbersIn finds numbers and skips versions, dates and identifiers", () => {
    expect(numbersIn("12, -3.5 and 7; not v2, 2026-03-02 or a1")).toEqual([12, -3.5, 7]);
  });

  it("describeNumbers returns count, sum, mean, median and range", () => {
    expect(describeNumbers([9, 1, 2])).toBe("count 3, sum 12, mean 4, median 2, smallest 1, largest 9");
    expect(describeNumbers([4, 1, 2, 10])).toContain("median 3,");
    expect(describeNumbers([])).toBeUndefined();
  });
});
