/** What went wrong with a call of a model, and whether asking again can help. */
import { isRecord } from "../../mail/record.js";
import { isTransient, parseRetryAfter } from "../../net/index.js";

export type Failure =
  /** The provider is overloaded, limits us, or could not be reached: the same call may succeed later. */
  | { readonly kind: "transient"; readonly message: string; readonly retryAfter?: number }
  /** The prompt does not fit into the model's context. */
  | { readonly kind: "too_long"; readonly message: string }
  | { readonly kind: "credentials"; readonly message: string }
  | { readonly kind: "final"; readonly message: string };

/** The stream broke off or reported an error in the middle of an answer. */
export class BrokenStreamError extends Error {
  override readonly name = "BrokenStreamError";
  readonly code = "broken_stream";
  readonly detail: unknown;
  constructor(detail: unknown) {
    super(`the model's answer broke off: ${textOf(detail)}`);
    this.detail = detail;
  }
}

/** One call took longer than its limit. */
export class ModelTimeLimitError extends Error {
  override readonly name = "ModelTimeLimitError";
  readonly code = "model_time_limit";
  constructor(limit: number) {
    super(`the model did not answer within ${limit} ms`);
  }
}

const TOO_LONG =
  /context_length_exceeded|maximum context length|prompt is too long|input is too long|exceeds? the (?:maximum|context)|too many (?:input )?tokens|context window|input token count/i;

const TRANSIENT_WORDS = /overloaded|rate.?limit|server_error|internal|unavailable|timeout|try again/i;

/** Milliseconds that a provider can have us wait. */
const LONGEST_WAIT = 60_000;

/** @param now milliseconds since the epoch, for `Retry-After`. */
export function failureOf(error: unknown, now: number): Failure {
  if (error instanceof ModelTimeLimitError) return { kind: "transient", message: error.message };
  if (isTransient(error)) return { kind: "transient", message: textOf(error) };
  if (error instanceof BrokenStreamError) {
    const text = textOf(error.detail);
    if (TOO_LONG.test(text)) return { kind: "too_long", message: error.message };
    const known = isRecord(error.detail) && !TRANSIENT_WORDS.test(text);
    return { kind: known ? "final" : "transient", message: error.message };
  }
  if (!isCallError(error)) {
    // A connection that breaks in the middle of an answer surfaces as a bare TypeError of `fetch`.
    return { kind: error instanceof TypeError ? "transient" : "final", message: textOf(error) };
  }
  const { statusCode: status, responseHeaders: headers = {} } = error;
  const message = status === undefined ? error.message : `status ${status}: ${error.message}`;
  if (status === 401 || status === 403) {
    // What providers say here may repeat parts of the key.
    return { kind: "credentials", message: `the provider refused our credentials (status ${status})` };
  }
  if (isClientError(status) && TOO_LONG.test(`${error.message} ${error.responseBody ?? ""}`)) {
    return { kind: "too_long", message };
  }
  if (!error.isRetryable) return { kind: "final", message };
  const milliseconds = Number(headers["retry-after-ms"]);
  const retryAfter =
    milliseconds > 0
      ? Math.min(milliseconds, LONGEST_WAIT)
      : parseRetryAfter(headers["retry-after"], now, LONGEST_WAIT);
  return { kind: "transient", message, ...(retryAfter !== undefined && { retryAfter }) };
}

/** 413 and 400 are what providers answer to prompts that are too long. */
function isClientError(status: number | undefined): boolean {
  return status === 400 || status === 413 || status === 422;
}

/** The AI SDK's `APICallError`, recognised by its name: there may be several copies of the class in a tree. */
interface CallError {
  readonly message: string;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string>>;
  readonly responseBody?: string;
  readonly isRetryable: boolean;
}

function isCallError(error: unknown): error is CallError {
  return error instanceof Error && error.name === "AI_APICallError" && "isRetryable" in error;
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.message;
  if (typeof value === "string") return value;
  return JSON.stringify(value) ?? String(value);
}
