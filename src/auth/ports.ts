/** The rows of issued tokens, and what authentication needs of the store. */
import type { Batch, Committed, RowWrite } from "../journal/index.js";
import type { Role } from "./roles.js";

/** Times are milliseconds since the epoch. */
export interface TokenRow {
  /** The public part of the token, by which it is found. Not secret. */
  readonly tokenId: string;
  /** SHA-256 of the whole token. The token itself is never stored (decision C7). */
  readonly hash: Uint8Array;
  readonly role: Role;
  readonly id: string;
  readonly label?: string;
  readonly createdAt: number;
  /** To within a few minutes. */
  readonly lastUsedAt?: number;
  readonly revokedAt?: number;
}

/** Stores a new token. Rejected when its `tokenId` is in use. */
export interface TokenPut extends RowWrite {
  readonly kind: "auth.token.put";
  readonly row: TokenRow;
  /** Rejected when a token of this role exists or ever existed. */
  readonly onlyAsFirstOfRole?: boolean;
}

/** The first revocation counts: another changes nothing. Rejected for an unknown token. */
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
  /** Cursor of the next page; absent on the last one. */
  readonly nextCursor?: number;
}

export interface TokenReads {
  find(tokenId: string): Promise<TokenRow | undefined>;
  /** In the order of their creation, revoked ones included. */
  list(options: { limit: number; cursor?: number }): Promise<TokenPage>;
}

/** The part of the store that tokens need. */
export interface TokenStore {
  readonly tokens: TokenReads;
  commit(batch: Batch): Promise<Committed>;
}
