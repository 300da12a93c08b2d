import { RowConflictError } from "../../journal/index.js";
import type { Database } from "../database.js";
import type {
  A2aContext,
  A2aRowWrite,
  A2aStore,
  MessagePut,
  StoredMessage,
  ThreadPut,
} from "../ports/a2a.js";
import { defineTableSet, type WriteContext } from "../table-set.js";

/** A2A's tables: received messages, conversations with A2A agents, and sent messages that the agents have processed. */
export const a2aTables = defineTableSet<A2aRowWrite>({
  name: "a2a",
  migrations: [
    {
      number: 1,
      name: "messages and threads",
      sql: `
        CREATE TABLE a2a_messages (
          role TEXT NOT NULL,
          instance TEXT NOT NULL,
          message TEXT NOT NULL,
          hash TEXT NOT NULL,
          task TEXT NOT NULL,
          task_id TEXT NOT NULL,
          number INTEGER NOT NULL,
          PRIMARY KEY (role, instance, message)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX a2a_messages_task ON a2a_messages (task);
        CREATE TABLE a2a_threads (
          task TEXT NOT NULL,
          address TEXT NOT NULL,
          context TEXT NOT NULL,
          open_task TEXT NOT NULL,
          PRIMARY KEY (task, address)
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER a2a_task_end AFTER DELETE ON tasks BEGIN
          DELETE FROM a2a_messages WHERE task = OLD.key;
          DELETE FROM a2a_threads WHERE task = OLD.key;
        END;
      `,
    },
    {
      number: 2,
      name: "messages that agents have dealt with",
      sql: `
        CREATE TABLE a2a_settled (
          message TEXT PRIMARY KEY NOT NULL,
          task TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX a2a_settled_task ON a2a_settled (task);
        CREATE TRIGGER a2a_settled_task_end AFTER DELETE ON tasks BEGIN
          DELETE FROM a2a_settled WHERE task = OLD.key;
        END;
      `,
    },
  ],
  writes: { "a2a.message.put": putMessage, "a2a.thread.put": putThread },
});

function putMessage({ db }: WriteContext): (write: MessagePut) => void {
  const put = db.prepare(`
    INSERT INTO a2a_messages (role, instance, message, hash, task, task_id, number)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
  `);
  return ({ kind, instance: { role, id }, messageId, kept }) => {
    const { changes } = put.run(role, id, messageId, kept.hash, kept.key, kept.taskId, kept.number);
    if (changes === 0) throw new RowConflictError(kind, `${role}:${id} has sent this message before`);
  };
}

function putThread({ db }: WriteContext): (write: ThreadPut) => void {
  const put = db.prepare(
    "INSERT OR REPLACE INTO a2a_threads (task, address, context, open_task) VALUES (?, ?, ?, ?)",
  );
  const settle = db.prepare("INSERT OR IGNORE INTO a2a_settled (message, task) VALUES (?, ?)");
  return ({ task, address, thread, settles }) => {
    put.run(task, address, thread.contextId, thread.taskId);
    if (settles !== undefined) settle.run(settles, task);
  };
}

export function createA2aStore(db: Database, assertOpen: () => void): A2aStore {
  const prepared = {
    message: db.prepare<[string, string, string], StoredMessage>(`
      SELECT task AS key, task_id AS taskId, number, hash FROM a2a_messages
      WHERE role = ? AND instance = ? AND message = ?
    `),
    thread: db.prepare<[string, string], A2aContext>(
      "SELECT context AS contextId, open_task AS taskId FROM a2a_threads WHERE task = ? AND address = ?",
    ),
    settled: db.prepare<[string], unknown>("SELECT 1 FROM a2a_settled WHERE message = ?"),
  };
  const statements = () => {
    assertOpen();
    return prepared;
  };
  return {
    storedMessage: async ({ role, id }, messageId) => statements().message.get(role, id, messageId),
    thread: async (task, address) => statements().thread.get(task, address),
    isSettled: async (messageId) => statements().settled.get(messageId) !== undefined,
  };
}
