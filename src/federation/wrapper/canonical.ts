import { isRecord } from "../../mail/record.js";

/**
 * The one way of writing a JSON value (RFC 8785, JSON Canonicalization Scheme): keys in order of their UTF-16 units, no
 * white space. Numbers and strings are written by JavaScript as the scheme wants them.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? "null";
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const part = value[key];
    if (part !== undefined) parts.push(`${JSON.stringify(key)}:${canonicalJson(part)}`);
  }
  return `{${parts.join(",")}}`;
}
