/** ASP timestamps have one spelling: UTC, three fraction digits, `Z`. */
const CANONICAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Milliseconds since the epoch; `undefined` unless it is the canonical spelling of a time that exists. */
export function parseCanonicalTime(text: string): number | undefined {
  if (!CANONICAL.test(text)) return undefined;
  const ms = Date.parse(text);
  // `2026-02-30` and `24:00` are spellings of the beginning of another day.
  return new Date(ms).getUTCDate() === Number(text.slice(8, 10)) ? ms : undefined;
}

const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?$/iu;

/** Any ISO 8601 time of day; one without a zone counts as UTC, as the reference reads it. */
export function parseTime(text: string): number | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const ms = Date.parse(`${match[1]}${match[2] ?? "Z"}`);
  return Number.isNaN(ms) ? undefined : ms;
}
