import { roleOf } from "../../../auth/principal.js";
import type {
  AuthRowWrite,
  TokenIndex,
  TokenPut,
  TokenRevoke,
  TokenRow,
  TokenUsed,
} from "../../../auth/tokens/port.js";
import { RowConflictError } from "../../../engine/ports.js";
import type { Database } from "../driver.js";
import { defineRoom, type RoomContext } from "../room.js";

/** The tokens that Mailroom issues, by their hashes. Rows are never removed: a revoked id is not to be used again. */
export const authRoom = defineRoom<AuthRowWrite>({
  room: "auth",
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

function putToken({ db }: RoomContext): (write: TokenPut) => void {
  const anyOfRole = db.prepare("SELECT 1 FROM auth_tokens WHERE role = ? LIMIT 1");
  const insert = db.prepare(`
    INSERT INTO auth_tokens (token_id, hash, role, id, label, created_at, last_used_at, revoked_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING
  `);
  return ({ kind, row, onlyAsFirstOfRole }) => {
    if (onlyAsFirstOfRole === true && anyOfRole.get(row.role) !== undefined) {
      throw new RowConflictError(kind, `there is a token of role ${row.role} already`);
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

function revokeToken({ db }: RoomContext): (write: TokenRevoke) => void {
  const revoke = db.prepare(
    "UPDATE auth_tokens SET revoked_at = COALESCE(revoked_at, @at) WHERE token_id = @tokenId",
  );
  return ({ kind, tokenId, at }) => {
    if (revoke.run({ tokenId, at }).changes === 0) throw new RowConflictError(kind, "there is no such token");
  };
}

function recordUse({ db }: RoomContext): (write: TokenUsed) => void {
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

/** Prepares its statements at the first question, so that a store without this room can be opened too. */
export function createTokenIndex(db: Database, assertOpen: () => void): TokenIndex {
  const prepare = () => ({
    find: db.prepare<[string], StoredToken>("SELECT * FROM auth_tokens WHERE token_id = ?"),
    list: db.prepare<[number, number], StoredToken>(
      "SELECT * FROM auth_tokens WHERE number > ? ORDER BY number LIMIT ?",
    ),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  const statements = () => {
    assertOpen();
    prepared ??= prepare();
    return prepared;
  };

  return {
    async find(tokenId) {
      const stored = statements().find.get(tokenId);
      return stored === undefined ? undefined : toTokenRow(stored);
    },

    async list({ limit, cursor }) {
      // One more than asked for tells whether there is another page.
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
