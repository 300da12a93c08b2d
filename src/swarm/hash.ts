/** The fingerprint of what is data in a definition (decisions B17). */
import { createHash } from "node:crypto";

/** JSON with sorted keys and without what is `undefined`, so that equal data have equal text. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
  });
}

export function hashOf(data: unknown): string {
  return createHash("sha256").update(canonicalJson(data)).digest("hex");
}
