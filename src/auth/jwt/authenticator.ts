import { errors, type JWTVerifyOptions, jwtVerify } from "jose";
import { type Clock, hasCode, MailroomError, type Report } from "../../base/index.js";
import { ExpiringCache, fingerprint } from "../cache.js";
import {
  type Authenticator,
  type AuthResult,
  failure,
  INVALID_ROLE,
  principalFrom,
  rejectMalformed,
} from "../result.js";
import type { JwtAlgorithm } from "./algorithms.js";
import { type ClaimMapping, readClaims } from "./claims.js";
import { type JwtKey, verifyingKey } from "./key.js";

export interface JwtOptions {
  readonly key: JwtKey;
  readonly clock: Pick<Clock, "now">;
  /** Absent: any issuer that holds the key. */
  readonly issuer?: string | undefined;
  /** One of these must be in the token's `aud`. Absent or empty: not checked. */
  readonly audience?: readonly string[] | undefined;
  /** Absent or empty: all algorithms that fit the key. */
  readonly algorithms?: readonly JwtAlgorithm[] | undefined;
  /** Default: role in `role`, id in `sub`. */
  readonly claims?: Partial<ClaimMapping> | undefined;
  /** Milliseconds by which clocks may differ. Default 5 s. */
  readonly clockTolerance?: number | undefined;
  /** Number of cached verified tokens, each until it expires or `cacheTime` has passed. Default 10,000. */
  readonly cacheSize?: number | undefined;
  /** Maximum milliseconds that a verified token is cached; published keys are cached for ten minutes. Default 5 min. */
  readonly cacheTime?: number | undefined;
  /** Milliseconds to fetch the issuer's keys. Default 5 s. */
  readonly timeout?: number | undefined;
  readonly report?: Report | undefined;
}

/**
 * Authenticates bearer tokens signed by an identity provider. A token must have an expiry (`exp`).
 * @throws MailroomError `bad_auth_settings` when key and algorithms cannot work together.
 */
export function jwtAuthenticator(options: JwtOptions): Authenticator {
  const { clock, clockTolerance = 5_000, cacheTime = 300_000, timeout = 5_000, report = () => {} } = options;
  const { key, algorithms: possible } = verifyingKey(options.key, timeout);
  const mapping: ClaimMapping = { roleClaim: "role", idClaim: "sub", roles: {}, ...options.claims };
  const verified = new ExpiringCache<AuthResult>(options.cacheSize ?? 10_000, clock);
  const fixed: JWTVerifyOptions = {
    algorithms: allowed(options.algorithms ?? [], possible),
    requiredClaims: ["exp"],
    clockTolerance: clockTolerance / 1000,
    ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
    ...((options.audience ?? []).length === 0 ? {} : { audience: [...(options.audience ?? [])] }),
  };

  async function verify(token: string): Promise<{ readonly result: AuthResult; readonly until: number }> {
    const { payload } = await jwtVerify(token, key, { ...fixed, currentDate: new Date(clock.now()) });
    const { role, id } = readClaims(payload, mapping);
    const expiresAt = (payload.exp ?? 0) * 1000;
    const found = id === undefined ? failure("unknown") : principalFrom("jwt", { role, id });
    const result: AuthResult = found.ok ? { ok: true, principal: { ...found.principal, expiresAt } } : found;
    return {
      result: role === undefined ? INVALID_ROLE : result,
      until: Math.min(expiresAt + clockTolerance, clock.now() + cacheTime),
    };
  }

  return {
    async authenticate(bearer) {
      const malformed = rejectMalformed(bearer);
      if (malformed !== undefined || bearer === undefined) return malformed ?? failure("missing");
      const print = fingerprint(bearer);
      const known = verified.get(print);
      if (known !== undefined) return known;
      try {
        const { result, until } = await verify(bearer);
        if (result.ok) verified.set(print, result, until);
        return result;
      } catch (error) {
        if (error instanceof errors.JWTExpired) return failure("expired");
        if (hasCode(error, "keys_unavailable")) {
          report({ code: "auth_jwt", message: error.message });
          return failure("unavailable");
        }
        // Every other verification error is the token's fault.
        return failure("unknown");
      }
    },
  };
}

function allowed(asked: readonly JwtAlgorithm[], possible: readonly JwtAlgorithm[]): JwtAlgorithm[] {
  const senseless = asked.filter((algorithm) => !possible.includes(algorithm));
  if (senseless.length > 0) {
    throw new MailroomError(
      "bad_auth_settings",
      `JWT: ${senseless.join(", ")} cannot be used with this kind of key; use ${possible.join(", ")}`,
    );
  }
  return asked.length === 0 ? [...possible] : [...asked];
}
