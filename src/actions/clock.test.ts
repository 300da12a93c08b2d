import { expect, it } from "vitest";
import { actionContext } from "../testing/action-context.js";
import { clockAction } from "./clock.js";

const clock = clockAction({ now: () => new Date("2026-03-02T22:30:00Z") });

it("returns the time in UTC or in a time zone", async () => {
  expect(await clock.run({}, actionContext())).toBe("Monday, 2026-03-02 22:30:00 in UTC (GMT+00:00)");
  expect(await clock.run({ time_zone: "Asia/Tokyo" }, actionContext())).toBe(
    "Tuesday, 2026-03-03 07:30:00 in Asia/Tokyo (GMT+09:00)",
  );
  expect(await clock.check({ time_zone: "Middle/Earth" })).toMatchObject({ ok: false });
});
