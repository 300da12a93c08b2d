import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../base/index.js";

/** The cache key of a credential, so that a memory dump does not contain the credential itself. */
export function fingerprint(credential: string): string {
  return hash("sha256", credential, "base64");
}

/** Caches a bounded number of results, each until its own expiry; drops the least recently used first. */
export class ExpiringCache<Value extends object> {
  readonly #entries: LRUCache<string, { readonly value: Value; readonly until: number }>;
  readonly #clock: Pick<Clock, "now">;

  constructor(max: number, clock: Pick<Clock, "now">) {
    this.#entries = new LRUCache({ max: Math.max(1, max) });
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > this.#clock.now()) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** `until` is exclusive. An expired result is not cached. */
  set(key: string, value: Value, until: number): void {
    if (until > this.#clock.now()) this.#entries.set(key, { value, until });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
