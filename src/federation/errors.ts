/** What can go wrong in federation where somebody has to be told. One class; decide by `code`. */

export type FederationErrorCode =
  /** Malformed, or not for this swarm. */
  | "bad_wrapper"
  | "wrong_swarm"
  /** The message says that it comes from another swarm than the one whose token was shown. */
  | "peer_mismatch"
  | "bad_signature"
  | "too_many_hops"
  /** No agent here has that name. */
  | "unknown_recipient"
  /** Unknown, or none of the peer's business: a stranger cannot tell which. */
  | "unknown_task"
  | "too_many_requests"
  /** About the registry. */
  | "bad_swarm_name"
  | "bad_swarm_url"
  | "name_differs"
  | "unknown_swarm"
  | "unknown_proposal";

export class FederationError extends Error {
  override readonly name = "FederationError";
  readonly code: FederationErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  constructor(code: FederationErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
