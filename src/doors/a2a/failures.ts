/** Maps errors to A2A errors. Callers see details of their own errors, but not of internal ones. */
import { describeError, isPublicError } from "../../base/index.js";
import {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "./sdk.js";

export type Report = (error: Error) => void;

const INTERNAL_ERROR_TEXT = "internal server error";

const CLASSES = {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
};

export function failureOf(error: unknown, report: Report): A2AError {
  if (error instanceof A2AError) return error;
  if (isPublicError(error) && error.code !== "store_failed") {
    return new CLASSES[describeError(error.code).a2a]({ message: error.message, cause: error });
  }
  report(error instanceof Error ? error : new Error(String(error)));
  return new A2AError(
    isPublicError(error) ? "the server could not store the message; retry later" : INTERNAL_ERROR_TEXT,
  );
}
