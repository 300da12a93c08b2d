/** Parses JSON bodies and locates syntax errors. */
import { JsonDepthError, MailroomError, messageOf, parseJson } from "../base/index.js";
import { mistakeIn, parseJsonText } from "../mail/index.js";

/** @throws MailroomError `bad_json` */
export function parseJsonBody(text: string): unknown {
  if (text.trim() === "") return undefined;
  // Harmless as data, but risky once objects are copied.
  if (text.includes('"__proto__"')) throw new MailroomError("bad_json", "the key '__proto__' is not allowed");
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonDepthError) throw new MailroomError("bad_json", `the body is ${error.message}`);
    throw placed(text, error);
  }
}

/** V8's message sometimes lacks the position, and its wording differs between versions of Node. */
function placed(text: string, error: unknown): MailroomError {
  try {
    parseJsonText(text);
  } catch (found) {
    const place = mistakeIn(found);
    if (place !== undefined) {
      const { line, column } = place;
      const where = `line ${line}, column ${column}`;
      return new MailroomError("bad_json", `the body is not JSON: ${messageOf(found)} (${where})`, {
        details: { line, column },
      });
    }
  }
  const reason = messageOf(error);
  return new MailroomError("bad_json", `the body is not JSON: ${reason}`);
}
