/** What goes wrong, in the words of A2A: callers are told of their own mistakes; of ours, that there was one. */
import { RuntimeError } from "../engine/runtime/index.js";
import {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "./sdk.js";

export type Report = (error: Error) => void;

export const OUR_MISTAKE = "the server made a mistake";

export function failureOf(error: unknown, report: Report): A2AError {
  if (error instanceof A2AError) return error;
  if (error instanceof RuntimeError) return refusal(error, report);
  report(error instanceof Error ? error : new Error(String(error)));
  return new A2AError(OUR_MISTAKE);
}

function refusal(error: RuntimeError, report: Report): A2AError {
  const words = { message: error.message, cause: error };
  switch (error.code) {
    case "already_ended":
      return new TaskNotCancelableError(words);
    case "unknown_task":
      return new TaskNotFoundError(words);
    case "bad_input":
    case "missing_results":
    case "unknown_calls":
    case "unknown_agent":
    case "not_entrypoint":
      return new RequestMalformedError(words);
    // The request is good. A2A has no word of its own for "later".
    case "overloaded":
    case "mailbox_full":
    case "store_busy":
    case "closed":
      return new A2AError({ ...words, message: `${error.message}; try again later` });
    case "store_failed":
      report(error);
      return new A2AError("the server could not write this down; try again later");
    default:
      return new UnsupportedOperationError(words);
  }
}
