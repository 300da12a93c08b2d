/** Asks again while that can help. */
import { type BackoffPolicy, backoffDelay, type Random } from "../../net/index.js";
import { type Failure, failureOf } from "./failures.js";

export interface RetryParts {
  readonly maxRetries: number;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly random: Random;
  readonly policy: BackoffPolicy;
}

export const MODEL_BACKOFF: BackoffPolicy = { base: 500, factor: 2, cap: 30_000, jitter: 0.5 };

/** Thrown when a call failed for good. */
export class ModelCallError extends Error {
  override readonly name = "ModelCallError";
  readonly code = "model_call";
  readonly failure: Failure;
  readonly attempts: number;
  constructor(failure: Failure, attempts: number) {
    super(failure.message);
    this.failure = failure;
    this.attempts = attempts;
  }
}

/**
 * @throws ModelCallError when it failed for good, or the signal's reason when that fired.
 */
export async function withRetries<T>(attempt: () => Promise<T>, parts: RetryParts): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      parts.signal.throwIfAborted();
      const failure = failureOf(error, parts.now());
      if (failure.kind !== "transient" || failures > parts.maxRetries) {
        throw new ModelCallError(failure, failures);
      }
      const delay = failure.retryAfter ?? backoffDelay(parts.policy, failures, parts.random);
      await pause(delay, parts.signal);
    }
  }
}

/** Waits, unless the signal fires first; then it throws the signal's reason. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}
