/** Helpers for JSON values, most of which come from outside. */

/**
 * The deepest JSON that every door accepts. A text of a few thousand brackets parses, and then overflows the stack of
 * whatever walks through the value, beginning with `JSON.stringify`.
 */
export const MAX_JSON_DEPTH = 64;

/** JSON from others that is nested more than `MAX_JSON_DEPTH` levels deep. */
export class JsonDepthError extends Error {
  constructor() {
    super(`nested more than ${MAX_JSON_DEPTH} levels deep`);
    this.name = "JsonDepthError";
  }
}

/**
 * Parses JSON from others.
 * @throws SyntaxError, JsonDepthError
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  // Each level takes at least two characters, so short texts need no check.
  if (text.length > 2 * MAX_JSON_DEPTH && exceedsDepth(value, MAX_JSON_DEPTH)) throw new JsonDepthError();
  return value;
}

/**
 * The text of a JSON value of any depth. `JSON.stringify` recurses and fails for deep values, which builds without a
 * depth limit have stored; they must remain readable (law 9).
 */
export function encodeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return encodeWithoutRecursion(value);
  }
}

/** For plain JSON values: `toJSON` is not called. */
function encodeWithoutRecursion(root: unknown): string {
  const written: string[] = [];
  const open: ({ readonly text: string } | { readonly value: unknown })[] = [{ value: root }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if ("text" in next) written.push(next.text);
    else if (Array.isArray(next.value)) {
      written.push("[");
      open.push({ text: "]" });
      for (let index = next.value.length - 1; index >= 0; index--) {
        open.push({ value: next.value[index] });
        if (index > 0) open.push({ text: "," });
      }
    } else if (isRecord(next.value)) {
      written.push("{");
      open.push({ text: "}" });
      const entries = Object.entries(next.value).filter(([, part]) => part !== undefined);
      for (const [index, [key, part]] of entries.reverse().entries()) {
        const separator = index < entries.length - 1 ? "," : "";
        open.push({ value: part }, { text: `${separator}${JSON.stringify(key)}:` });
      }
    } else written.push(JSON.stringify(next.value) ?? "null");
  }
  return written.join("");
}

/** Whether lists and objects are nested more than `max` levels deep. Looks no deeper than that itself. */
export function exceedsDepth(value: unknown, max: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (max === 0) return true;
  // `Object.values` would copy long lists.
  const parts = Array.isArray(value) ? value : Object.values(value);
  return parts.some((part) => exceedsDepth(part, max - 1));
}

/** An object that is not a list: what JSON calls an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The own value of a key that a caller chose, never an inherited one (`constructor`). */
export function ownValue<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

/**
 * The canonical text of a JSON value (RFC 8785, JSON Canonicalization Scheme): keys in order of their UTF-16 units, no
 * white space. JavaScript writes numbers and strings as the scheme requires.
 */
export function canonicalJson(value: unknown): string {
  return canonicalText(value) ?? "null";
}

/** Undefined for what JSON leaves out of objects, as `JSON.stringify` does. */
function canonicalText(value: unknown): string | undefined {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  if (typeof value.toJSON === "function") return canonicalText(value.toJSON());
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const part = canonicalText(value[key]);
    if (part !== undefined) parts.push(`${JSON.stringify(key)}:${part}`);
  }
  return `{${parts.join(",")}}`;
}

/** At most `max` characters, the last of which says that some are missing. */
export function truncate(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
