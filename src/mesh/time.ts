/** ASP timestamps have one form: UTC, three fraction digits, `Z`. */
const CANONICAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns milliseconds since the epoch; `undefined` unless the text is the canonical form of an existing time. */
export function parseCanonicalTime(text: string): number | undefined {
  if (!CANONICAL.test(text)) return undefined;
  const ms = Date.parse(text);
  // `Date.parse` accepts `2026-02-30` and `24:00` as times of the next day or month.
  return new Date(ms).getUTCDate() === Number(text.slice(8, 10)) ? ms : undefined;
}

const ISO = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?$/iu;

/** Parses any ISO 8601 date and time. Without a zone it counts as UTC, as in the reference. */
export function parseTime(text: string): number | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const ms = Date.parse(`${match[1]}${match[2] ?? "Z"}`);
  return Number.isNaN(ms) ? undefined : ms;
}
