/** ASP: Rate Limiting. Sliding windows in memory, bounded in number, counted after the sender is authenticated. */
import { LRUCache } from "lru-cache";

export interface RateLimit {
  readonly count: number;
  /** Milliseconds. */
  readonly window: number;
}

export interface RateLimits {
  readonly sender: RateLimit;
  readonly swarm: RateLimit;
  readonly join: RateLimit;
  /** Requests of one address that were refused: what guessing costs. */
  readonly failure: RateLimit;
}

export const DEFAULT_RATE_LIMITS: RateLimits = {
  sender: { count: 60, window: 60_000 },
  swarm: { count: 100, window: 60_000 },
  join: { count: 10, window: 3_600_000 },
  failure: { count: 120, window: 60_000 },
};

export interface Standing {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** When the window has room again, in milliseconds since the epoch. */
  readonly resetAt: number;
}

export class RateLimiter {
  readonly #limit: RateLimit;
  readonly #times: LRUCache<string, number[]>;

  constructor(limit: RateLimit, max = 10_000) {
    this.#limit = limit;
    this.#times = new LRUCache({ max });
  }

  /** Counts one, unless there is no room for it. */
  take(key: string, now: number): Standing {
    const standing = this.look(key, now);
    if (!standing.allowed) return standing;
    const times = this.#times.get(key) ?? [];
    times.push(now);
    this.#times.set(key, times);
    return { ...standing, remaining: standing.remaining - 1 };
  }

  look(key: string, now: number): Standing {
    const { count, window } = this.#limit;
    const times = this.#times.get(key) ?? [];
    const live = times.findIndex((time) => time > now - window);
    times.splice(0, live < 0 ? times.length : live);
    const oldest = times[0] ?? now;
    return {
      allowed: times.length < count,
      limit: count,
      remaining: count - times.length,
      resetAt: oldest + window,
    };
  }
}
