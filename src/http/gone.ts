/** Whether there is still somebody to answer. */
import type { ServerResponse } from "node:http";

/** Calls back when the other side hangs up; at once if it has. The returned function takes the callback away. */
export function whenGone(raw: ServerResponse, callback: () => void): () => void {
  // The event was, for those who left before anybody listened.
  if (isGone(raw)) {
    callback();
    return () => {};
  }
  raw.once("close", callback);
  return () => raw.off("close", callback);
}

function isGone(raw: ServerResponse): boolean {
  if (raw.destroyed) return true;
  // An answer over HTTP/2 does not say so itself, its stream does.
  const stream = "stream" in raw ? raw.stream : undefined;
  return typeof stream === "object" && stream !== null && "destroyed" in stream && stream.destroyed === true;
}
