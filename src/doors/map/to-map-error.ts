import { describeError, hasCode, isErrorCode, isMailroomError, isPublicError } from "../../base/index.js";
import { fromMailroomError, MAP_ERRORS, MapError } from "../../conversations/index.js";

/** Converts any error to a MapError. Internal errors are reported, and the caller receives no details. */
export function toMapError(error: unknown, method: string, report: (error: unknown) => void): MapError {
  if (error instanceof MapError) return error;
  const known = isPublicError(error) ? fromMailroomError(error) : undefined;
  if (known !== undefined && known.code !== "INTERNAL_ERROR") return known;
  // The conflict or the closed store is the server's own affair, but a retry can help.
  if (isMailroomError(error) && isErrorCode(error.code)) {
    if (describeError(error.code).jsonRpc === MAP_ERRORS.EXHAUSTED.code) return new MapError("EXHAUSTED");
  }
  report(new Error(`${method} failed`, { cause: error }));
  if (!hasCode(error, "store_failed")) return new MapError("INTERNAL_ERROR");
  return new MapError("INTERNAL_ERROR", "the store has failed; restart the server");
}
