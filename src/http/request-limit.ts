/** Limits the requests of one caller or one address per minute. */

import { MailroomError, RateLimiter, retryAfterSeconds, systemClock } from "../base/index.js";

export class RequestLimit {
  readonly #whose: string;
  readonly #limiter: RateLimiter;

  /** @param perMinute 0 for no limit */
  constructor(whose: "caller" | "address", perMinute: number) {
    this.#whose = whose;
    this.#limiter = new RateLimiter({ limit: perMinute, window: 60_000 }, systemClock);
  }

  /** @throws MailroomError 429 with `Retry-After` */
  count(key: string): void {
    if (!this.#limiter.limited) return;
    const { allowed, resetAt } = this.#limiter.take(key);
    if (allowed) return;
    const seconds = retryAfterSeconds(resetAt - systemClock.now());
    throw new MailroomError("too_many_requests", `this ${this.#whose} exceeded its request limit`, {
      retryAfter: seconds * 1_000,
    });
  }
}
