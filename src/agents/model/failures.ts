/**
 * Classifies failures of model calls: what can help, and what may be said about them. A provider's own words may contain
 * anything, also parts of a key, so they go to the operator's log and never to users.
 */
import { hasCode, isRecord, MailroomError, parseRetryAfter } from "../../base/index.js";
import { isTransient } from "../../net/index.js";

export interface Failure {
  readonly kind:
    | "transient" /** Overloaded, rate limited or unreachable: a retry may succeed, or another model. */
    | "quota" /** The account has no credit left: another model may help. */
    | "too_long" /** The prompt does not fit into the model's context. */
    | "stale_reasoning" /** The provider rejects reasoning of earlier answers: the same prompt without it helps. */
    | "credentials"
    | "final";
  /** In our words. */
  readonly problem: string;
  /** In the provider's words, for the log. */
  readonly detail: string;
  /** Milliseconds. */
  readonly retryAfter?: number;
  /** The provider may have worked on the prompt before the call failed, and may charge for it. */
  readonly isCharged?: true;
  /** The provider limits us: other calls should wait as well. */
  readonly isLimit?: true;
}

/** The stream ended early or reported an error. */
export function brokenStream(detail: unknown): MailroomError {
  return new MailroomError("model_failed", "the model's answer was interrupted", { details: { detail } });
}

/** The answer has more bytes than any sensible answer. */
export function tooLargeAnswer(limit: number): MailroomError {
  const message = `the model's answer has more than ${limit} bytes`;
  return new MailroomError("model_failed", message, { details: { detail: { tooLarge: true } } });
}

/** One call took longer than its limit. */
export function modelTimedOut(limit: number): MailroomError {
  return new MailroomError("timed_out", `the model did not answer within ${limit} ms`);
}

const TOO_LONG =
  /context_length_exceeded|maximum context length|prompt is too long|input is too long|exceeds? the (?:maximum|context)|too many (?:input )?tokens|context window|input token count/i;

const NOT_CONNECTED =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|connect timeout/i;

const TRANSIENT_WORDS = /overloaded|rate.?limit|server_error|internal|unavailable|timeout|try again/i;

const QUOTA = /insufficient_quota|exceeded your current quota|credit balance is too low|billing_hard_limit/i;

const STALE_REASONING =
  /thinking[^.]{0,80}(?:block|signature)|signature[^.]{0,80}thinking|bound to a different|encrypted_content|thought.?signature/i;

/** Longest `Retry-After` that is respected, in milliseconds. */
const MAX_RETRY_AFTER = 60_000;

/** Characters of a provider's message that are logged. */
const MAX_DETAIL = 2_000;

/** @param now milliseconds since the epoch, for `Retry-After`. */
export function failureOf(error: unknown, now: number): Failure {
  const detail = textOf(error).slice(0, MAX_DETAIL);
  if (hasCode(error, "timed_out")) {
    return { kind: "transient", problem: error.message, detail, isCharged: true };
  }
  if (isTransient(error)) return unreachable(detail);
  if (hasCode(error, "model_failed")) return streamFailure(error);
  if (!isCallError(error)) {
    // A connection that breaks during an answer surfaces as a bare TypeError of `fetch`.
    return error instanceof TypeError
      ? { kind: "transient", problem: "the connection to the provider broke", detail, isCharged: true }
      : { kind: "final", problem: "the call failed", detail };
  }
  return statusFailure(error, now);
}

/** A provider that took the connection may have worked on the call. */
function unreachable(detail: string): Failure {
  const isCharged = !NOT_CONNECTED.test(detail);
  return {
    kind: "transient",
    problem: "the provider could not be reached",
    detail,
    ...(isCharged && { isCharged }),
  };
}

function streamFailure({ message, details }: MailroomError): Failure {
  const text = textOf(details.detail);
  const detail = text.slice(0, MAX_DETAIL);
  if (TOO_LONG.test(text)) return { kind: "too_long", problem: message, detail };
  const isKnown = isRecord(details.detail) && !TRANSIENT_WORDS.test(text);
  return { kind: isKnown ? "final" : "transient", problem: message, detail, isCharged: true };
}

function statusFailure(error: CallError, now: number): Failure {
  const { statusCode: status, responseHeaders: headers = {}, responseBody: body = "" } = error;
  const said = `${error.message} ${body}`;
  const detail = `${error.message}${body === "" ? "" : `: ${body}`}`.slice(0, MAX_DETAIL);
  if (status === undefined) {
    if (error.isRetryable) return unreachable(detail);
    return { kind: "final", problem: "the provider's answer is unreadable", detail, isCharged: true };
  }
  const problem = `status ${status}${typeOf(body)}`;
  if (status === 401 || status === 403) {
    return {
      kind: "credentials",
      problem: `the provider rejected the credentials (status ${status})`,
      detail,
    };
  }
  if (QUOTA.test(said)) return { kind: "quota", problem: `${problem}: the quota is used up`, detail };
  if (isClientError(status) && TOO_LONG.test(said)) return { kind: "too_long", problem, detail };
  if (isClientError(status) && STALE_REASONING.test(said))
    return { kind: "stale_reasoning", problem, detail };
  // The provider worked on a call whose answer began.
  const charged = status < 300 && ({ isCharged: true } as const);
  if (!error.isRetryable) return { kind: "final", problem, detail, ...charged };
  const milliseconds = Number(headers["retry-after-ms"]);
  const retryAfter =
    milliseconds > 0
      ? Math.min(milliseconds, MAX_RETRY_AFTER)
      : parseRetryAfter(headers["retry-after"], now, MAX_RETRY_AFTER);
  return {
    kind: "transient",
    problem,
    detail,
    ...charged,
    ...(retryAfter !== undefined && { retryAfter }),
    ...((status === 429 || status === 529 || status === 503) && { isLimit: true }),
  };
}

/** Providers answer 400, 413 or 422 to prompts that they cannot use. */
function isClientError(status: number): boolean {
  return status === 400 || status === 413 || status === 422;
}

/** ` (overloaded_error)`: the provider's name for the error, if it is one. */
function typeOf(body: string): string {
  const [, type] =
    /"(?:type|code|status)"\s*:\s*"([A-Za-z_]{3,40})"/.exec(body.replace(/"type"\s*:\s*"error"/, "")) ?? [];
  return type === undefined ? "" : ` (${type})`;
}

/** The AI SDK's `APICallError`, recognized by name, because several copies of the class may be installed. */
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
