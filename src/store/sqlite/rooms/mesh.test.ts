import { expect, it } from "vitest";
import { openDatabase } from "../driver.js";
import { createMeshReads } from "../mesh.js";
import { migrate } from "../migrate.js";
import { defineRoom } from "../room.js";
import { meshRoom } from "./mesh.js";

it("keeps the messages of a file from before they were found by id, sender and swarm", async () => {
  const db = openDatabase(":memory:", { busyTimeout: 0 });
  migrate(
    db,
    [defineRoom<never>({ room: "mesh", migrations: meshRoom.migrations.slice(0, 2), writes: {} })],
    Date.now,
  );
  const insert = db.prepare(`
    INSERT INTO message_queue (key, message_id, swarm_id, sender_id, type, content, envelope, received_at, changed_at, box)
    VALUES (?, ?, ?, ?, 'message', ?, '{}', ?, ?, ?)
  `);
  insert.run("lab/bob/m1", "m1", "lab", "bob", "first", 1, 1, "read");
  // The same id of another sender is another message; a note of our own had a key that tells nothing.
  insert.run("lab/carol/m1", "m1", "lab", "carol", "second", 2, 2, "unread");
  insert.run("0192", "m2", "lab", "bob", "note", 3, 3, "unread");

  migrate(db, [meshRoom], Date.now);
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
