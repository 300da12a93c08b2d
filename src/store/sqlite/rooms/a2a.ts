import type {
  A2aRowWrite,
  A2aState,
  KeptMessage,
  MessagePut,
  Thread,
  ThreadPut,
} from "../../../a2a/state.js";
import { RowConflictError } from "../../../engine/ports.js";
import type { Database } from "../driver.js";
import { defineRoom, type RoomContext } from "../room.js";

/** A2A's tables: which messages have come, where conversations with A2A agents stand, and what those have dealt with. */
export const a2aRoom = defineRoom<A2aRowWrite>({
  room: "a2a",
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

function putMessage({ db }: RoomContext): (write: MessagePut) => void {
  const put = db.prepare(`
    INSERT INTO a2a_messages (role, instance, message, hash, task, task_id, number)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
  `);
  return ({ kind, instance: { role, id }, messageId, kept }) => {
    const { changes } = put.run(role, id, messageId, kept.hash, kept.key, kept.taskId, kept.number);
    if (changes === 0) throw new RowConflictError(kind, `${role}:${id} has sent this message before`);
  };
}

function putThread({ db }: RoomContext): (write: ThreadPut) => void {
  const put = db.prepare(
    "INSERT OR REPLACE INTO a2a_threads (task, address, context, open_task) VALUES (?, ?, ?, ?)",
  );
  const settle = db.prepare("INSERT OR IGNORE INTO a2a_settled (message, task) VALUES (?, ?)");
  return ({ task, address, thread, settles }) => {
    put.run(task, address, thread.contextId, thread.taskId);
    if (settles !== undefined) settle.run(settles, task);
  };
}

/** Prepares its statements at the first question, so that a store without this room can be opened too. */
export function createA2aState(db: Database, assertOpen: () => void): A2aState {
  const prepare = () => ({
    message: db.prepare<[string, string, string], KeptMessage>(`
      SELECT task AS key, task_id AS taskId, number, hash FROM a2a_messages
      WHERE role = ? AND instance = ? AND message = ?
    `),
    thread: db.prepare<[string, string], Thread>(
      "SELECT context AS contextId, open_task AS taskId FROM a2a_threads WHERE task = ? AND address = ?",
    ),
    settled: db.prepare<[string], unknown>("SELECT 1 FROM a2a_settled WHERE message = ?"),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  const statements = () => {
    assertOpen();
    prepared ??= prepare();
    return prepared;
  };
  return {
    keptMessage: async ({ role, id }, messageId) => statements().message.get(role, id, messageId),
    thread: async (task, address) => statements().thread.get(task, address),
    isSettled: async (messageId) => statements().settled.get(messageId) !== undefined,
  };
}
