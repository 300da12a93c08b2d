/** MAP Mail, Turn: content types. */
import { MapError } from "./errors.js";

const WELL_KNOWN: ReadonlySet<string> = new Set(["text", "data", "event", "reference"]);

/** @throws MapError INVALID_CONTENT_TYPE */
export function assertContentType(contentType: string): void {
  if (WELL_KNOWN.has(contentType) || /^x-./u.test(contentType)) return;
  throw new MapError("INVALID_CONTENT_TYPE", undefined, { contentType: contentType.slice(0, 100) });
}

/** The words of a turn, for those who summarise or show it: `text` is `{text}` by the seed and often a plain string. */
export function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (typeof content === "object" && content !== null && "text" in content) {
    return typeof content.text === "string" ? content.text : undefined;
  }
  return undefined;
}
