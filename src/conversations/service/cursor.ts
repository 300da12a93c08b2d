/** Cursors of conversation lists: the id of the last conversation, so that a cursor never expires. */
import { MapError } from "../rules/errors.js";

export function cursorOf(id: string): string {
  return Buffer.from(id).toString("base64url");
}

/** @throws MapError INVALID_PARAMS */
export function parseCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  if (!/^conv-[0-9a-f-]{36}$/.test(id)) {
    throw new MapError("INVALID_PARAMS", "cursor: not a cursor of this list");
  }
  return id;
}
