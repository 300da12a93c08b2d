/** When to retry, and after how long. */
import { retryDelay } from "../base/index.js";
import { MailClientError, MailConnectionError } from "./errors.js";

/** Milliseconds before the first retry; each later one waits twice as long. */
const FIRST_DELAY = 200;
const MAX_DELAY = 5_000;
/** Maximum wait that a server can request. */
const MAX_RETRY_AFTER = 60_000;

/** Statuses that ask for a retry. */
const RETRY_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function canRetry(error: unknown): boolean {
  if (error instanceof MailConnectionError) return error.code === "unreachable";
  return error instanceof MailClientError && RETRY_STATUSES.has(error.status);
}

/** With 429 and 503 the server did nothing. A gateway that lost the server (502, 504) cannot tell. */
export function wasNotExecuted(error: unknown): boolean {
  return error instanceof MailClientError && (error.status === 429 || error.status === 503);
}

/** Returns the delay in milliseconds. Randomized, so that many clients of a restarted server do not return at the same time. */
export function backoff(failures: number, error: unknown, first: number = FIRST_DELAY): number {
  if (error instanceof MailClientError && error.retryAfter !== undefined) {
    return Math.min(error.retryAfter, MAX_RETRY_AFTER);
  }
  return retryDelay({ base: first, factor: 2, cap: MAX_DELAY, jitter: 0.5 }, failures, Math.random);
}
