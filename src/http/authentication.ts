/** Authenticates requests: the credential, the role, and the limit on failed attempts. */

import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import {
  type Authenticator,
  type AuthResult,
  authenticateHeader,
  fingerprint,
  instanceOf,
  type Principal,
  type Role,
} from "../auth/index.js";
import {
  type LimitStatus,
  MailroomError,
  RateLimiter,
  retryAfterSeconds,
  systemClock,
} from "../base/index.js";
import type { Access, Caller } from "../extension/index.js";
import { RequestLimit } from "./request-limit.js";

/** Window in which failed authentications are counted, in milliseconds. */
const FAILURES_WINDOW = 60_000;
/** Known good credentials that are remembered for addresses over their limit. */
const REMEMBERED = 10_000;
const TOO_MANY_FAILURES = "too many failed authentications from this address";

type LimitedAccess = Exclude<Access, { readonly kind: "public" }>;

export interface RequestAuthenticatorOptions {
  readonly authenticator: Authenticator;
  /** Per minute and address; 0 for no limit. */
  readonly failedAuthentications: number;
  /** Requests per minute; 0 for no limit. */
  readonly requestsPerCaller: number;
  readonly requestsPerAddress: number;
  /** To routes without authentication. */
  readonly publicRequestsPerAddress: number;
  readonly onFailure: () => void;
}

/** When the sessions of requests end whose credential an extension has lent, by the headers of the request. */
export const endsAt = new WeakMap<object, number>();

/** A credential and the address that sent it. */
interface PresentedCredential {
  readonly headers: { readonly authorization?: string | undefined };
  readonly ip: string;
}

export class RequestAuthenticator {
  readonly #authenticator: Authenticator;
  readonly #failures: RateLimiter;
  /**
   * Fingerprints of recently accepted credentials. If an address exceeds its limit (a proxy, a shared machine), known
   * callers are still served, so that guessing locks out no caller.
   */
  readonly #good = new LRUCache<string, true>({ max: REMEMBERED });
  readonly #onFailure: () => void;
  readonly #callerRates: RequestLimit;
  readonly #addressRates: RequestLimit;
  readonly #publicRates: RequestLimit;

  constructor(options: RequestAuthenticatorOptions) {
    const { authenticator, failedAuthentications, onFailure } = options;
    this.#authenticator = authenticator;
    this.#onFailure = onFailure;
    this.#callerRates = new RequestLimit("caller", options.requestsPerCaller);
    this.#addressRates = new RequestLimit("address", options.requestsPerAddress);
    this.#publicRates = new RequestLimit("address", options.publicRequestsPerAddress);
    const limit = { limit: failedAuthentications, window: FAILURES_WINDOW };
    this.#failures = new RateLimiter(limit, systemClock);
  }

  /**
   * Returns the caller of a request, or undefined where the route allows anonymous callers.
   * @throws MailroomError 401, 403, 429 or 503
   */
  async identify(request: FastifyRequest, access: Access): Promise<Caller | undefined> {
    this.#addressRates.count(request.ip);
    const caller = access.kind === "public" ? undefined : await this.#identify(request, access);
    if (caller === undefined) this.#publicRates.count(request.ip);
    else this.#callerRates.count(caller.name);
    return caller;
  }

  async #identify(request: FastifyRequest, access: LimitedAccess): Promise<Caller | undefined> {
    if (access.kind === "optional") return this.#recognize(request);
    const principal = await this.#principal(request, access.roles, access.wrongRole);
    const instance = instanceOf(principal);
    if (instance === undefined) throw wrongRole(access.wrongRole, principal);
    return { principal, instance, name: `${instance.role}:${instance.id}` };
  }

  /**
   * Returns a principal of one of these roles, whether or not it owns an instance.
   * @throws MailroomError 401, 403, 429 or 503
   */
  async principal(request: FastifyRequest, roles: readonly Role[]): Promise<Principal> {
    this.#addressRates.count(request.ip);
    const principal = await this.#principal(request, roles, "forbidden");
    this.#callerRates.count(`${principal.role}:${principal.id}`);
    return principal;
  }

  async #principal(
    request: FastifyRequest,
    roles: readonly Role[],
    code: "invalid_role" | "forbidden",
  ): Promise<Principal> {
    const principal = await this.authenticate(request);
    if (!roles.includes(principal.role)) throw wrongRole(code, principal);
    request.principal = principal;
    return principal;
  }

  /** For upgrades: wraps an authenticator with the same limit on failed attempts. */
  guarded(authenticator: Authenticator, ip: string): Authenticator {
    return {
      authenticate: async (bearer) => {
        const presented: PresentedCredential = {
          headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
          ip,
        };
        if (this.#excess(presented) === undefined) return this.#ask(presented, authenticator);
        return { ok: false, reason: "unavailable", detail: TOO_MANY_FAILURES };
      },
    };
  }

  async #recognize(request: FastifyRequest): Promise<Caller | undefined> {
    // Over the limit, a route with optional authentication treats every caller as anonymous, so that it cannot be
    // used for guessing.
    if (this.#excess(request) !== undefined) return undefined;
    const result = await this.#ask(request);
    const instance = result.ok ? instanceOf(result.principal) : undefined;
    if (!result.ok || instance === undefined) return undefined;
    return { principal: result.principal, instance, name: `${instance.role}:${instance.id}` };
  }

  /** @throws MailroomError 401, 429 or 503 */
  async authenticate(request: PresentedCredential): Promise<Principal> {
    const excess = this.#excess(request);
    if (excess !== undefined) throw tooManyFailures(excess);
    const result = await this.#ask(request);
    if (result.ok) return endingWith(result.principal, endsAt.get(request.headers));
    if (result.reason === "unavailable") throw new MailroomError("auth_unavailable", result.detail);
    if (result.reason === "missing") this.#onFailure();
    throw new MailroomError("unauthenticated", result.detail, {
      details: { reason: result.reason },
    });
  }

  /** Authenticates the credential and counts a wrong one. A missing credential is not an attempt. */
  async #ask(
    { headers: { authorization }, ip }: PresentedCredential,
    authenticator = this.#authenticator,
  ): Promise<AuthResult> {
    const result = await authenticateHeader(authenticator, authorization);
    if (result.ok) {
      if (this.#failures.limited && authorization !== undefined) {
        this.#good.set(fingerprint(authorization), true);
      }
    } else if (result.reason !== "missing" && result.reason !== "unavailable") {
      this.#onFailure();
      this.#failures.take(ip);
    }
    return result;
  }

  /**
   * Returns the limit status of an address over its limit of failed attempts; undefined below the limit and for known
   * callers.
   */
  #excess({ headers: { authorization }, ip }: PresentedCredential): LimitStatus | undefined {
    const status = this.#failures.peek(ip);
    if (status.allowed) return undefined;
    return authorization !== undefined && this.#good.has(fingerprint(authorization)) ? undefined : status;
  }
}

function endingWith(principal: Principal, end: number | undefined): Principal {
  const { expiresAt = Number.POSITIVE_INFINITY } = principal;
  return end === undefined || end >= expiresAt ? principal : { ...principal, expiresAt: end };
}

function tooManyFailures({ resetAt }: LimitStatus): MailroomError {
  const seconds = retryAfterSeconds(resetAt - systemClock.now());
  return new MailroomError("too_many_failures", TOO_MANY_FAILURES, {
    retryAfter: seconds * 1_000,
  });
}

function wrongRole(code: "invalid_role" | "forbidden", { role }: Principal): MailroomError {
  return code === "invalid_role"
    ? new MailroomError(code, "invalid role")
    : new MailroomError(code, `role '${role}' may not do this`);
}
