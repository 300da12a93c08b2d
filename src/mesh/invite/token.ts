/** ASP: Generate Invite. A compact JWS with `alg` EdDSA, signed over its text directly (no digest, unlike messages). */
import { createHash } from "node:crypto";
import { isRecord, isUuid } from "../../base/index.js";
import { refuse, type WireRefusal } from "../errors.js";
import { checkAgentId } from "../identity/agent-id.js";
import { decodeBase64Url } from "../identity/base64.js";
import { type KeyPair, type PublicKey, verifyWith } from "../identity/keys.js";
import { checkEndpoint } from "../message/endpoint.js";

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
  /** The member that signed, unless the master did. An extension: the reference has only invites of the master. */
  readonly issuer?: string;
  /** Makes two invites with the same claims different tokens. */
  readonly tokenId?: string;
}

const HEADER = Buffer.from('{"alg":"EdDSA","typ":"JWT"}').toString("base64url");

/** Claims in the order of the reference; non-ASCII is escaped the same way. */
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
  /** The key under which uses are counted: a hash of the signed text, which has one encoding, unlike the signature. */
  readonly key: string;
  /** Whether the token was signed with this key. */
  signedBy(publicKey: PublicKey): boolean;
}

export type InviteReading = { readonly invite: ReadInvite } | { readonly refusal: WireRefusal };

/** Reads a token without checking its signature or expiry. */
export function readInvite(token: string): InviteReading {
  const parts = token.split(".");
  const [headerText = "", payloadText = "", signatureText = ""] = parts;
  const signature = decodeBase64Url(signatureText);
  const header = readJson(headerText);
  if (token.length > 8_192 || parts.length !== 3 || signature === undefined || header === undefined) {
    return malformed("is not a JWT");
  }
  if (header.alg !== "EdDSA") return malformed("must be signed with EdDSA");
  // RFC 7515, 4.1.11: unknown critical headers must be refused.
  if (header.crit !== undefined) return malformed("has unknown critical extensions");
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

/** Tolerates an issuer whose clock is slightly ahead. */
const ISSUED_AHEAD = 300_000;

/** Checks whether an invite is usable now. */
export function checkInviteTime({ expiresAt, issuedAt }: InviteClaims, now: number): WireRefusal | undefined {
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
  if (typeof swarm_id !== "string" || !isUuid(swarm_id)) return "has no valid swarm_id";
  if (typeof master !== "string" || master === "") return "has no master";
  if (typeof endpoint !== "string" || checkEndpoint(endpoint) !== undefined)
    return "has no valid https endpoint";
  if (typeof iat !== "number" || !Number.isSafeInteger(iat)) return "has no valid iat";
  if (expires !== undefined && typeof expires !== "string") return "has an invalid expires_at";
  const expiresAt = expires === undefined ? undefined : parseTime(expires);
  if (expires !== undefined && expiresAt === undefined) return "has an invalid expires_at";
  if (
    maxUses !== undefined &&
    (typeof maxUses !== "number" || !Number.isSafeInteger(maxUses) || maxUses < 1)
  ) {
    return "has a max_uses that is not a positive integer";
  }
  if (iss !== undefined && (typeof iss !== "string" || checkAgentId(iss) !== undefined)) {
    return "has an issuer that is not a valid agent id";
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

function malformed(what: string): { readonly refusal: WireRefusal } {
  return refuse("INVALID_TOKEN", "invalid_token", `the invite token ${what}`);
}
