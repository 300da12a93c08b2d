import type {
  AuthRowWrite,
  TokenPut,
  TokenReads,
  TokenRevoke,
  TokenRow,
  TokenUsed,
} from "../../auth/index.js";
import { roleOf } from "../../auth/index.js";
import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** The tokens that Mailroom issues, by hash. Rows are never removed: a revoked id must not be reused. */
export const authTables = defineTableSet<AuthRowWrite>({
  name: "auth",
  migrations: [
    {
      number: 1,
      name: "tokens",
      sql: `
        CREATE TABLE auth_tokens (
          number INTEGER PRIMARY KEY,
          token_id TEXT NOT NULL UNIQUE,
          hash BLOB NOT NULL,
          role TEXT NOT NULL,
          id TEXT NOT NULL,
          label TEXT,
          created_at INTEGER NOT NULL,
          last_used_at INTEGER,
          revoked_at INTEGER
        ) STRICT;
        CREATE INDEX auth_tokens_by_role ON auth_tokens (role);
      `,
    },
  ],
  writes: {
    "auth.token.put": putToken,
    "auth.token.revoke": revokeToken,
    "auth.token.used": recordUse,
  },
});

function putToken({ db }: WriteContext): (write: TokenPut) => void {
  const anyOfRole = db.prepare("SELECT 1 FROM auth_tokens WHERE role = ? LIMIT 1");
  const insert = db.prepare(`
    INSERT INTO auth_tokens (token_id, hash, role, id, label, created_at, last_used_at, revoked_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
  `);
  return ({ kind, row, onlyAsFirstOfRole }) => {
    if (onlyAsFirstOfRole === true && anyOfRole.get(row.role) !== undefined) {
      throw new RowConflictError(kind, `a token of role ${row.role} already exists`);
    }
    const { changes } = insert.run(
      row.tokenId,
      row.hash,
      row.role,
      row.id,
      row.label ?? null,
      row.createdAt,
      row.lastUsedAt ?? null,
      row.revokedAt ?? null,
    );
    if (changes === 0) throw new RowConflictError(kind, `token id ${row.tokenId} is taken`);
  };
}

function revokeToken({ db }: WriteContext): (write: TokenRevoke) => void {
  const revoke = db.prepare(
    "UPDATE auth_tokens SET revoked_at = COALESCE(revoked_at, @at) WHERE token_id = @tokenId",
  );
  return ({ kind, tokenId, at }) => {
    if (revoke.run({ tokenId, at }).changes === 0) throw new RowConflictError(kind, "unknown token");
  };
}

function recordUse({ db }: WriteContext): (write: TokenUsed) => void {
  const record = db.prepare(
    "UPDATE auth_tokens SET last_used_at = MAX(COALESCE(last_used_at, 0), @at) WHERE token_id = @tokenId",
  );
  return ({ tokenId, at }) => {
    record.run({ tokenId, at });
  };
}

interface StoredToken {
  readonly number: number;
  readonly token_id: string;
  readonly hash: Buffer;
  readonly role: string;
  readonly id: string;
  readonly label: string | null;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

export function createTokenReads(db: Database, assertOpen: () => void): TokenReads {
  const prepared = {
    find: db.prepare<[string], StoredToken>("SELECT * FROM auth_tokens WHERE token_id = ?"),
    list: db.prepare<[number, number], StoredToken>(
      "SELECT * FROM auth_tokens WHERE number > ? ORDER BY number LIMIT ?",
    ),
  };
  const statements = () => {
    assertOpen();
    return prepared;
  };

  return {
    async find(tokenId) {
      const stored = statements().find.get(tokenId);
      return stored === undefined ? undefined : toTokenRow(stored);
    },

    async list({ limit, cursor }) {
      // One row more than requested tells whether there is another page.
      const stored = statements().list.all(cursor ?? 0, limit + 1);
      const shown = stored.slice(0, limit);
      const last = shown.at(-1);
      return {
        tokens: shown.map(toTokenRow),
        ...(stored.length > limit && last !== undefined ? { nextCursor: last.number } : {}),
      };
    },
  };
}

function toTokenRow(stored: StoredToken): TokenRow {
  const role = roleOf(stored.role);
  if (role === undefined) throw new Error(`the database holds a token of unknown role "${stored.role}"`);
  return {
    tokenId: stored.token_id,
    hash: stored.hash,
    role,
    id: stored.id,
    ...(stored.label === null ? {} : { label: stored.label }),
    createdAt: stored.created_at,
    ...(stored.last_used_at === null ? {} : { lastUsedAt: stored.last_used_at }),
    ...(stored.revoked_at === null ? {} : { revokedAt: stored.revoked_at }),
  };
}
