/**
 * Two families. A `MeshError` is ours: an operation that the operator asked for cannot be done. A `Refusal` is the
 * wire's: what a peer gets instead of what it asked for, as data.
 */

export type MeshErrorCode =
  | "already_initialised"
  | "not_initialised"
  | "invalid_key_file"
  | "invalid_identity"
  | "invalid_name"
  | "invalid_message"
  | "invalid_invite"
  | "invalid_state_file"
  | "invalid_request"
  | "swarm_not_found"
  | "ambiguous_swarm"
  | "message_not_found"
  | "member_not_found"
  | "not_master"
  | "is_master"
  | "transfer_open"
  | "not_allowed"
  | "pending"
  | "join_refused"
  | "peer_unreachable"
  | "alias_taken"
  | "overloaded";

export class MeshError extends Error {
  override readonly name = "MeshError";
  readonly code: MeshErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  constructor(
    code: MeshErrorCode,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }
}

/** ASP error codes, with the status that each goes with (agent-swarm protocol, Response Codes). */
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

export interface Refusal {
  readonly code: WireCode;
  /** A stable word for programs and tests; the message is for people. */
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
  rest: Pick<Refusal, "details" | "retryAfter"> = {},
): { readonly refusal: Refusal } {
  return { refusal: { code, reason, message, ...rest } };
}
