/** The interface of every provider, and its results. */
import { checkPrincipalId, type Principal, type Provider, roleOf } from "./principal.js";

/**
 * - `missing`: no credential was shown.
 * - `bad_format`: the text cannot be a credential.
 * - `unknown`: no provider accepts it (never issued, revoked, forged, or for an unknown role).
 * - `expired`: it was valid before; a new one is needed.
 * - `unavailable`: the provider does not answer. The only one that says nothing about the caller: 503, not 401.
 */
export type AuthFailureReason = "missing" | "bad_format" | "unknown" | "expired" | "unavailable";

export interface AuthFailure {
  readonly ok: false;
  readonly reason: AuthFailureReason;
  /** For the response's `detail`. Never contains what the caller sent. */
  readonly detail: string;
}

export type AuthResult = { readonly ok: true; readonly principal: Principal } | AuthFailure;

/** Finds out to whom a credential belongs. */
export interface Authenticator {
  /** Never throws: every failure is a result. `bearer` is the credential without the word `Bearer`. */
  authenticate(bearer: string | undefined): Promise<AuthResult>;
  /** Whether only this provider can have issued a credential of this form. It is then shown to no other provider. */
  recognises?(bearer: string): boolean;
  /**
   * Calls back with the id (`Principal.tokenId`) of each token revoked from now on: its open connections must end. The
   * returned function removes the listener.
   */
  onRevoked?(listener: (tokenId: string) => void): () => void;
}

/** Messages of the MAIL reference server, which its clients expect, and two additional ones. */
const DETAILS = {
  missing: "no API key provided",
  bad_format: "invalid API key format",
  unknown: "invalid API key",
  expired: "API key has expired",
  unavailable: "authentication is not available, retry later",
} as const satisfies Record<AuthFailureReason, string>;

export function failure(reason: AuthFailureReason): AuthFailure {
  return { ok: false, reason, detail: DETAILS[reason] };
}

export const INVALID_ROLE: AuthFailure = { ok: false, reason: "unknown", detail: "invalid role" };

/** The principal that a provider found, unless its id is invalid. */
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

/** The failure of a missing credential, or of text that RFC 6750 does not allow in a bearer token. */
export function rejectMalformed(bearer: string | undefined): AuthFailure | undefined {
  if (bearer === undefined) return failure("missing");
  if (bearer.length > LONGEST_BEARER || !/^[\x21-\x7e]+$/.test(bearer)) return failure("bad_format");
  return undefined;
}

/** Parses an `Authorization` header and authenticates it. The scheme's case does not matter (RFC 9110, 11.1). */
export async function authenticateHeader(
  authenticator: Authenticator,
  header: string | undefined,
): Promise<AuthResult> {
  if (header === undefined) return authenticator.authenticate(undefined);
  const bearer = /^bearer +(\S+) *$/i.exec(header)?.[1];
  return bearer === undefined ? failure("bad_format") : authenticator.authenticate(bearer);
}
