import fc from "fast-check";
import { expect, it } from "vitest";
import { formatTime, parseCanonicalTime } from "./time.js";

const digits = (length: number, max: number) =>
  fc.integer({ min: 0, max }).map((number) => String(number).padStart(length, "0"));

it("reads the times that it writes, and rejects days, hours, minutes and seconds that do not exist", () => {
  const spelled = fc
    .tuple(
      digits(4, 9_999),
      digits(2, 13),
      digits(2, 32),
      digits(2, 25),
      digits(2, 61),
      digits(2, 61),
      digits(3, 999),
    )
    .map(
      ([year, month, day, hour, minute, second, ms]) =>
        `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z`,
    );
  fc.assert(
    fc.property(spelled, (text) => {
      const date = new Date(text);
      const exists = !Number.isNaN(date.getTime()) && formatTime(date.getTime()) === text;
      expect(parseCanonicalTime(text)).toBe(exists ? date.getTime() : undefined);
    }),
    { numRuns: 2_000, examples: [["2026-02-30T00:00:00.000Z"], ["2026-02-28T24:00:00.000Z"]] },
  );
});
