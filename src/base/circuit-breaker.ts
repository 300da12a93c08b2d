/**
 * A circuit per target: after several failures in a row it opens and nothing is sent; after a pause one
 * attempt is let through, and that one decides.
 *
 * Terms
 * - closed: attempts pass. open: none pass before `retryAt`. probing: one runs, all others wait.
 */
import { type Random, type RetryPolicy, retryDelay } from "./retry.js";

export interface CircuitOptions {
  /** Failures in a row that open it. Default 5. */
  readonly threshold?: number;
  /** How long it stays open, by the number of times it opened in a row. Default 1 s doubling to 60 s. */
  readonly pause?: RetryPolicy;
  readonly random?: Random;
}

export type Admission =
  | { readonly admitted: true }
  /** `retryAt` is absent while a running attempt will decide. */
  | { readonly admitted: false; readonly retryAt?: number };

interface State {
  failures: number;
  /** Times it opened in a row. */
  opened: number;
  retryAt: number;
  probing: boolean;
}

const DEFAULT_PAUSE: RetryPolicy = { base: 1_000, factor: 2, cap: 60_000, jitter: 0.2 };

export class CircuitBreaker {
  readonly #threshold: number;
  readonly #pause: RetryPolicy;
  readonly #random: Random;
  /** Only targets that failed lately: one that works is not remembered, so memory follows trouble, not traffic. */
  readonly #states = new Map<string, State>();

  constructor({ threshold = 5, pause = DEFAULT_PAUSE, random = Math.random }: CircuitOptions = {}) {
    this.#threshold = threshold;
    this.#pause = pause;
    this.#random = random;
  }

  /** Asked before each attempt; an admitted attempt must be followed by `succeeded`, `failed` or `abandoned`. */
  admit(target: string, now: number): Admission {
    const state = this.#states.get(target);
    if (state === undefined || state.opened === 0) return { admitted: true };
    if (state.probing) return { admitted: false };
    if (now < state.retryAt) return { admitted: false, retryAt: state.retryAt };
    state.probing = true;
    return { admitted: true };
  }

  /** The target answered, whatever it said. */
  succeeded(target: string): void {
    this.#states.delete(target);
  }

  failed(target: string, now: number): void {
    const state = this.#states.get(target) ?? { failures: 0, opened: 0, retryAt: 0, probing: false };
    this.#states.set(target, state);
    state.failures += 1;
    const probed = state.probing;
    state.probing = false;
    // Attempts that were running when it opened add no information.
    if (state.opened > 0 && !probed) return;
    if (state.failures < this.#threshold) return;
    state.opened += 1;
    state.retryAt = now + retryDelay(this.#pause, state.opened, this.#random);
  }

  /** The attempt ended without telling anything about the target. */
  abandoned(target: string): void {
    const state = this.#states.get(target);
    if (state !== undefined) state.probing = false;
  }

  isOpen(target: string): boolean {
    return (this.#states.get(target)?.opened ?? 0) > 0;
  }

  /** Closes the circuit because a health check succeeded: the next attempt passes immediately. */
  reset(target: string): void {
    this.#states.delete(target);
  }
}
