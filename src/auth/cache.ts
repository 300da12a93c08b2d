import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../engine/ports.js";

/** What a credential is remembered by: nobody who reads our memory finds the credential itself. */
export function fingerprint(credential: string): string {
  return hash("sha256", credential, "base64");
}

/** Remembers a bounded number of answers, each until its own time; the least used goes first. */
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

  /** `until` is exclusive. What is already over is not remembered. */
  set(key: string, value: Value, until: number): void {
    if (until > this.#clock.now()) this.#entries.set(key, { value, until });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
