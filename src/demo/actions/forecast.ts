/**
 * A simulated weather forecast that depends only on the location and the day. The bundled example can answer without a
 * network or a key. Every answer states that the data is simulated.
 */

import { createHash } from "node:crypto";
import { z } from "zod";
import { defineAction } from "../../actions/index.js";
import { MailroomError } from "../../base/index.js";

const MAX_DAYS_AHEAD = 14;
const DAY = 86_400_000;

const CONDITIONS = [
  "clear skies",
  "sunny spells",
  "scattered clouds",
  "overcast skies",
  "light rain",
  "passing showers",
  "a thunderstorm in the afternoon",
  "morning fog",
] as const;

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;

export interface Forecast {
  readonly location: string;
  /** `YYYY-MM-DD` */
  readonly date: string;
  readonly condition: string;
  /** Degrees Celsius. */
  readonly low: number;
  readonly high: number;
  /** Kilometers per hour. */
  readonly wind: number;
}

/** The climate depends on the location, the weather on the location and the day. */
export function simulateForecast(location: string, date: string): Forecast {
  const place = location.trim().replaceAll(/\s+/g, " ");
  const climate = numbersFrom(place.toLowerCase());
  const weather = numbersFrom(`${place.toLowerCase()}|${date}`);
  const low = Math.round(2 + pick(climate, 0) * 18 + (pick(weather, 0) - 0.5) * 6);
  return {
    location: place,
    date,
    condition: CONDITIONS[Math.floor(pick(weather, 1) * CONDITIONS.length)] ?? CONDITIONS[0],
    low,
    high: low + 4 + Math.round(pick(weather, 2) * 6),
    wind: 4 + Math.round(pick(weather, 3) * 26),
  };
}

export function describeForecast(forecast: Forecast, metric = true): string {
  const { location, date, condition, low, high, wind } = forecast;
  const fahrenheit = (celsius: number): number => Math.round((celsius * 9) / 5 + 32);
  const measures = metric
    ? `${low} to ${high} °C, wind ${wind} km/h`
    : `${fahrenheit(low)} to ${fahrenheit(high)} °F, wind ${Math.round(wind / 1.609)} mph`;
  return `${location} on ${date}: ${condition}, ${measures} (simulated data)`;
}

/**
 * Resolves `today`, `tomorrow`, a weekday (the next one), `in 3 days` or a date.
 * @throws MailroomError `bad_forecast_request` for any other text, or a day out of range.
 */
export function resolveDate(day: string, now: Date): string {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const ahead = daysAhead(day.trim().toLowerCase(), today, now.getUTCDay());
  if (ahead === undefined) {
    throw new MailroomError(
      "bad_forecast_request",
      `'${day}' is not a day; use today, tomorrow, a weekday, 'in 3 days' or YYYY-MM-DD`,
    );
  }
  if (ahead < 0 || ahead > MAX_DAYS_AHEAD) {
    throw new MailroomError(
      "bad_forecast_request",
      `forecasts cover today to ${MAX_DAYS_AHEAD} days ahead, not '${day}'`,
    );
  }
  return new Date(today + ahead * DAY).toISOString().slice(0, 10);
}

function daysAhead(day: string, today: number, weekday: number): number | undefined {
  if (day === "today" || day === "tonight" || day === "now") return 0;
  if (day === "tomorrow") return 1;
  const inDays = /^in (\d{1,3}) days?$/.exec(day);
  if (inDays !== null) return Number(inDays[1]);
  const named = WEEKDAYS.findIndex((name) => day === name || day === `on ${name}` || day === `next ${name}`);
  if (named >= 0) return ((named - weekday + 6) % 7) + 1;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) return undefined;
  const date = Date.parse(`${day}T00:00:00Z`);
  // `Date.parse` reads February 30 as March 1 or rejects it, depending on the engine.
  const exists = !Number.isNaN(date) && new Date(date).toISOString().startsWith(day);
  return exists ? Math.round((date - today) / DAY) : undefined;
}

/** Eight numbers in [0, 1), derived from a text. */
function numbersFrom(text: string): readonly number[] {
  const bytes = createHash("sha256").update(text).digest();
  return Array.from({ length: 8 }, (_, index) => bytes.readUInt32BE(index * 4) / 2 ** 32);
}

function pick(numbers: readonly number[], index: number): number {
  return numbers[index] ?? 0;
}

const ForecastArguments = z.strictObject({
  location: z.string().min(1).max(200).describe("The place, for example 'Kyoto'"),
  date: z
    .string()
    .min(1)
    .optional()
    .describe("today, tomorrow, a weekday, 'in 3 days' or YYYY-MM-DD; today if left out"),
  days_ahead: z.int().min(0).max(MAX_DAYS_AHEAD).optional().describe("Days from today, instead of a date"),
  metric: z.boolean().default(true).describe("Whether to use metric units"),
});

/** The simulated forecast as an action. */
export function forecastAction(options: { readonly name?: string; readonly now?: () => Date } = {}) {
  const now = options.now ?? (() => new Date());
  return defineAction({
    name: options.name ?? "get_weather_forecast",
    description: "Returns the weather forecast for a place and a day. The data are simulated.",
    parameters: ForecastArguments,
    idempotent: true,
    run: ({ location, date, days_ahead, metric }) => {
      const day = date ?? (days_ahead === undefined ? "today" : `in ${days_ahead} days`);
      return describeForecast(simulateForecast(location, resolveDate(day, now())), metric);
    },
  });
}
