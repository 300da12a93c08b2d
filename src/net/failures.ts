/** Turns errors of sockets, resolvers and the HTTP library into NetErrors. */
import { hasCode } from "../base/index.js";
import { NetError, type NetErrorCode } from "./errors.js";
import type { OutgoingRequest } from "./outgoing-request.js";

const BY_CODE: ReadonlyMap<string, NetErrorCode> = new Map([
  ["ENOTFOUND", "unresolved_host"],
  ["EAI_AGAIN", "unresolved_host"],
  ["EAI_FAIL", "unresolved_host"],
  ["ENODATA", "unresolved_host"],
  ["UND_ERR_CONNECT_TIMEOUT", "timed_out"],
  ["UND_ERR_HEADERS_TIMEOUT", "timed_out"],
  ["UND_ERR_BODY_TIMEOUT", "timed_out"],
  ["ETIMEDOUT", "timed_out"],
  ["UND_ERR_HEADERS_OVERFLOW", "bad_response"],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "bad_response"],
  ["UND_ERR_INVALID_ARG", "invalid_url"],
  ["UND_ERR_DESTROYED", "aborted"],
  ["UND_ERR_CLOSED", "aborted"],
  ["EPROTO", "tls_failed"],
]);

/** Node's codes for certificate errors. */
const CERTIFICATE = /CERT|_TLS_|ERR_SSL|UNABLE_TO_|SELF_SIGNED|ISSUER|CRL/u;

export function toNetError(error: unknown, call: Pick<OutgoingRequest, "url" | "sent" | "signal">): NetError {
  if (error instanceof NetError) return error;
  const options = { url: call.url ?? "", mayHaveArrived: call.sent, cause: error };
  const refused = refusalIn(error);
  if (refused !== undefined) return new NetError(refused.code, refused.message, options);
  const why: unknown = call.signal.aborted ? call.signal.reason : error;
  if (hasCode(why, "timed_out")) return new NetError("timed_out", why.message, options);
  if (call.signal.aborted) return new NetError("aborted", "the request was aborted", options);
  // The code is not always set.
  if (error instanceof Error && error.name === "HTTPParserError") {
    return new NetError("bad_response", error.message, options);
  }
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
  // Several addresses failed: the message of the aggregate is empty, so use the first one's.
  if (error instanceof AggregateError && error.message === "") return textOf(error.errors[0], code);
  return error instanceof Error && error.message !== "" ? error.message : code || String(error);
}

/** The connector's refusal, which reaches us through the socket's error path. */
function refusalIn(error: unknown) {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (hasCode(one, "invalid_url", "insecure_url", "blocked_address")) return one;
  }
  return undefined;
}
