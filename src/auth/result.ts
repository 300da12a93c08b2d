/** The question that every provider answers, and the words of the answers. */
import { checkPrincipalId, type Principal, type Provider, roleOf } from "./principal.js";

/**
 * - `missing`: no credential was shown.
 * - `bad_format`: what was shown cannot be a credential at all.
 * - `unknown`: nobody vouches for it (never issued, revoked, forged, or for a role that does not exist).
 * - `expired`: it was good once; a new one is needed.
 * - `unavailable`: whoever could tell does not answer. The only one that says nothing about the caller: 503, not 401.
 */
export type AuthFailureReason = "missing" | "bad_format" | "unknown" | "expired" | "unavailable";

export interface AuthFailure {
  readonly ok: false;
  readonly reason: AuthFailureReason;
  /** For the answer's `detail`. Never holds what the caller sent. */
  readonly detail: string;
}

export type AuthResult = { readonly ok: true; readonly principal: Principal } | AuthFailure;

export interface Authenticator {
  /** Never throws: whatever goes wrong is an answer. `bearer` is the credential without the word `Bearer`. */
  authenticate(bearer: string | undefined): Promise<AuthResult>;
  /**
   * Whether only this provider can have issued a credential of this form. No other is then asked, so that it is not
   * shown to strangers.
   */
  recognises?(bearer: string): boolean;
  /**
   * Calls back with the id (`Principal.tokenId`) of each token that is revoked from now on, as soon as it is refused:
   * what it has open must end. The returned function takes the listener away.
   */
  onRevoked?(listener: (tokenId: string) => void): () => void;
}

/** The texts that clients written for the reference know (MAIL reference server), and two of ours. */
const DETAILS = {
  missing: "no API key provided",
  bad_format: "invalid API key format",
  unknown: "invalid API key",
  expired: "API key has expired",
  unavailable: "authentication is not available, try again later",
} as const satisfies Record<AuthFailureReason, string>;

export function failure(reason: AuthFailureReason): AuthFailure {
  return { ok: false, reason, detail: DETAILS[reason] };
}

export const INVALID_ROLE: AuthFailure = { ok: false, reason: "unknown", detail: "invalid role" };

/** The principal that a provider found, unless nobody may be called that. */
export function principalFrom(
  provider: Provider,
  claimed: { readonly role: unknown; readonly id: string },
): AuthResult {
  const role = roleOf(claimed.role);
  if (role === undefined) return INVALID_ROLE;
  if (checkPrincipalId(role, claimed.id) !== undefined) return failure("unknown");
  return { ok: true, principal: { role, id: claimed.id, provider } };
}

const LONGEST_BEARER = 8192;

/** A failure for what no provider needs to look at: nothing, or what RFC 6750 does not allow in a bearer token. */
export function rejectMalformed(bearer: string | undefined): AuthFailure | undefined {
  if (bearer === undefined) return failure("missing");
  if (bearer.length > LONGEST_BEARER || !/^[\x21-\x7e]+$/.test(bearer)) return failure("bad_format");
  return undefined;
}

/** Reads an `Authorization` header and asks. The scheme's case does not matter (RFC 9110, 11.1). */
export async function authenticateHeader(
  authenticator: Authenticator,
  header: string | undefined,
): Promise<AuthResult> {
  if (header === undefined) return authenticator.authenticate(undefined);
  const bearer = /^bearer +(\S+) *$/i.exec(header)?.[1];
  return bearer === undefined ? failure("bad_format") : authenticator.authenticate(bearer);
}
