/** Bodies as JSON, and exactly where they are not. */
import { isDeeperThan } from "../mail/depth.js";
import { JsonTextError, parseJsonText } from "../mail/swarm-file/json-text.js";
import { HttpError } from "./errors.js";

/** As in swarm files. The parser knows no limit, but what the value is handed to calls itself for every level. */
const MAX_DEPTH = 200;

/** @throws HttpError `bad_json` */
export function parseJsonBody(text: string): unknown {
  if (text.trim() === "") return undefined;
  // Harmless as data, but not worth the risk once objects are copied.
  if (text.includes('"__proto__"')) throw new HttpError("bad_json", "the key '__proto__' is not allowed");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw placed(text, error);
  }
  // Each level takes two characters, so short texts need not be looked at.
  if (text.length > 2 * MAX_DEPTH && isDeeperThan(MAX_DEPTH, value)) {
    throw new HttpError("bad_json", `the body is nested more than ${MAX_DEPTH} levels deep`);
  }
  return value;
}

/** The engine's own message names no place in some cases, and its wording differs between versions of Node. */
function placed(text: string, error: unknown): HttpError {
  try {
    parseJsonText(text);
  } catch (found) {
    if (found instanceof JsonTextError) {
      const { line, column } = found.place;
      const where = `line ${line}, column ${column}`;
      return new HttpError("bad_json", `the body is not JSON: ${found.message} (${where})`, {
        details: { line, column },
      });
    }
  }
  const reason = error instanceof Error ? error.message : String(error);
  return new HttpError("bad_json", `the body is not JSON: ${reason}`);
}
