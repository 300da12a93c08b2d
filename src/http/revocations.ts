/** Ends open streams and requests when their token is revoked or expires. */
import { LRUCache } from "lru-cache";
import type { Authenticator, Principal } from "../auth/index.js";
import type { Clock } from "../base/index.js";

/** Recently revoked tokens, whose callers may have been authenticated just before. */
const REMEMBERED = 1_000;

export class RevocationWatcher {
  readonly #open = new Map<string, Set<() => void>>();
  readonly #revoked = new LRUCache<string, true>({ max: REMEMBERED });
  readonly #forget: (() => void) | undefined;
  readonly #clock: Clock;

  constructor(authenticator: Authenticator, clock: Clock) {
    this.#clock = clock;
    this.#forget = authenticator.onRevoked?.((tokenId) => {
      this.#revoked.set(tokenId, true);
      for (const end of this.#open.get(tokenId) ?? []) end();
    });
  }

  /**
   * Calls back when the caller's token is revoked or expires, or at once if it already was or did. Returns a function that
   * removes the callback.
   */
  watch(principal: Principal, end: () => void): () => void {
    const { expiresAt } = principal;
    const unwatch = this.#watchRevocation(principal, end);
    if (expiresAt === undefined) return unwatch;
    const cancel = this.#clock.after(Math.max(0, expiresAt - this.#clock.now()), end);
    return () => {
      cancel();
      unwatch();
    };
  }

  #watchRevocation({ tokenId }: Principal, end: () => void): () => void {
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
