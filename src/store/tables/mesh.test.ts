import { expect, it } from "vitest";
import { openDatabase } from "../sqlite/driver.js";
import { migrate } from "../sqlite/migrate.js";
import { defineTableSet } from "../table-set.js";
import { meshTables } from "./mesh.js";
import { createMeshReads } from "./mesh-reads.js";

it("keeps the messages of a file from before the index by id, sender and swarm", async () => {
  const db = openDatabase(":memory:", { busyTimeout: 0 });
  migrate(
    db,
    [defineTableSet<never>({ name: "mesh", migrations: meshTables.migrations.slice(0, 2), writes: {} })],
    Date.now,
  );
  const insert = db.prepare(`
    INSERT INTO message_queue (key, message_id, swarm_id, sender_id, type, content, envelope, received_at, changed_at, box)
    VALUES (?, ?, ?, ?, 'message', ?, '{}', ?, ?, ?)
  `);
  insert.run("lab/bob/m1", "m1", "lab", "bob", "first", 1, 1, "read");
  // The same id from another sender is another message; a local notification had an arbitrary key.
  insert.run("lab/carol/m1", "m1", "lab", "carol", "second", 2, 2, "unread");
  insert.run("0192", "m2", "lab", "bob", "note", 3, 3, "unread");

  migrate(db, [meshTables], Date.now);
  const reads = createMeshReads(db, () => undefined);
  const found = await reads.inbox({ limit: 9 });
  expect(found.map(({ content, box }) => [content, box])).toEqual([
    ["note", "unread"],
    ["second", "unread"],
    ["first", "read"],
  ]);
  for (const message of found) expect(await reads.message(message.id)).toEqual(message);
  db.close();
});
