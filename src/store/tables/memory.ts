import type { InstanceId, KeyValueStore, MemoryItem } from "../../engine/index.js";
import { RowConflictError, type RowWrite } from "../../journal/index.js";
import type { Database } from "../database.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

interface MemoryPut extends RowWrite {
  readonly kind: "memory.put";
  readonly instance: InstanceId;
  readonly item: MemoryItem;
}

interface MemoryRemove extends RowWrite {
  readonly kind: "memory.remove";
  readonly instance: InstanceId;
  readonly key: string;
}

/** Maximum number of keys per instance (law 8). */
const MOST_KEYS = 10_000;

/** The key-value memory of instances. Instance and key are the primary key, so every query names the instance. */
export const memoryTables = defineTableSet<MemoryPut | MemoryRemove>({
  name: "memory",
  migrations: [
    {
      number: 1,
      name: "key-value memory",
      sql: `
        CREATE TABLE memory (
          role TEXT NOT NULL,
          id TEXT NOT NULL,
          key TEXT NOT NULL,
          value TEXT NOT NULL,
          updated_at INTEGER NOT NULL,
          PRIMARY KEY (role, id, key)
        ) STRICT, WITHOUT ROWID;
      `,
    },
  ],
  writes: { "memory.put": putItem, "memory.remove": removeItem },
});

function putItem({ db }: WriteContext): (write: MemoryPut) => void {
  const update = db.prepare(
    "UPDATE memory SET value = @value, updated_at = @updatedAt WHERE role = @role AND id = @id AND key = @key",
  );
  const count = db.prepare<[string, string], { keys: number }>(
    "SELECT COUNT(*) AS keys FROM memory WHERE role = ? AND id = ?",
  );
  const insert = db.prepare(
    "INSERT INTO memory (role, id, key, value, updated_at) VALUES (@role, @id, @key, @value, @updatedAt)",
  );
  return ({ kind, instance: { role, id }, item }) => {
    const row = { role, id, ...item };
    if (update.run(row).changes > 0) return;
    if ((count.get(role, id)?.keys ?? 0) >= MOST_KEYS) {
      throw new RowConflictError(kind, `the limit of ${MOST_KEYS} keys is reached; delete some first`);
    }
    insert.run(row);
  };
}

function removeItem({ db }: WriteContext): (write: MemoryRemove) => void {
  const remove = db.prepare("DELETE FROM memory WHERE role = ? AND id = ? AND key = ?");
  return ({ instance: { role, id }, key }) => {
    remove.run(role, id, key);
  };
}

interface Row {
  readonly key: string;
  readonly value: string;
  readonly updated_at: number;
}

export interface KeyValueParts {
  readonly db: Database;
  readonly assertOpen: () => void;
  readonly commit: (write: MemoryPut | MemoryRemove) => Promise<unknown>;
  readonly now: () => number;
}

export function createKeyValueStore({ db, assertOpen, commit, now }: KeyValueParts): KeyValueStore {
  const one = db.prepare<[string, string, string], Row>(
    "SELECT key, value, updated_at FROM memory WHERE role = ? AND id = ? AND key = ?",
  );
  // A range of keys, not LIKE: it uses the primary key, and `%` in a prefix has no special meaning.
  const many = db.prepare<[Record<string, string | number>], Row>(`
    SELECT key, value, updated_at FROM memory
    WHERE role = @role AND id = @id AND key > @after AND key >= @prefix AND substr(key, 1, length(@prefix)) = @prefix
    ORDER BY key LIMIT @limit
  `);
  const get = async ({ role, id }: InstanceId, key: string): Promise<MemoryItem | undefined> => {
    assertOpen();
    const row = one.get(role, id, key);
    return row === undefined ? undefined : toItem(row);
  };
  return {
    get,

    async set(instance, key, value) {
      await commit({ kind: "memory.put", instance, item: { key, value, updatedAt: now() } });
    },

    async delete(instance, key) {
      const found = await get(instance, key);
      if (found === undefined) return false;
      await commit({ kind: "memory.remove", instance, key });
      return true;
    },

    async list({ role, id }, { prefix = "", after = "", limit }) {
      assertOpen();
      return many.all({ role, id, after, prefix, limit }).map(toItem);
    },
  };
}

function toItem({ key, value, updated_at: updatedAt }: Row): MemoryItem {
  return { key, value, updatedAt };
}
