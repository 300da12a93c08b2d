import { MailroomError } from "../base/index.js";
import type { BreakpointAnswer } from "../client/index.js";

/**
 * One text, with or without quotes, answers the only open call; with several open calls each argument is
 * `CALL_ID=text`.
 * @throws MailroomError for any other form
 */
export function parseAnswer(words: readonly string[]): BreakpointAnswer {
  const [only, ...others] = words;
  if (only !== undefined && others.length === 0) return only;
  if (!words.some((word) => word.includes("="))) return words.join(" ");
  return words.map((word) => {
    const at = word.indexOf("=");
    if (at > 0) return { call_id: word.slice(0, at), content: word.slice(at + 1) };
    throw new MailroomError("usage", `'${word}' is not of the form CALL_ID=text`, {
      details: { hint: "answer one call with one text in quotes, several with CALL_ID=text for each" },
    });
  });
}
