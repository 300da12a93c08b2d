/** How long to wait before the next attempt. Pure: randomness and time are handed in. */

export interface BackoffPolicy {
  /** Milliseconds after the first failure. */
  readonly base: number;
  readonly factor: number;
  /** No wait is longer, jitter included. */
  readonly cap: number;
  /** Share of the wait that is random, 0 to 1: keeps those who failed together from coming back together. */
  readonly jitter: number;
}

export const DEFAULT_BACKOFF: BackoffPolicy = { base: 1_000, factor: 2, cap: 300_000, jitter: 0.5 };

/** A number in [0, 1). */
export type Random = () => number;

/** `failures` counts from 1. The wait lies between `1 - jitter` of the nominal one and the whole of it. */
export function backoffDelay(policy: BackoffPolicy, failures: number, random: Random): number {
  // The exponent is bounded, because the power of a long outage would be Infinity, and Infinity * 0 is NaN.
  const nominal = Math.min(policy.cap, policy.base * policy.factor ** Math.min(failures - 1, 64));
  return Math.round(nominal * (1 - policy.jitter * random()));
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
