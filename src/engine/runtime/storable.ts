/** Checks and copies the input of callers. */
import { MailroomError, messageOf } from "../../base/index.js";
import { copyJson } from "../../journal/index.js";

/** Input must be JSON. The copy prevents a caller from keeping a reference into a state. */
export function storable<T extends object>(input: T): T {
  try {
    return copyJson(input);
  } catch (error) {
    throw new MailroomError("bad_input", `the input cannot be stored: ${messageOf(error)}`);
  }
}
