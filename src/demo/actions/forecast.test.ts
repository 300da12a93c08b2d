import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeForecast, resolveDate, simulateForecast } from "./forecast.js";

/** A Monday. */
const NOW = new Date("2026-03-02T23:30:00Z");

describe("the simulated forecast", () => {
  it("depends only on the location and the day", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.date({ noInvalidDate: true }), (place, day) => {
        const date = day.toISOString().slice(0, 10);
        const forecast = simulateForecast(place, date);
        expect(simulateForecast(`  ${place} `, date)).toEqual(forecast);
        expect(forecast.high).toBeGreaterThan(forecast.low);
      }),
    );
    const days = new Set(
      ["02", "03", "04", "05"].map((day) => describeForecast(simulateForecast("Oslo", `2026-03-${day}`))),
    );
    expect(days.size).toBe(4);
  });

  it("always states that it is simulated", () => {
    expect(describeForecast(simulateForecast("Kyoto", "2026-03-03"))).toMatch(
      /^Kyoto on 2026-03-03: .*°C.*\(simulated data\)$/,
    );
    expect(describeForecast(simulateForecast("Kyoto", "2026-03-03"), false)).toMatch(/°F.*mph.*simulated/);
  });
});

describe("resolveDate", () => {
  it.each([
    ["today", "2026-03-02"],
    ["Tomorrow", "2026-03-03"],
    ["in 3 days", "2026-03-05"],
    ["friday", "2026-03-06"],
    ["next monday", "2026-03-09"],
    ["2026-03-16", "2026-03-16"],
  ])("%s", (day, date) => {
    expect(resolveDate(day, NOW)).toBe(date);
  });

  it.each([
    ["someday", /not a day/],
    ["2026-02-30", /not a day/],
    ["2026-03-01", /cover today/],
    ["in 15 days", /14 days ahead/],
  ])("rejects %s", (day, message) => {
    expect(() => resolveDate(day, NOW)).toThrow(message);
  });
});
