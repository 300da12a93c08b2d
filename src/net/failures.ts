/** Turns what sockets, resolvers and the HTTP library throw into one kind of error. */
import { errors } from "undici";
import { type Call, TimeLimitReached } from "./call.js";
import { RefusedConnection } from "./connector.js";
import { NetError, type NetErrorCode } from "./errors.js";

const BY_CODE: ReadonlyMap<string, NetErrorCode> = new Map([
  ["ENOTFOUND", "unresolved_host"],
  ["EAI_AGAIN", "unresolved_host"],
  ["EAI_FAIL", "unresolved_host"],
  ["ENODATA", "unresolved_host"],
  ["UND_ERR_CONNECT_TIMEOUT", "timed_out"],
  ["UND_ERR_HEADERS_TIMEOUT", "timed_out"],
  ["UND_ERR_BODY_TIMEOUT", "timed_out"],
  ["ETIMEDOUT", "timed_out"],
  ["UND_ERR_HEADERS_OVERFLOW", "bad_answer"],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "bad_answer"],
  ["UND_ERR_INVALID_ARG", "invalid_url"],
  ["UND_ERR_DESTROYED", "aborted"],
  ["UND_ERR_CLOSED", "aborted"],
  ["EPROTO", "tls_failed"],
]);

/** How Node names what is wrong with a certificate. */
const CERTIFICATE = /CERT|_TLS_|ERR_SSL|UNABLE_TO_|SELF_SIGNED|ISSUER|CRL/u;

export function toNetError(error: unknown, call: Pick<Call, "url" | "sent" | "signal">): NetError {
  if (error instanceof NetError) return error;
  const options = { url: call.url ?? "", sent: call.sent, cause: error };
  const refused = causeOf(error, RefusedConnection);
  if (refused !== undefined) return new NetError(refused.refusal.code, refused.refusal.message, options);
  const why: unknown = call.signal.aborted ? call.signal.reason : error;
  if (why instanceof TimeLimitReached) return new NetError("timed_out", why.message, options);
  if (call.signal.aborted) return new NetError("aborted", "the request was aborted", options);
  // Its code is not always set.
  if (error instanceof errors.HTTPParserError) return new NetError("bad_answer", error.message, options);
  const code = codeOf(error);
  return new NetError(classify(code), textOf(error, code), options);
}

function classify(code: string): NetErrorCode {
  const known = BY_CODE.get(code);
  if (known !== undefined) return known;
  return CERTIFICATE.test(code) ? "tls_failed" : "unreachable";
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function textOf(error: unknown, code: string): string {
  // Several addresses were tried: the text of the whole is empty, that of the first says enough.
  if (error instanceof AggregateError && error.message === "") return textOf(error.errors[0], code);
  return error instanceof Error && error.message !== "" ? error.message : code || String(error);
}

function causeOf<T extends Error>(error: unknown, kind: abstract new (...rest: never[]) => T): T | undefined {
  for (let one = error; one instanceof Error; one = one.cause) if (one instanceof kind) return one;
  return undefined;
}
