/** ASP: Rate Limiting. Sliding windows in memory, bounded in number, counted after the sender is authenticated. */
import { LRUCache } from "lru-cache";

export interface RateLimit {
  /** Count per window: messages, requests or bytes. */
  readonly count: number;
  /** Milliseconds. */
  readonly window: number;
}

export interface RateLimits {
  readonly sender: RateLimit;
  /** Bytes of one sender's messages, to protect the disk. */
  readonly senderBytes: RateLimit;
  readonly swarm: RateLimit;
  readonly join: RateLimit;
  /** Refused requests of one address, to slow down guessing. */
  readonly failure: RateLimit;
}

export interface LimitStatus {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** When the window has capacity again, in milliseconds since the epoch. */
  readonly resetAt: number;
}

interface Entry {
  readonly at: number;
  readonly weight: number;
}

/** What one caller consumed in the window. */
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

  /** Consumes `weight` if the window has capacity for it. */
  consume(key: string, now: number, weight = 1): LimitStatus {
    const limit = this.check(key, now, weight);
    if (!limit.allowed) return limit;
    const taken = this.#taken.get(key) ?? { entries: [], total: 0 };
    taken.entries.push({ at: now, weight });
    taken.total += weight;
    this.#taken.set(key, taken);
    return { ...limit, remaining: limit.remaining - weight };
  }

  check(key: string, now: number, weight = 1): LimitStatus {
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

/** The entry whose expiry frees enough capacity; the oldest entry if there is enough already. */
function lastInTheWay(entries: readonly Entry[], excess: number): Entry | undefined {
  let freed = 0;
  for (const entry of entries) {
    freed += entry.weight;
    if (freed >= excess) return entry;
  }
  return entries.at(-1);
}
