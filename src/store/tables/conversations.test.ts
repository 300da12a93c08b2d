import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ConversationRowWrite } from "../../conversations/index.js";
import { RowConflictError } from "../../journal/index.js";
import { openDatabase } from "../sqlite/driver.js";
import { openSqliteStore } from "../sqlite/open.js";
import type { SqliteStore } from "../sqlite/store.js";
import { CONVERSATION_QUERIES } from "./conversations.js";

let directory: string;
let store: SqliteStore;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "mailroom-conversations-"));
  store = await openSqliteStore({ directory, durability: "fast" });
});
afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

const write = (...rows: ConversationRowWrite[]) => store.commit({ appends: [], rows });

function conversation(id: string, space = ""): ConversationRowWrite {
  return {
    kind: "conversation.put",
    row: { id, space, type: "mixed", status: "active", createdAt: 1, header: "{}" },
  };
}

function member(conversationId: string, participant: string, active = true): ConversationRowWrite {
  return { kind: "conversation.member", conversation: conversationId, participant, active };
}

const session = (tokenHash: string, lostAt?: number) => ({
  id: "s1",
  tokenHash,
  data: "{}",
  ...(lostAt !== undefined && { lostAt }),
});

describe("lists of conversations", () => {
  it("of several ids have each conversation once, in order, and only of their space", async () => {
    await write(
      ...["conv-c", "conv-a", "conv-b"].map((id) => conversation(id)),
      conversation("conv-d", "elsewhere"),
      member("conv-a", "ann"),
      member("conv-c", "ann"),
      member("conv-c", "bob"),
      member("conv-b", "bob"),
      member("conv-b", "bob", false),
      member("conv-d", "ann"),
    );
    const list = async (members: string[], after = "") =>
      (await store.conversations.list({ space: "", members, after, limit: 10 })).map(({ id }) => id);
    expect(await list(["ann", "bob"])).toEqual(["conv-a", "conv-c"]);
    expect(await list(["ann", "bob"], "conv-a")).toEqual(["conv-c"]);
    expect(await list(["bob"])).toEqual(["conv-c"]);
    expect(await list(["nobody"])).toEqual([]);
    const all = await store.conversations.list({ space: "", limit: 10 });
    expect(all.map(({ id, participantCount }) => [id, participantCount])).toEqual([
      ["conv-a", 1],
      ["conv-b", 0],
      ["conv-c", 2],
    ]);
  });

  it("are found by index, without a full scan", () => {
    const db = openDatabase(join(directory, "mailroom.db"), { busyTimeout: 1000 });
    try {
      const values = {
        space: "",
        after: "",
        types: null,
        statuses: null,
        parent: null,
        createdAfter: null,
        closedBefore: null,
      };
      const bound = { ...values, createdBefore: null, participant: null, limit: 1, members: "[]" };
      const plan = db
        .prepare<[object], { detail: string }>(`EXPLAIN QUERY PLAN ${CONVERSATION_QUERIES.ofMembers}`)
        .all(bound)
        .map(({ detail }) => detail)
        .join("\n");
      expect(plan).toMatch(/SEARCH m USING PRIMARY KEY \(participant=\? AND active=\? AND conversation>\?\)/);
      expect(plan).toMatch(/SEARCH c USING INDEX \S+ \(id=\?\)/);
      expect(plan).not.toMatch(/SCAN (c|m|n|p)\b/);
    } finally {
      db.close();
    }
  });
});

describe("sessions", () => {
  it("are found by their current token only, and each token works once", async () => {
    await write({ kind: "map_session.put", row: session("one") });
    await write({ kind: "map_session.put", row: session("two"), replaces: "one" });
    expect(await store.conversations.sessionByToken("one")).toBeUndefined();
    expect(await store.conversations.sessionByToken("two")).toMatchObject({ id: "s1" });
    await expect(
      write({ kind: "map_session.put", row: session("three"), replaces: "one" }),
    ).rejects.toBeInstanceOf(RowConflictError);
  });

  it("of an earlier process are disconnected at the next start, and removed later", async () => {
    await write({ kind: "map_session.put", row: session("one") });
    await write({ kind: "map_session.sweep", now: 100, lostBefore: 0 });
    expect(await store.conversations.sessionByToken("one")).toMatchObject({ lostAt: 100 });
    await write({ kind: "map_session.sweep", now: 200, lostBefore: 101 });
    expect(await store.conversations.sessionByToken("one")).toBeUndefined();
  });
});

it("an agent's id belongs to its first claimant, per space", async () => {
  const claim = (principal: string, space = "", takesOver = false) =>
    write({ kind: "map_agent.claim", space, id: "helper", principal, takesOver });
  await claim("user:ann");
  await claim("user:ann");
  await expect(claim("user:bob")).rejects.toBeInstanceOf(RowConflictError);
  await claim("user:bob", "elsewhere");
  await claim("member:helper", "", true);
  await expect(claim("user:ann")).rejects.toBeInstanceOf(RowConflictError);
  await claim("user:bob", "elsewhere");
});
