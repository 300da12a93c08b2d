/** A `WireRefusal` is the error response to a peer, as data. Failed local operations are `MailroomError`s. */

/** ASP error codes, with the HTTP status of each ([ASP-ENDP-04] to [ASP-ENDP-08]). */
export const WIRE_STATUS = {
  INVALID_FORMAT: 400,
  INVALID_TOKEN: 400,
  INVALID_SIGNATURE: 401,
  TOKEN_EXPIRED: 401,
  NOT_AUTHORIZED: 403,
  NOT_MASTER: 403,
  TOKEN_EXHAUSTED: 403,
  INVITES_DISABLED: 403,
  SWARM_NOT_FOUND: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const;
export type WireCode = keyof typeof WIRE_STATUS;

export interface WireRefusal {
  readonly code: WireCode;
  /** A stable identifier for programs and tests; the message is for people. */
  readonly reason: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Seconds. */
  readonly retryAfter?: number;
}

export function refuse(
  code: WireCode,
  reason: string,
  message: string,
  rest: Pick<WireRefusal, "details" | "retryAfter"> = {},
): { readonly refusal: WireRefusal } {
  return { refusal: { code, reason, message, ...rest } };
}
