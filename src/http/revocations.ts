/** What is open under a token ends when the token is revoked, not only what is asked for later. */
import { LRUCache } from "lru-cache";
import type { Authenticator, Principal } from "../auth/index.js";

/** Tokens remembered as revoked: those whose callers were let in just before. */
const REMEMBERED = 1_000;

export class Revocations {
  readonly #open = new Map<string, Set<() => void>>();
  readonly #revoked = new LRUCache<string, true>({ max: REMEMBERED });
  readonly #forget: (() => void) | undefined;

  constructor(authenticator: Authenticator) {
    this.#forget = authenticator.onRevoked?.((tokenId) => {
      this.#revoked.set(tokenId, true);
      for (const end of this.#open.get(tokenId) ?? []) end();
    });
  }

  /** Calls back when the caller's token is revoked; at once if it was. The returned function takes the callback away. */
  watch({ tokenId }: Principal, end: () => void): () => void {
    if (tokenId === undefined) return () => {};
    if (this.#revoked.has(tokenId)) {
      end();
      return () => {};
    }
    const ends = this.#open.get(tokenId) ?? new Set();
    this.#open.set(tokenId, ends);
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#open.get(tokenId) === ends) this.#open.delete(tokenId);
    };
  }

  close(): void {
    this.#forget?.();
  }
}
