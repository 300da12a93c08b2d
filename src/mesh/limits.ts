/** ASP: Rate Limiting. Sliding windows in memory, bounded in number, counted after the sender is authenticated. */
import { LRUCache } from "lru-cache";

export interface RateLimit {
  /** How many in a window; bytes, where it is they that are limited. */
  readonly count: number;
  /** Milliseconds. */
  readonly window: number;
}

export interface RateLimits {
  readonly sender: RateLimit;
  /** The same sender's messages in bytes: what it can fill of our disk. */
  readonly senderBytes: RateLimit;
  readonly swarm: RateLimit;
  readonly join: RateLimit;
  /** Requests of one address that were refused: what guessing costs. */
  readonly failure: RateLimit;
}

export const DEFAULT_RATE_LIMITS: RateLimits = {
  sender: { count: 60, window: 60_000 },
  senderBytes: { count: 8 * 1024 * 1024, window: 60_000 },
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

interface Entry {
  readonly at: number;
  readonly weight: number;
}

/** What one caller has taken in the window. */
interface Taken {
  readonly entries: Entry[];
  total: number;
}

export class RateLimiter {
  readonly #limit: RateLimit;
  readonly #taken: LRUCache<string, Taken>;

  constructor(limit: RateLimit, max = 10_000) {
    this.#limit = limit;
    this.#taken = new LRUCache({ max });
  }

  /** Counts one, or as much as it weighs, unless there is no room for it. */
  take(key: string, now: number, weight = 1): Standing {
    const standing = this.look(key, now, weight);
    if (!standing.allowed) return standing;
    const taken = this.#taken.get(key) ?? { entries: [], total: 0 };
    taken.entries.push({ at: now, weight });
    taken.total += weight;
    this.#taken.set(key, taken);
    return { ...standing, remaining: standing.remaining - weight };
  }

  look(key: string, now: number, weight = 1): Standing {
    const { count, window } = this.#limit;
    const taken = this.#taken.get(key) ?? { entries: [], total: 0 };
    const { entries } = taken;
    const live = entries.findIndex(({ at }) => at > now - window);
    for (const old of entries.splice(0, live < 0 ? entries.length : live)) taken.total -= old.weight;
    const excess = taken.total + weight - count;
    return {
      allowed: excess <= 0,
      limit: count,
      remaining: count - taken.total,
      resetAt: (lastInTheWay(entries, excess)?.at ?? now) + window,
    };
  }
}

/** The entry with whose leaving there is room again; the oldest, if there is room already. */
function lastInTheWay(entries: readonly Entry[], excess: number): Entry | undefined {
  let freed = 0;
  for (const entry of entries) {
    freed += entry.weight;
    if (freed >= excess) return entry;
  }
  return entries.at(-1);
}
