/**
 * Limits the calls of one provider with one key, for all agents of the process: calls at once, and calls per minute. When
 * the provider limits us, all calls wait until it allows more, and fewer run at once from then on.
 */
import { type Random, sleep, urgentClock } from "../../base/index.js";
import { failureOf } from "./failures.js";

export interface GateLimits {
  /** Calls at once. */
  readonly concurrency: number;
  /** 0: no limit. */
  readonly requestsPerMinute: number;
}

/** As in the settings of a server. */
export const DEFAULT_GATE_LIMITS: GateLimits = { concurrency: 64, requestsPerMinute: 0 };

export interface GateParts {
  readonly limits: GateLimits;
  readonly now: () => number;
  readonly random: Random;
}

/** Pause after a limit without `Retry-After`, in milliseconds. */
const PAUSE = 250;

/** Calls that wait start over this share of a pause after it, and not all at once. */
const SPREAD = 0.25;

export class Gate {
  readonly #parts: GateParts;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** Calls at once at the moment: halved by a limit of the provider, and raised by successes. */
  #allowed: number;
  #closedUntil = 0;
  /** Calls that may start now, if they are limited per minute. */
  #tokens: number;
  #filledAt: number;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#allowed = parts.limits.concurrency;
    this.#tokens = Math.max(1, parts.limits.requestsPerMinute / 60);
    this.#filledAt = parts.now();
  }

  /** Milliseconds until the provider allows more calls. */
  get closedFor(): number {
    return Math.max(0, this.#closedUntil - this.#parts.now());
  }

  /** Makes a call when the limits allow it. @throws the signal's reason, or what the call throws */
  async run<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#enter(signal);
    try {
      const result = await call();
      this.#allowed = Math.min(this.#parts.limits.concurrency, this.#allowed + 1 / this.#allowed);
      return result;
    } catch (error) {
      this.#slowDown(error);
      throw error;
    } finally {
      this.#running--;
      this.#next();
    }
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#hasRoom() && this.#waiting.length === 0) this.#running++;
    else await this.#turn(signal);
    try {
      for (let wait = this.#pause(); wait > 0; wait = this.#pause()) await sleep(urgentClock, wait, signal);
      this.#tokens--;
    } catch (error) {
      this.#running--;
      this.#next();
      throw error;
    }
  }

  /** Waits in order of arrival. The one that is woken counts as running. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        const at = this.#waiting.indexOf(enter);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  #hasRoom(): boolean {
    return this.#running < Math.max(1, Math.floor(this.#allowed));
  }

  #next(): void {
    while (this.#hasRoom()) {
      const enter = this.#waiting.shift();
      if (enter === undefined) return;
      this.#running++;
      enter();
    }
  }

  /** Milliseconds to wait before the next call may start. */
  #pause(): number {
    const closed = this.closedFor;
    if (closed > 0) return closed * (1 + SPREAD * this.#parts.random()) + 1;
    const { requestsPerMinute: rate } = this.#parts.limits;
    if (rate === 0) return 0;
    const now = this.#parts.now();
    const perMillisecond = rate / 60_000;
    this.#tokens = Math.min(Math.max(1, rate / 60), this.#tokens + (now - this.#filledAt) * perMillisecond);
    this.#filledAt = now;
    return this.#tokens >= 1 ? 0 : Math.ceil((1 - this.#tokens) / perMillisecond);
  }

  #slowDown(error: unknown): void {
    const now = this.#parts.now();
    const { isLimit, retryAfter = PAUSE } = failureOf(error, now);
    if (isLimit !== true) return;
    // Calls that ran at the same time report the same limit once.
    if (this.#closedUntil <= now) this.#allowed = Math.max(1, Math.floor(this.#allowed / 2));
    this.#closedUntil = Math.max(this.#closedUntil, now + retryAfter);
  }
}

/** The gates of a process, by provider and key. */
export class Gates {
  readonly #gates = new Map<string, Gate>();

  /** @param key identifies the provider and the key; it is never shown. */
  of(key: string, parts: GateParts): Gate {
    const known = this.#gates.get(key);
    if (known !== undefined) return known;
    const gate = new Gate(parts);
    // Callers' tokens have gates as well, and there may be many of them.
    if (this.#gates.size >= MAX_GATES) this.#gates.delete(this.#gates.keys().next().value ?? "");
    this.#gates.set(key, gate);
    return gate;
  }
}

const MAX_GATES = 1_000;
