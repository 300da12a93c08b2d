/** What is stored about the tokens that Mailroom issues, and what is asked of the store. */
import type { Batch, Committed, RowWrite } from "../../engine/ports.js";
import type { Role } from "../principal.js";

/** Times are milliseconds since the epoch. */
export interface TokenRow {
  /** The part of the token by which it is found and spoken about. No secret. */
  readonly tokenId: string;
  /** SHA-256 of the whole token. The token itself is stored nowhere (decisions C7). */
  readonly hash: Uint8Array;
  readonly role: Role;
  readonly id: string;
  readonly label?: string;
  readonly createdAt: number;
  /** To within a few minutes. */
  readonly lastUsedAt?: number;
  readonly revokedAt?: number;
}

/** Stores a new token. Refused when its `tokenId` is taken. */
export interface TokenPut extends RowWrite {
  readonly kind: "auth.token.put";
  readonly row: TokenRow;
  /** Refused when there is, or ever was, another token of this role. */
  readonly onlyAsFirstOfRole?: boolean;
}

/** The first revocation counts: another changes nothing. Refused when there is no such token. */
export interface TokenRevoke extends RowWrite {
  readonly kind: "auth.token.revoke";
  readonly tokenId: string;
  readonly at: number;
}

export interface TokenUsed extends RowWrite {
  readonly kind: "auth.token.used";
  readonly tokenId: string;
  readonly at: number;
}

export type AuthRowWrite = TokenPut | TokenRevoke | TokenUsed;

export interface TokenPage {
  readonly tokens: readonly TokenRow[];
  /** Hand this back to get the next page; absent on the last one. */
  readonly nextCursor?: number;
}

export interface TokenIndex {
  find(tokenId: string): Promise<TokenRow | undefined>;
  /** In the order of their creation, revoked ones included. */
  list(options: { limit: number; cursor?: number }): Promise<TokenPage>;
}

/** The part of the store that tokens need. */
export interface TokenStore {
  readonly tokens: TokenIndex;
  commit(batch: Batch): Promise<Committed>;
}
