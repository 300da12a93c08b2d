import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { BOX_STATUSES, type QueuedMessage, queueKey } from "../../mesh/messages.js";
import { openDatabase } from "../sqlite/driver.js";
import { migrate } from "../sqlite/migrate.js";
import { meshTables } from "./mesh.js";
import { createMeshReads, MESH_QUERIES } from "./mesh-reads.js";

const db = openDatabase(":memory:", { busyTimeout: 0 });
migrate(db, [meshTables], () => 0);
afterAll(() => db.close());

describe("query plans", () => {
  // Listing the whole inbox walks from its newest message; counting it reads a whole index.
  const { inbox: _, counts, ...narrow } = MESH_QUERIES;
  for (const [name, sql] of Object.entries(narrow)) {
    it(`${name} reads along an index and sorts nothing`, () => {
      const plan = explain(sql);
      expect(plan).not.toEqual([]);
      for (const line of plan) {
        // Few messages share an id: one per sender and swarm.
        if (name !== "byMessage") expect(line).not.toContain("TEMP B-TREE");
        // The ids of a limited number of messages.
        expect(line).not.toMatch(/^SCAN (?!recent)/);
      }
    });
  }

  it("counting reads no message", () => {
    const plans = [counts, narrow.countsOfSwarm, narrow.unreadCount, narrow.queuedCount].map(explain);
    expect(plans.map((lines) => lines.length)).toEqual([1, 1, 1, 1]);
    for (const line of plans.flat()) expect(line).toContain("COVERING INDEX");
  });
});

describe("the inbox", () => {
  const messages = fc.array(
    fc.record({
      swarmId: fc.constantFrom("lab", "club"),
      senderId: fc.constantFrom("ann", "bob"),
      box: fc.constantFrom(...BOX_STATUSES),
    }),
  );
  const either = <Value>(...values: Value[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
  const filter = fc.record({
    swarmId: either("lab", "club"),
    senderId: either("ann", "bob"),
    box: either(...BOX_STATUSES),
    limit: fc.integer({ min: 1, max: 5 }),
  });

  it("lists the newest messages for every filter, and the counts agree", async () => {
    await fc.assert(
      fc.asyncProperty(messages, filter, async (parts, { swarmId, senderId, box, limit }) => {
        const reads = readsOf(parts);
        const wanted = parts
          .map((part, index) => ({ ...part, messageId: String(index) }))
          .filter((part) => (box === undefined ? part.box !== "deleted" : part.box === box))
          .filter((part) => swarmId === undefined || part.swarmId === swarmId)
          .filter((part) => senderId === undefined || part.senderId === senderId);
        const found = await reads.inbox({
          limit,
          ...(swarmId !== undefined && { swarmId }),
          ...(senderId !== undefined && { senderId }),
          ...(box !== undefined && { box }),
        });
        const newest = wanted.map(({ messageId }) => messageId).reverse();
        expect(found.map(({ messageId }) => messageId)).toEqual(newest.slice(0, limit));
        const unread = parts.filter((part) => part.swarmId === "lab" && part.box === "unread").length;
        expect((await reads.inboxCounts("lab")).unread).toBe(unread);
        expect(await reads.unreadCount("lab", limit)).toBe(Math.min(unread, limit));
      }),
    );
  });
});

describe("the queue", () => {
  it("continues after a message, and from the beginning when it is gone", async () => {
    const reads = readsOf([{ status: "pending" }, { status: "pending" }, { status: "pending" }]);
    const behind = async (id: string) =>
      (await reads.queued("pending", 9, queueKey("lab", "ann", id))).map(({ messageId }) => messageId);
    expect(await behind("0")).toEqual(["1", "2"]);
    expect(await behind("2")).toEqual([]);
    expect(await behind("gone")).toEqual(["0", "1", "2"]);
    expect(await reads.queuedCount("pending", 2)).toBe(2);
  });
});

/** A queue of these messages in this order, named by their index. */
function readsOf(
  messages: readonly Partial<Pick<QueuedMessage, "swarmId" | "senderId" | "box" | "status">>[],
) {
  db.exec("DELETE FROM message_queue");
  const put = db.prepare(`
    INSERT INTO message_queue (message_id, swarm_id, sender_id, box, status, type, content, envelope, received_at, changed_at)
    VALUES (?, ?, ?, ?, ?, 'message', 'hello', '{}', 0, 0)
  `);
  for (const [place, message] of messages.entries()) {
    const { swarmId = "lab", senderId = "ann", box = "unread", status = "completed" } = message;
    put.run(String(place), swarmId, senderId, box, status);
  }
  return createMeshReads(db, () => undefined);
}

function explain(sql: string): string[] {
  const named = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]));
  const rows = db
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...(sql.includes("?") ? [1] : [named]));
  return rows.map(({ detail }) => detail).filter((detail) => /^(SCAN (?!\()|SEARCH|USE)/.test(detail));
}
