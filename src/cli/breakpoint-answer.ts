import type { BreakpointAnswer } from "../client/index.js";
import { CliError, EXIT } from "./exit.js";

/**
 * One text, with or without quotes, is the answer to the only call that waits; with several calls each word is
 * `CALL_ID=text`.
 * @throws CliError when it is neither
 */
export function parseAnswer(words: readonly string[]): BreakpointAnswer {
  const [only, ...others] = words;
  if (only !== undefined && others.length === 0) return only;
  if (!words.some((word) => word.includes("="))) return words.join(" ");
  return words.map((word) => {
    const at = word.indexOf("=");
    if (at > 0) return { call_id: word.slice(0, at), content: word.slice(at + 1) };
    throw new CliError("usage", `'${word}' is not of the form CALL_ID=text`, {
      exit: EXIT.usage,
      hint: "one call is answered with one text in quotes, several with CALL_ID=text for each",
    });
  });
}
