/** Retries model calls after transient failures. */
import {
  hasCode,
  MailroomError,
  type Random,
  type RetryPolicy,
  retry,
  urgentClock,
} from "../../base/index.js";
import { TurnHeldError } from "../../engine/index.js";
import { type Failure, failureOf } from "./failures.js";

export interface RetryParts {
  /** The model, for messages. */
  readonly name: string;
  readonly maxRetries: number;
  readonly signal: AbortSignal;
  readonly now: () => number;
  readonly random: Random;
  readonly policy: RetryPolicy;
  /** Receives each failure, also those that are retried. */
  readonly onFailure?: (failure: Failure) => void;
}

export const MODEL_BACKOFF: RetryPolicy = { base: 500, factor: 2, cap: 30_000, jitter: 0.5 };

/** Share of `Retry-After` that is added at random, so that callers do not return together. */
const SPREAD = 0.25;

/** The error of a call that is not retried. Users see its message. */
function modelCallError(name: string, failure: Failure, attempts: number): MailroomError {
  const { kind, problem } = failure;
  const tried = attempts > 1 ? ` after ${attempts} attempts` : "";
  // The provider's words are reported without the key where the call was made; here they might contain it.
  const options = { details: { reason: kind } };
  if (kind === "credentials") return new MailroomError("no_credentials", `${name}: ${problem}`, options);
  return new MailroomError(
    "model_failed",
    kind === "too_long"
      ? `${name}: the prompt does not fit into the model's context (${problem})`
      : `${name} could not be called${tried}: ${problem}`,
    options,
  );
}

/** Whether a model call failed for this reason. */
export function failedBecause(error: unknown, ...kinds: readonly Failure["kind"][]): boolean {
  if (!hasCode(error, "model_failed", "no_credentials")) return false;
  return kinds.some((kind) => error.details.reason === kind);
}

/**
 * @throws MailroomError `model_failed` or `no_credentials`, or the reason of the signal
 */
export async function withRetries<T>(attempt: () => Promise<T>, parts: RetryParts): Promise<T> {
  const { name, maxRetries, signal, now, random, policy, onFailure } = parts;
  return retry(attempt, {
    policy,
    random,
    signal,
    clock: urgentClock,
    classify: (error, failures) => {
      // Not a failure of the call: it may not be made.
      if (error instanceof TurnHeldError) throw error;
      const failure = failureOf(error, now());
      onFailure?.(failure);
      if (failure.kind !== "transient" || failures > maxRetries) {
        throw modelCallError(name, failure, failures);
      }
      const { retryAfter } = failure;
      return retryAfter === undefined ? "retry" : { after: retryAfter * (1 + SPREAD * random()) };
    },
  });
}
