/** How many requests one caller or one address may make in a minute. Both limits are off unless configured. */
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { HttpError } from "./errors.js";

export class Rates {
  readonly #whose: string;
  readonly #limiter: RateLimiterMemory | undefined;

  /** @param perMinute 0 for no limit */
  constructor(whose: "caller" | "address", perMinute: number) {
    this.#whose = whose;
    this.#limiter = perMinute === 0 ? undefined : new RateLimiterMemory({ points: perMinute, duration: 60 });
  }

  /** Whether there is anything to count for. */
  get limited(): boolean {
    return this.#limiter !== undefined;
  }

  /** @throws HttpError 429 with `Retry-After` */
  async count(key: string): Promise<void> {
    try {
      await this.#limiter?.consume(key);
    } catch (rejected) {
      if (!(rejected instanceof RateLimiterRes)) throw rejected;
      const seconds = Math.max(1, Math.ceil(rejected.msBeforeNext / 1000));
      throw new HttpError("too_many_requests", `this ${this.#whose} makes more requests than it may`, {
        headers: { "retry-after": String(seconds) },
      });
    }
  }
}
