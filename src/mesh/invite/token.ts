/** ASP: Generate Invite. A compact JWS with `alg` EdDSA, signed over its text directly (no digest, unlike messages). */
import { createHash } from "node:crypto";
import { type Refusal, refuse } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { decodeBase64Url } from "../identity/base64.js";
import { type KeyPair, type PublicKey, verifyWith } from "../identity/keys.js";
import { isUuid } from "../message/check.js";
import { checkEndpoint } from "../message/endpoint.js";
import { isRecord } from "../message/extras.js";
import { formatTime, parseTime } from "../time.js";

export interface InviteClaims {
  readonly swarmId: string;
  readonly master: string;
  readonly endpoint: string;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number;
  readonly maxUses?: number;
  /** The member who signed, if it was not the master. Ours: the reference knows only the master's invites. */
  readonly issuer?: string;
  /** Makes two invites with the same claims two tokens. */
  readonly tokenId?: string;
}

const HEADER = Buffer.from('{"alg":"EdDSA","typ":"JWT"}').toString("base64url");

/** Claims in the order of the reference, non-ASCII escaped as it does. */
export function signInvite(claims: InviteClaims, pair: KeyPair): string {
  const payload = {
    swarm_id: claims.swarmId,
    master: claims.master,
    endpoint: claims.endpoint,
    iat: claims.issuedAt,
    ...(claims.expiresAt !== undefined && { expires_at: formatTime(claims.expiresAt) }),
    ...(claims.maxUses !== undefined && claims.maxUses > 0 && { max_uses: claims.maxUses }),
    ...(claims.issuer !== undefined && claims.issuer !== claims.master && { iss: claims.issuer }),
    ...(claims.tokenId !== undefined && { jti: claims.tokenId }),
  };
  const ascii = JSON.stringify(payload).replace(
    /[\u0080-\uffff]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const text = `${HEADER}.${Buffer.from(ascii).toString("base64url")}`;
  return `${text}.${pair.sign(Buffer.from(text, "ascii")).toString("base64url")}`;
}

export interface ReadInvite {
  readonly claims: InviteClaims;
  /** What uses are counted under: a hash of the signed text, which has one spelling (the signature has not). */
  readonly key: string;
  /** Whether the token was signed with this key. */
  signedBy(publicKey: PublicKey): boolean;
}

export type InviteReading = { readonly invite: ReadInvite } | { readonly refusal: Refusal };

/** Reads a token without judging who signed it or when it expires. */
export function readInvite(token: string): InviteReading {
  const parts = token.split(".");
  const [headerText = "", payloadText = "", signatureText = ""] = parts;
  const signature = decodeBase64Url(signatureText);
  const header = readJson(headerText);
  if (token.length > 8_192 || parts.length !== 3 || signature === undefined || header === undefined) {
    return malformed("is not a JWT");
  }
  if (header.alg !== "EdDSA") return malformed("must be signed with EdDSA");
  // RFC 7515, 4.1.11: what claims to be critical and is not understood must be refused.
  if (header.crit !== undefined) return malformed("has critical extensions that nobody here knows");
  const payload = readJson(payloadText);
  if (payload === undefined) return malformed("has no claims");
  const claims = readClaims(payload);
  if (typeof claims === "string") return malformed(claims);
  const signed = Buffer.from(`${headerText}.${payloadText}`, "ascii");
  return {
    invite: {
      claims,
      key: createHash("sha256").update(signed).digest("hex"),
      signedBy: (publicKey) => verifyWith(publicKey, signed, signature),
    },
  };
}

/** A clock that is a little ahead must not make fresh invites invalid. */
const ISSUED_AHEAD = 300_000;

/** Whether an invite may be used now. */
export function checkInviteTime({ expiresAt, issuedAt }: InviteClaims, now: number): Refusal | undefined {
  if (expiresAt !== undefined && expiresAt <= now) {
    return refuse("TOKEN_EXPIRED", "token_expired", `the invite expired at ${formatTime(expiresAt)}`).refusal;
  }
  if (issuedAt * 1_000 > now + ISSUED_AHEAD) {
    return malformed("was issued in the future").refusal;
  }
  return undefined;
}

function readClaims(payload: Readonly<Record<string, unknown>>): InviteClaims | string {
  const { swarm_id, master, endpoint, iat, iss, jti } = payload;
  const expires = payload.expires_at ?? undefined;
  const maxUses = payload.max_uses ?? undefined;
  if (typeof swarm_id !== "string" || !isUuid(swarm_id)) return "names no swarm";
  if (typeof master !== "string" || master === "") return "names no master";
  if (typeof endpoint !== "string" || checkEndpoint(endpoint) !== undefined) return "has no https endpoint";
  if (typeof iat !== "number" || !Number.isSafeInteger(iat)) return "does not say when it was issued";
  if (expires !== undefined && typeof expires !== "string") return "has an expiry that is not a time";
  const expiresAt = expires === undefined ? undefined : parseTime(expires);
  if (expires !== undefined && expiresAt === undefined) return "has an expiry that is not a time";
  if (
    maxUses !== undefined &&
    (typeof maxUses !== "number" || !Number.isSafeInteger(maxUses) || maxUses < 1)
  ) {
    return "has a number of uses that is not a positive integer";
  }
  if (iss !== undefined && (typeof iss !== "string" || checkAgentId(iss) !== undefined)) {
    return "has an issuer that is no agent";
  }
  return {
    swarmId: swarm_id.toLowerCase(),
    master,
    endpoint,
    issuedAt: iat,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(maxUses !== undefined && { maxUses }),
    ...(iss !== undefined && { issuer: iss }),
    ...(typeof jti === "string" && { tokenId: jti }),
  };
}

function readJson(text: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = decodeBase64Url(text);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function malformed(what: string): { readonly refusal: Refusal } {
  return refuse("INVALID_TOKEN", "invalid_token", `the invite token ${what}`);
}
