/** Repeated attempts, and how long to wait between them. Randomness and time are passed in. */
import { sleep, type Timers } from "./time.js";

export interface RetryPolicy {
  /** Milliseconds after the first failure. */
  readonly base: number;
  readonly factor: number;
  /** No wait is longer, jitter included. */
  readonly cap: number;
  /** Share of the wait that is random, 0 to 1: keeps those who failed together from coming back together. */
  readonly jitter: number;
}

export const DEFAULT_RETRY_POLICY: RetryPolicy = { base: 1_000, factor: 2, cap: 300_000, jitter: 0.5 };

/** A number in [0, 1). */
export type Random = () => number;

/** `failures` counts from 1. The wait lies between `1 - jitter` of the nominal one and the whole of it. */
export function retryDelay(policy: RetryPolicy, failures: number, random: Random): number {
  // The exponent is bounded, because the power of a long outage would be Infinity, and Infinity * 0 is NaN.
  const nominal = Math.min(policy.cap, policy.base * policy.factor ** Math.min(failures - 1, 64));
  return Math.round(nominal * (1 - policy.jitter * random()));
}

/** What a failure means: give up, wait as the policy says, or wait this many milliseconds. */
export type RetryDecision = "stop" | "retry" | { readonly after: number };

export interface RetryOptions {
  readonly policy: RetryPolicy;
  readonly clock: Timers;
  readonly random: Random;
  readonly signal?: AbortSignal;
  /** Default: no limit. */
  readonly maxAttempts?: number;
  /** `failures` counts from 1. */
  readonly classify: (error: unknown, failures: number) => RetryDecision;
}

/**
 * Tries until an attempt succeeds.
 * @throws the signal's reason when that fired, else what the last attempt threw
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { policy, clock, random, signal, maxAttempts = Number.POSITIVE_INFINITY, classify } = options;
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      const decision = classify(error, failures);
      if (decision === "stop" || failures >= maxAttempts) throw error;
      const delay = decision === "retry" ? retryDelay(policy, failures, random) : decision.after;
      await sleep(clock, delay, signal);
    }
  }
}

/** Some servers send a point in time where seconds belong; no sane wait is this long. */
const ABSOLUTE_FROM = 1_000_000_000;

/**
 * `Retry-After` in milliseconds from `now`: seconds, an HTTP date, or (a mistake that is out there) seconds since the
 * epoch. `undefined` if it says nothing.
 */
export function parseRetryAfter(text: string | undefined, now: number, cap = 300_000): number | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const wait = /^\d{1,15}$/u.test(trimmed) ? fromSeconds(Number(trimmed), now) : Date.parse(trimmed) - now;
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), cap);
}

function fromSeconds(seconds: number, now: number): number {
  return seconds >= ABSOLUTE_FROM ? seconds * 1_000 - now : seconds * 1_000;
}

/** A wait as `Retry-After` says it: whole seconds, at least one. */
export function retryAfterSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}
