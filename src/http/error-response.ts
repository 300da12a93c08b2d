/** The HTTP response for an error. Errors that are not in the public table become `internal_error`: nothing internal leaves. */
import {
  describeError,
  hasCode,
  isPublicError,
  MailroomError,
  type PublicErrorCode,
  retryAfterSeconds,
} from "../base/index.js";

export interface ErrorBody {
  readonly detail: string;
  readonly code: PublicErrorCode;
  readonly [more: string]: unknown;
}

export interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
}

export function errorResponse(error: MailroomError<PublicErrorCode>): ErrorResponse {
  return {
    status: describeError(error.code).status,
    headers: {
      ...(error.retryAfter !== undefined && { "retry-after": String(retryAfterSeconds(error.retryAfter)) }),
      ...(hasCode(error, "unauthenticated", "invalid_role") && { "www-authenticate": "Bearer" }),
    },
    body: { detail: error.message, code: error.code, ...error.details },
  };
}

/** The error that the caller may see. `undefined` for an unexpected one. */
export function toPublicError(error: unknown): MailroomError<PublicErrorCode> | undefined {
  switch (codeOf(error)) {
    // The reason may name files: it is in the log and in `/health`.
    case "store_busy":
      return publicError("store_busy", "the server accepts no writes at the moment: retry later", error);
    case "store_failed":
      return publicError("store_failed", "the server accepts no writes until it is restarted", error);
    case "store_closed":
      return publicError("closed", "the server is shutting down", error);
    case "row_conflict":
      return publicError("write_conflict", "a concurrent write changed the same data: retry", error);
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return publicError("too_large", "the body is larger than this server accepts", error);
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return publicError(
        "unsupported_media_type",
        "bodies are JSON: send 'content-type: application/json'",
        error,
      );
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return publicError("bad_url", "the URL cannot be decoded", error);
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return publicError("bad_request", "the length of the body differs from 'content-length'", error);
    default:
      return isPublicError(error) ? error : undefined;
  }
}

function publicError(code: PublicErrorCode, message: string, cause: unknown): MailroomError<PublicErrorCode> {
  return new MailroomError<PublicErrorCode>(code, message, { cause });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
