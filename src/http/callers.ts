/** Who calls: the credential, the role, and the limit on wrong guesses. */
import { hash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import {
  type Authenticator,
  type AuthResult,
  authenticateHeader,
  instanceOf,
  type Principal,
  type Role,
} from "../auth/index.js";
import { HttpError } from "./errors.js";
import { Rates } from "./rates.js";
import type { Access, Caller } from "./route.js";

/** Seconds in which failed authentications are counted. */
const FAILURES_WINDOW = 60;
/** How many credentials are remembered as good while their address is over its limit. */
const REMEMBERED = 10_000;
const TOO_MANY_FAILURES = "too many failed authentications from this address";

type LimitedAccess = Exclude<Access, { readonly kind: "public" }>;

export interface CallersOptions {
  readonly authenticator: Authenticator;
  /** Per minute and address; 0 for no limit. */
  readonly failedAuthentications: number;
  /** Requests per minute; 0 for no limit. */
  readonly requestsPerCaller: number;
  readonly requestsPerAddress: number;
  readonly onFailure: () => void;
}

/** A credential, and from where it is shown. */
interface Shown {
  readonly headers: { readonly authorization?: string | undefined };
  readonly ip: string;
}

export class Callers {
  readonly #authenticator: Authenticator;
  readonly #failures: RateLimiterMemory | undefined;
  /** When anybody last failed: while that is long ago, the limiter need not be asked. */
  #lastFailure = Number.NEGATIVE_INFINITY;
  /**
   * Fingerprints of credentials that were good lately. An address that is over its limit (a proxy, a shared machine)
   * goes on being served for those who were already known, so that guessing locks nobody out.
   */
  readonly #good = new LRUCache<string, true>({ max: REMEMBERED });
  readonly #onFailure: () => void;
  readonly #callerRates: Rates;
  readonly #addressRates: Rates;

  constructor(options: CallersOptions) {
    const { authenticator, failedAuthentications, onFailure } = options;
    this.#authenticator = authenticator;
    this.#onFailure = onFailure;
    this.#callerRates = new Rates("caller", options.requestsPerCaller);
    this.#addressRates = new Rates("address", options.requestsPerAddress);
    this.#failures =
      failedAuthentications === 0
        ? undefined
        : new RateLimiterMemory({ points: failedAuthentications, duration: FAILURES_WINDOW });
  }

  /**
   * The caller of a request to a route, or nobody where the route lets anybody in.
   * @throws HttpError 401, 403, 429 or 503
   */
  async identify(request: FastifyRequest, access: Access): Promise<Caller | undefined> {
    if (this.#addressRates.limited) await this.#addressRates.count(request.ip);
    const caller = access.kind === "public" ? undefined : await this.#identify(request, access);
    if (caller !== undefined && this.#callerRates.limited) await this.#callerRates.count(caller.name);
    return caller;
  }

  async #identify(request: FastifyRequest, access: LimitedAccess): Promise<Caller | undefined> {
    if (access.kind === "optional") return this.#recognise(request);
    const principal = await this.#principal(request, access.roles, access.wrongRole);
    const instance = instanceOf(principal);
    if (instance === undefined) throw wrongRole(access.wrongRole, principal);
    return { principal, instance, name: `${instance.role}:${instance.id}` };
  }

  /**
   * Somebody of one of these roles, whether or not they own an instance.
   * @throws HttpError 401, 403, 429 or 503
   */
  async principal(request: FastifyRequest, roles: readonly Role[]): Promise<Principal> {
    if (this.#addressRates.limited) await this.#addressRates.count(request.ip);
    const principal = await this.#principal(request, roles, "forbidden");
    if (this.#callerRates.limited) await this.#callerRates.count(`${principal.role}:${principal.id}`);
    return principal;
  }

  async #principal(
    request: FastifyRequest,
    roles: readonly Role[],
    code: "invalid_role" | "forbidden",
  ): Promise<Principal> {
    const principal = await this.#authenticate(request);
    if (!roles.includes(principal.role)) throw wrongRole(code, principal);
    return principal;
  }

  /** For a door that is no route: an authenticator with the same limit on wrong guesses before it. */
  guarded(authenticator: Authenticator, ip: string): Authenticator {
    return {
      authenticate: async (bearer) => {
        const shown: Shown = {
          headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
          ip,
        };
        if ((await this.#excess(shown)) === undefined) return this.#ask(shown, authenticator);
        return { ok: false, reason: "unavailable", detail: TOO_MANY_FAILURES };
      },
    };
  }

  async #recognise(request: FastifyRequest): Promise<Caller | undefined> {
    // Over the limit nobody is turned away here, but nobody is recognised either: this is no place to go on guessing.
    if ((await this.#excess(request)) !== undefined) return undefined;
    const result = await this.#ask(request);
    const instance = result.ok ? instanceOf(result.principal) : undefined;
    if (!result.ok || instance === undefined) return undefined;
    return { principal: result.principal, instance, name: `${instance.role}:${instance.id}` };
  }

  async #authenticate(request: FastifyRequest): Promise<Principal> {
    const excess = await this.#excess(request);
    if (excess !== undefined) throw tooManyFailures(excess);
    const result = await this.#ask(request);
    if (result.ok) return result.principal;
    if (result.reason === "unavailable") throw new HttpError("auth_unavailable", result.detail);
    if (result.reason === "missing") this.#onFailure();
    throw new HttpError("unauthenticated", result.detail, {
      details: { reason: result.reason },
      headers: { "www-authenticate": "Bearer" },
    });
  }

  /** Whose credential it is. A wrong one is counted; whoever shows none at all is not guessing. */
  async #ask(
    { headers: { authorization }, ip }: Shown,
    authenticator = this.#authenticator,
  ): Promise<AuthResult> {
    const result = await authenticateHeader(authenticator, authorization);
    if (result.ok) {
      if (this.#failures !== undefined && authorization !== undefined) {
        this.#good.set(fingerprint(authorization), true);
      }
    } else if (result.reason !== "missing" && result.reason !== "unavailable") {
      this.#onFailure();
      await this.#countFailure(ip);
    }
    return result;
  }

  /** How far an address is over its limit of wrong guesses; nothing where it is not, or its caller is known. */
  async #excess({ headers: { authorization }, ip }: Shown): Promise<RateLimiterRes | undefined> {
    if (performance.now() - this.#lastFailure > FAILURES_WINDOW * 1000) return undefined;
    const failed = (await this.#failures?.get(ip)) ?? null;
    if (failed === null || failed.remainingPoints > 0) return undefined;
    return authorization !== undefined && this.#good.has(fingerprint(authorization)) ? undefined : failed;
  }

  async #countFailure(address: string): Promise<void> {
    this.#lastFailure = performance.now();
    try {
      await this.#failures?.consume(address);
    } catch (rejected) {
      if (rejected instanceof RateLimiterRes) return;
      throw rejected;
    }
  }
}

function fingerprint(credential: string): string {
  return hash("sha256", credential, "base64");
}

function tooManyFailures(failed: RateLimiterRes): HttpError {
  const seconds = Math.max(1, Math.ceil(failed.msBeforeNext / 1000));
  return new HttpError("too_many_failures", TOO_MANY_FAILURES, {
    headers: { "retry-after": String(seconds) },
  });
}

function wrongRole(code: "invalid_role" | "forbidden", { role }: Principal): HttpError {
  return code === "invalid_role"
    ? new HttpError(code, "invalid role", { headers: { "www-authenticate": "Bearer" } })
    : new HttpError(code, `role '${role}' may not do this`);
}
