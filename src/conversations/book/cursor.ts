/** Cursors of lists of conversations: the id of the last one, so that any page can be asked for at any time. */
import { MapError } from "../domain/errors.js";

export function cursorOf(id: string): string {
  return Buffer.from(id).toString("base64url");
}

/** @throws MapError INVALID_PARAMS */
export function parseCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  if (!/^conv-[0-9a-f-]{36}$/.test(id)) {
    throw new MapError("INVALID_PARAMS", "cursor: not one that this list has given out");
  }
  return id;
}
