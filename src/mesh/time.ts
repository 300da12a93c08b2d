/** ASP timestamps have one spelling: UTC, three fraction digits, `Z`. */
const CANONICAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Milliseconds since the epoch; `undefined` unless it is the canonical spelling of a time that exists. */
export function parseCanonicalTime(text: string): number | undefined {
  if (!CANONICAL.test(text)) return undefined;
  const ms = Date.parse(text);
  // `2026-02-30` is a spelling, but no day.
  return !Number.isNaN(ms) && new Date(ms).toISOString() === text ? ms : undefined;
}

const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?$/iu;

/** Any ISO 8601 time of day; one without a zone counts as UTC, as the reference reads it. */
export function parseTime(text: string): number | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const ms = Date.parse(`${match[1]}${match[2] ?? "Z"}`);
  return Number.isNaN(ms) ? undefined : ms;
}
