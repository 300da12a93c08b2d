import { LRUCache } from "lru-cache";
import { type Clock, MailroomError, type Report } from "../../base/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { AuthRowWrite, TokenRow, TokenStore } from "../ports.js";
import { checkPrincipalId, type Principal } from "../principal.js";
import { reasonOf } from "../reason.js";
import { type Authenticator, type AuthResult, failure, rejectMalformed } from "../result.js";
import type { Role } from "../roles.js";
import { hashToken, looksLikeToken, makeToken, sameHash, tokenIdOf } from "./token.js";

export interface TokensOptions {
  readonly store: TokenStore;
  readonly clock: Pick<Clock, "now">;
  /** Number of cached tokens, which cost no query. Default 10,000. */
  readonly cacheSize?: number;
  /**
   * Milliseconds after which a cached token is looked up again. A revocation in this process takes effect at once; this
   * is for one made by another process on the same store. Default 30 s.
   */
  readonly cacheTime?: number;
  /** Milliseconds between two records of a token's use. Default 5 min. */
  readonly usedInterval?: number;
  readonly report?: Report;
}

/** A token without its secret. */
export type TokenInfo = Omit<TokenRow, "hash">;

export interface CreatedToken {
  /** Shown only once. */
  readonly token: string;
  readonly info: TokenInfo;
}

export interface TokenRequest {
  readonly role: Role;
  readonly id: string;
  readonly label?: string;
}

interface Remembered {
  readonly hash: Uint8Array;
  readonly principal: Principal;
  readonly until: number;
  usedAt: number;
}

/** Compared with for an unknown token, so that a wrong id takes as long as a wrong secret. */
const NO_HASH = new Uint8Array(32);
const LONGEST_LABEL = 200;
/** The admin token of the first start; `root` is the operator's id in the documentation. */
const FIRST_ADMIN = { role: "admin", id: "root", label: "made at the first start" } as const;

/** Issues and authenticates Mailroom's own tokens. */
export class Tokens implements Authenticator {
  readonly #store: TokenStore;
  readonly #clock: Pick<Clock, "now">;
  readonly #cacheTime: number;
  readonly #usedInterval: number;
  readonly #report: Report;
  readonly #remembered: LRUCache<string, Remembered>;
  readonly #recording = new Set<Promise<void>>();
  /** Counts revocations: a row read before one is not cached after it. */
  #revocations = 0;
  readonly #revocationListeners = new Set<(tokenId: string) => void>();

  constructor(options: TokensOptions) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#cacheTime = options.cacheTime ?? 30_000;
    this.#usedInterval = options.usedInterval ?? 300_000;
    this.#report = options.report ?? (() => {});
    this.#remembered = new LRUCache({ max: Math.max(1, options.cacheSize ?? 10_000) });
  }

  recognises(bearer: string): boolean {
    return looksLikeToken(bearer);
  }

  async authenticate(bearer: string | undefined): Promise<AuthResult> {
    const malformed = rejectMalformed(bearer);
    if (malformed !== undefined || bearer === undefined) return malformed ?? failure("missing");
    const tokenId = tokenIdOf(bearer);
    if (tokenId === undefined) return failure("unknown");
    try {
      const known = this.#recall(tokenId) ?? (await this.#lookUp(tokenId));
      const same = sameHash(hashToken(bearer), known?.hash ?? NO_HASH);
      if (known === undefined || !same) return failure("unknown");
      this.#recordUse(tokenId, known);
      return { ok: true, principal: known.principal };
    } catch (error) {
      this.#report({ code: "auth_token", message: `tokens could not be read: ${reasonOf(error)}` });
      return failure("unavailable");
    }
  }

  /** @throws MailroomError `bad_token_request` for an invalid id or label */
  async create(request: TokenRequest): Promise<CreatedToken> {
    checkRequest(request);
    return this.#put(request, false);
  }

  /** Creates and returns the first admin token of this store; `undefined` at every later start. */
  async ensureAdminToken(): Promise<CreatedToken | undefined> {
    try {
      return await this.#put(FIRST_ADMIN, true);
    } catch (error) {
      if (error instanceof RowConflictError) return undefined;
      throw error;
    }
  }

  /** A page of all tokens in the order of their creation, revoked ones included. */
  async list(options: { limit?: number; cursor?: number } = {}): Promise<{
    readonly tokens: readonly TokenInfo[];
    readonly nextCursor?: number;
  }> {
    const { tokens, nextCursor } = await this.#store.tokens.list({
      limit: options.limit ?? 100,
      ...(options.cursor === undefined ? {} : { cursor: options.cursor }),
    });
    return { tokens: tokens.map(infoOf), ...(nextCursor === undefined ? {} : { nextCursor }) };
  }

  /**
   * The token is rejected once this resolves. Accepts a token's id or a whole token. Revoking again changes nothing.
   * @throws MailroomError `unknown_token` for an unknown token
   */
  async revoke(tokenOrId: string): Promise<void> {
    const tokenId = tokenIdOf(tokenOrId) ?? tokenOrId;
    try {
      await this.#write({ kind: "auth.token.revoke", tokenId, at: this.#clock.now() });
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
      // The message does not repeat the text: it may be a mistyped token.
      throw new MailroomError("unknown_token", "there is no such token: list them to see their ids");
    }
    this.#revocations += 1;
    this.#remembered.delete(tokenId);
    for (const listener of this.#revocationListeners) listener(tokenId);
  }

  onRevoked(listener: (tokenId: string) => void): () => void {
    this.#revocationListeners.add(listener);
    return () => this.#revocationListeners.delete(listener);
  }

  /** Resolves when the uses seen so far are recorded. Call it before closing the store. */
  async close(): Promise<void> {
    await Promise.all(this.#recording);
  }

  #recall(tokenId: string): Remembered | undefined {
    const known = this.#remembered.get(tokenId);
    return known !== undefined && known.until > this.#clock.now() ? known : undefined;
  }

  async #lookUp(tokenId: string): Promise<Remembered | undefined> {
    for (;;) {
      const seen = this.#revocations;
      const row = await this.#store.tokens.find(tokenId);
      // A token was revoked during the read: perhaps this one.
      if (seen !== this.#revocations) continue;
      if (row === undefined || row.revokedAt !== undefined) {
        this.#remembered.delete(tokenId);
        return undefined;
      }
      const known: Remembered = {
        hash: row.hash,
        principal: { role: row.role, id: row.id, provider: "token", tokenId },
        until: this.#clock.now() + this.#cacheTime,
        usedAt: Math.max(row.lastUsedAt ?? 0, this.#remembered.peek(tokenId)?.usedAt ?? 0),
      };
      this.#remembered.set(tokenId, known);
      return known;
    }
  }

  /** Not awaited by the request, and rare: nothing depends on it. */
  #recordUse(tokenId: string, known: Remembered): void {
    const at = this.#clock.now();
    if (at - known.usedAt < this.#usedInterval) return;
    known.usedAt = at;
    const recording = this.#write({ kind: "auth.token.used", tokenId, at })
      .catch((error: unknown) => {
        this.#report({
          code: "auth_token",
          message: `the use of token ${tokenId} was not recorded: ${reasonOf(error)}`,
        });
      })
      .finally(() => this.#recording.delete(recording));
    this.#recording.add(recording);
  }

  async #put({ role, id, label }: TokenRequest, onlyAsFirstOfRole: boolean): Promise<CreatedToken> {
    const { token, tokenId } = makeToken(role);
    const row: TokenRow = {
      tokenId,
      hash: hashToken(token),
      role,
      id,
      ...(label === undefined ? {} : { label }),
      createdAt: this.#clock.now(),
    };
    await this.#write({ kind: "auth.token.put", row, onlyAsFirstOfRole });
    return { token, info: infoOf(row) };
  }

  async #write(write: AuthRowWrite): Promise<void> {
    await this.#store.commit({ appends: [], rows: [write] });
  }
}

function checkRequest({ role, id, label }: TokenRequest): void {
  const problem = checkPrincipalId(role, id) ?? (label === undefined ? undefined : checkLabel(label));
  if (problem !== undefined) throw new MailroomError("bad_token_request", problem);
}

function checkLabel(label: string): string | undefined {
  if (label.length > LONGEST_LABEL) return `a label has at most ${LONGEST_LABEL} characters`;
  if (/\p{Cc}/u.test(label)) return "a label must not contain control characters";
  return undefined;
}

function infoOf({ hash: _, ...info }: TokenRow): TokenInfo {
  return info;
}
