import type { Clock } from "./time.js";

export interface RateLimitOptions {
  /** How much one key may take in a window; 0 for no limit. */
  readonly limit: number;
  /** Milliseconds. */
  readonly window: number;
  /** Keys that are remembered; beyond that the oldest windows are forgotten. Default: 10,000. */
  readonly maxKeys?: number;
}

export interface LimitStatus {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** When the window ends, in milliseconds since the epoch. */
  readonly resetAt: number;
}

interface Window {
  readonly endsAt: number;
  taken: number;
}

/**
 * Counts in fixed windows, each of which begins with the first use of its key. Across the end of a window up to twice
 * the limit can pass.
 */
export class RateLimiter {
  readonly #options: RateLimitOptions;
  readonly #clock: Pick<Clock, "now">;
  /** In the order in which they end. */
  readonly #windows = new Map<string, Window>();

  constructor(options: RateLimitOptions, clock: Pick<Clock, "now">) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Whether there is anything to count. */
  get limited(): boolean {
    return this.#options.limit > 0;
  }

  /** Counts one use, or as much as it weighs, unless there is no room for it. */
  take(key: string, weight = 1): LimitStatus {
    const status = this.peek(key, weight);
    if (!status.allowed || !this.limited) return status;
    const window = this.#windows.get(key) ?? this.#begin(key, status.resetAt);
    window.taken += weight;
    return { ...status, remaining: status.remaining - weight };
  }

  /** What `take` would say. */
  peek(key: string, weight = 1): LimitStatus {
    const { limit, window } = this.#options;
    const now = this.#clock.now();
    this.#forgetEnded(now);
    const { taken, endsAt } = this.#windows.get(key) ?? { taken: 0, endsAt: now + window };
    const allowed = limit === 0 || taken + weight <= limit;
    return { allowed, limit, remaining: limit - taken, resetAt: endsAt };
  }

  #begin(key: string, endsAt: number): Window {
    const { maxKeys = 10_000 } = this.#options;
    const [oldest] = this.#windows.keys();
    if (oldest !== undefined && this.#windows.size >= maxKeys) this.#windows.delete(oldest);
    const window = { endsAt, taken: 0 };
    this.#windows.set(key, window);
    return window;
  }

  #forgetEnded(now: number): void {
    for (const [key, { endsAt }] of this.#windows) {
      if (endsAt > now) return;
      this.#windows.delete(key);
    }
  }
}
