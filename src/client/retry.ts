/** When to try again, and how long to wait before. */
import { MailClientError, MailConnectionError } from "./errors.js";

/** Milliseconds before the first repetition; each later one waits twice as long. */
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 5_000;
/** The longest that a server may make us wait. */
const LONGEST_RETRY_AFTER = 60_000;

/** Refusals that say "not now". */
const NOT_NOW: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export function canTryAgain(error: unknown): boolean {
  if (error instanceof MailConnectionError) return error.code === "unreachable";
  return error instanceof MailClientError && NOT_NOW.has(error.status);
}

/** A gateway that lost the server (502, 504) cannot know; these two say that nothing was done. */
export function wasNotCarriedOut(error: unknown): boolean {
  return error instanceof MailClientError && (error.status === 429 || error.status === 503);
}

/** Milliseconds. Spread out at random, so that a thousand clients of a restarted server do not come back as one. */
export function backoff(failures: number, error: unknown, first: number = FIRST_PAUSE): number {
  if (error instanceof MailClientError && error.retryAfter !== undefined) {
    return Math.min(error.retryAfter * 1000, LONGEST_RETRY_AFTER);
  }
  const longest = Math.min(first * 2 ** (failures - 1), LONGEST_PAUSE);
  return longest * (0.5 + Math.random() / 2);
}

/** @throws the signal's reason */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
