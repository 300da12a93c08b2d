/** Content types of turns. */
import { MapError } from "./errors.js";

const WELL_KNOWN: ReadonlySet<string> = new Set(["text", "data", "event", "reference"]);

/** @throws MapError INVALID_CONTENT_TYPE */
export function assertContentType(contentType: string): void {
  if (WELL_KNOWN.has(contentType) || /^x-./u.test(contentType)) return;
  throw new MapError("INVALID_CONTENT_TYPE", undefined, { contentType: contentType.slice(0, 100) });
}

/**
 * Returns the text of a turn, for summaries and display. `text` content is `{text}` in the protocol and often
 * a plain string (REF-35).
 */
export function toPlainText(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (typeof content === "object" && content !== null && "text" in content) {
    return typeof content.text === "string" ? content.text : undefined;
  }
  return undefined;
}
