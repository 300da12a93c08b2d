/** Bodies as JSON, and exactly where they are not. */
import { JsonTextError, parseJsonText } from "../mail/swarm-file/json-text.js";
import { HttpError } from "./errors.js";

/** @throws HttpError `bad_json` */
export function parseJsonBody(text: string): unknown {
  if (text.trim() === "") return undefined;
  // Harmless as data, but not worth the risk once objects are copied.
  if (text.includes('"__proto__"')) throw new HttpError("bad_json", "the key '__proto__' is not allowed");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw placed(text, error);
  }
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
