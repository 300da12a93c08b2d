/** Ends open streams and requests when their credential is revoked, rejected or expires. */
import { LRUCache } from "lru-cache";
import { type Authenticator, authenticateHeader, type Principal } from "../auth/index.js";
import type { Clock } from "../base/index.js";

/** Recently revoked tokens, whose callers may have been authenticated just before. */
const REMEMBERED = 1_000;
/** Credentials that are checked at the same time. */
const CHECKS_AT_ONCE = 8;

/** Streams with the same credential. */
interface Reviewed {
  readonly principal: Principal;
  readonly ends: Set<() => void>;
}

export class RevocationWatcher {
  readonly #open = new Map<string, Set<() => void>>();
  readonly #revoked = new LRUCache<string, true>({ max: REMEMBERED });
  readonly #forget: (() => void) | undefined;
  readonly #authenticator: Authenticator;
  readonly #clock: Clock;
  readonly #interval: number;
  /** By `Authorization` header: credentials of issuers that announce no revocations. */
  readonly #reviewed = new Map<string, Reviewed>();
  #cancelReview: (() => void) | undefined;
  #closed = false;

  /** @param interval milliseconds between checks of credentials whose revocation is not announced */
  constructor(authenticator: Authenticator, clock: Clock, interval: number) {
    this.#authenticator = authenticator;
    this.#clock = clock;
    this.#interval = interval;
    this.#forget = authenticator.onRevoked?.((tokenId) => {
      this.#revoked.set(tokenId, true);
      for (const end of this.#open.get(tokenId) ?? []) end();
    });
  }

  /**
   * Calls back when the caller's credential is revoked, rejected or expires, or at once if it already was or did.
   * Returns a function that removes the callback.
   * @param authorization the header that authenticated the caller
   */
  watch(principal: Principal, authorization: string | undefined, end: () => void): () => void {
    const { expiresAt, tokenId } = principal;
    const unwatch =
      tokenId === undefined
        ? this.#watchReviews(principal, authorization, end)
        : this.#watchRevocation(tokenId, end);
    if (expiresAt === undefined) return unwatch;
    const cancel = this.#clock.after(Math.max(0, expiresAt - this.#clock.now()), end);
    return () => {
      cancel();
      unwatch();
    };
  }

  #watchRevocation(tokenId: string, end: () => void): () => void {
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

  #watchReviews(principal: Principal, authorization: string | undefined, end: () => void): () => void {
    if (authorization === undefined) return () => {};
    const reviewed = this.#reviewed.get(authorization) ?? { principal, ends: new Set() };
    this.#reviewed.set(authorization, reviewed);
    reviewed.ends.add(end);
    this.#reviewLater();
    return () => {
      reviewed.ends.delete(end);
      if (reviewed.ends.size === 0 && this.#reviewed.get(authorization) === reviewed) {
        this.#reviewed.delete(authorization);
      }
    };
  }

  #reviewLater(): void {
    if (this.#cancelReview !== undefined || this.#closed) return;
    this.#cancelReview = this.#clock.after(this.#interval, () => {
      void this.#reviewAll().finally(() => {
        this.#cancelReview = undefined;
        if (this.#reviewed.size > 0) this.#reviewLater();
      });
    });
  }

  async #reviewAll(): Promise<void> {
    const all = [...this.#reviewed];
    const next = async (): Promise<void> => {
      for (let one = all.pop(); one !== undefined && !this.#closed; one = all.pop())
        await this.#review(...one);
    };
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, next));
  }

  async #review(authorization: string, { principal, ends }: Reviewed): Promise<void> {
    // An issuer that cannot be asked has not rejected the credential.
    const found = await authenticateHeader(this.#authenticator, authorization).catch(() => undefined);
    if (found === undefined || (!found.ok && found.reason === "unavailable")) return;
    if (found.ok && found.principal.role === principal.role && found.principal.id === principal.id) return;
    for (const end of [...ends]) end();
  }

  close(): void {
    this.#closed = true;
    this.#forget?.();
    this.#cancelReview?.();
  }
}
