/**
 * The reference's external service: AUTH_ENDPOINT exchanges the caller's key for a token, and TOKEN_INFO_ENDPOINT
 * returns the token's owner. Without the first, the key goes to the second directly.
 */
import { z } from "zod";
import type { Clock, Report } from "../base/index.js";
import { ExpiringCache, fingerprint } from "./cache.js";
import { fetchText, type TextAnswer } from "./fetch-text.js";
import { reasonOf } from "./reason.js";
import {
  type Authenticator,
  type AuthFailure,
  type AuthResult,
  failure,
  principalFrom,
  rejectMalformed,
} from "./result.js";

export interface ServiceOptions {
  /** The login step; absent for a service that accepts the callers' keys directly. */
  readonly authEndpoint?: string | undefined;
  readonly tokenInfoEndpoint: string;
  readonly clock: Pick<Clock, "now">;
  /** Milliseconds for each request to the service. Default 5 s. */
  readonly timeout?: number | undefined;
  /** Milliseconds that an accepted key is cached, and so the longest that a revoked key still works. Default 60 s. */
  readonly cacheTime?: number | undefined;
  /** The same for a rejected key. Default 5 s. */
  readonly refusalCacheTime?: number | undefined;
  /** Number of cached answers of each kind. Default 10,000. */
  readonly cacheSize?: number | undefined;
  /** Concurrent requests for keys; more are `unavailable`. Default 64. */
  readonly maxPending?: number | undefined;
  readonly report?: Report | undefined;
}

const loginAnswer = z.object({ token: z.string().min(1) });
// Some services use numbers as ids. Other fields (the reference repeats the key) are dropped.
const tokenInfo = z.object({ role: z.string(), id: z.union([z.string(), z.number().transform(String)]) });

const LARGEST_ANSWER = 64 * 1024;

export function serviceAuthenticator(options: ServiceOptions): Authenticator {
  const { clock, authEndpoint, tokenInfoEndpoint } = options;
  const { timeout = 5_000, cacheTime = 60_000, refusalCacheTime = 5_000 } = options;
  const { cacheSize = 10_000, maxPending = 64, report = () => {} } = options;
  // Separate, so that guessed keys cannot evict accepted ones.
  const accepted = new ExpiringCache<AuthResult>(cacheSize, clock);
  const refused = new ExpiringCache<AuthResult>(cacheSize, clock);
  const pending = new Map<string, Promise<AuthResult>>();

  /** An answer of the service, or the failure to get a usable one. */
  async function ask<Answer>(
    step: { readonly name: string; readonly method: "GET" | "POST"; readonly url: string },
    bearer: string,
    shape: z.ZodType<Answer>,
  ): Promise<{ readonly ok: true; readonly answer: Answer } | AuthFailure> {
    const unavailable = (problem: string): AuthFailure => {
      report({ code: "auth_service", message: `the ${step.name} endpoint ${problem}` });
      return failure("unavailable");
    };
    let response: TextAnswer;
    try {
      const headers = { authorization: `Bearer ${bearer}`, accept: "application/json" };
      response = await fetchText(
        step.url,
        { method: step.method, headers },
        { timeout, size: LARGEST_ANSWER },
      );
    } catch (error) {
      return unavailable(`did not answer: ${reasonOf(error)}`);
    }
    if (response.status === 401) return failure("unknown");
    if (response.status !== 200) return unavailable(`answered with status ${response.status}`);
    const parsed = shape.safeParse(parseJson(response.text));
    return parsed.success
      ? { ok: true, answer: parsed.data }
      : unavailable("answered with an unexpected body");
  }

  async function lookUp(key: string): Promise<AuthResult> {
    let token = key;
    if (authEndpoint !== undefined) {
      const login = await ask({ name: "login", method: "POST", url: authEndpoint }, key, loginAnswer);
      if (!login.ok) return login;
      token = login.answer.token;
    }
    const info = await ask({ name: "token info", method: "GET", url: tokenInfoEndpoint }, token, tokenInfo);
    return info.ok ? principalFrom("service", info.answer) : info;
  }

  function remember(print: string, result: AuthResult): AuthResult {
    if (result.ok) accepted.set(print, result, clock.now() + cacheTime);
    // A missing answer says nothing about the key.
    else if (result.reason !== "unavailable") refused.set(print, result, clock.now() + refusalCacheTime);
    return result;
  }

  return {
    async authenticate(bearer) {
      const malformed = rejectMalformed(bearer);
      if (malformed !== undefined || bearer === undefined) return malformed ?? failure("missing");
      const print = fingerprint(bearer);
      const known = accepted.get(print) ?? refused.get(print);
      if (known !== undefined) return known;
      const running = pending.get(print);
      if (running !== undefined) return running;
      if (pending.size >= maxPending) {
        report({
          code: "auth_service",
          message: `${maxPending} keys already wait for an answer`,
        });
        return failure("unavailable");
      }
      const lookingUp = lookUp(bearer)
        .then((result) => remember(print, result))
        .finally(() => pending.delete(print));
      pending.set(print, lookingUp);
      return lookingUp;
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
