import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import type {
  HttpRowWrite,
  HttpStore,
  IdempotencyExpire,
  IdempotencyPut,
  LoadedSwarmPut,
  LoadedSwarmRemove,
  LoadedSwarmText,
  StoredWrite,
} from "../ports/http.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** The HTTP server's tables: results of writes by idempotency key, and swarms that an admin loaded. */
export const httpTables = defineTableSet<HttpRowWrite>({
  name: "http",
  migrations: [
    {
      number: 1,
      name: "idempotency keys and loaded swarms",
      sql: `
        CREATE TABLE http_idempotency (
          role TEXT NOT NULL,
          caller TEXT NOT NULL,
          route TEXT NOT NULL,
          key TEXT NOT NULL,
          hash TEXT NOT NULL,
          reference TEXT NOT NULL,
          created_at INTEGER NOT NULL,
          PRIMARY KEY (role, caller, route, key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX http_idempotency_age ON http_idempotency (created_at);
        CREATE TABLE http_swarm (
          swarm TEXT PRIMARY KEY,
          text TEXT NOT NULL,
          replaces TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
      `,
    },
  ],
  writes: {
    "http.idempotency.put": putKey,
    "http.idempotency.expire": expireKeys,
    "http.swarm.put": putSwarm,
    "http.swarm.remove": removeSwarm,
  },
});

function putKey({ db }: WriteContext): (write: IdempotencyPut) => void {
  const put = db.prepare(`
    INSERT INTO http_idempotency (role, caller, route, key, hash, reference, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET
      hash = excluded.hash, reference = excluded.reference, created_at = excluded.created_at
      WHERE created_at < ?
  `);
  return ({ kind, scope, write, createdAt, expires }) => {
    const { role, id, route, key } = scope;
    const reference = JSON.stringify(write.reference);
    const { changes } = put.run(role, id, route, key, write.hash, reference, createdAt, expires);
    if (changes === 0) throw new RowConflictError(kind, `the idempotency key of ${role}:${id} is in use`);
  };
}

function expireKeys({ db }: WriteContext): (write: IdempotencyExpire) => void {
  const expire = db.prepare("DELETE FROM http_idempotency WHERE created_at < ?");
  return ({ before }) => {
    expire.run(before);
  };
}

function putSwarm({ db }: WriteContext): (write: LoadedSwarmPut) => void {
  const put = db.prepare("INSERT OR REPLACE INTO http_swarm (swarm, text, replaces) VALUES (?, ?, ?)");
  return ({ loaded }) => {
    put.run(loaded.swarm, loaded.text, loaded.replaces);
  };
}

function removeSwarm({ db }: WriteContext): (write: LoadedSwarmRemove) => void {
  const remove = db.prepare("DELETE FROM http_swarm WHERE swarm = ?");
  return ({ swarm }) => {
    remove.run(swarm);
  };
}

interface KeyRow {
  readonly hash: string;
  readonly reference: string;
}

export function createHttpStore(db: Database, assertOpen: () => void): HttpStore {
  const prepared = {
    key: db.prepare<[string, string, string, string, number], KeyRow>(`
      SELECT hash, reference FROM http_idempotency
      WHERE role = ? AND caller = ? AND route = ? AND key = ? AND created_at >= ?
    `),
    swarm: db.prepare<[string], LoadedSwarmText>(
      "SELECT swarm, text, replaces FROM http_swarm WHERE swarm = ?",
    ),
  };
  const statements = () => {
    assertOpen();
    return prepared;
  };

  return {
    async storedWrite({ role, id, route, key }, expires) {
      const row = statements().key.get(role, id, route, key, expires);
      if (row === undefined) return undefined;
      // Written by this module, and type-checked there.
      const reference: StoredWrite["reference"] = JSON.parse(row.reference);
      return { hash: row.hash, reference };
    },

    async loadedSwarm(swarm) {
      return statements().swarm.get(swarm);
    },
  };
}
