/** The clock as an action, because models do not have the current time. */
import { z } from "zod";
import { defineAction } from "./define.js";

const ClockArguments = z.strictObject({
  time_zone: z
    .string()
    .min(1)
    .max(64)
    .refine(isTimeZone, { message: "is not a time zone; use for example Europe/Lisbon" })
    .optional()
    .describe("For example Europe/Lisbon. Default: UTC"),
});

/**
 * Makes an action that returns the current time.
 * @example
 * defineAgent({ name: "clerk", actions: [clockAction()], run });
 */
export function clockAction(options: { readonly name?: string; readonly now?: () => Date } = {}) {
  const now = options.now ?? (() => new Date());
  return defineAction({
    name: options.name ?? "current_time",
    description: "Returns the current date, time and day of the week.",
    parameters: ClockArguments,
    idempotent: true,
    run: ({ time_zone: timeZone = "UTC" }) => describeTime(now(), timeZone),
  });
}

/** Assembled from parts, because the formats of `Intl` depend on the version of its data. */
function describeTime(time: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    weekday: "long",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "longOffset",
  });
  const parts = new Map(format.formatToParts(time).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? "";
  const date = `${part("weekday")}, ${part("year")}-${part("month")}-${part("day")}`;
  const clock = `${part("hour")}:${part("minute")}:${part("second")}`;
  const offset = part("timeZoneName").replace(/^GMT$/, "GMT+00:00");
  return `${date} ${clock} in ${timeZone} (${offset})`;
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
