import fc from "fast-check";
import { uuidv7 } from "uuidv7";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Batch, Committed, Store } from "../../engine/ports.js";
import { openSqliteStore, type SqliteStore } from "../../store/index.js";
import { MapError } from "../domain/errors.js";
import { callerOf } from "../domain/testing.js";
import type { Caller, Turn, Visibility } from "../domain/types.js";
import { journalEventId, type MapEvent } from "../log/event.js";
import { EventLog } from "../log/event-log.js";
import { Conversations } from "./conversations.js";

let store: SqliteStore;
beforeEach(async () => {
  store = await openSqliteStore({ path: ":memory:" });
});
afterEach(() => store.close());

/** A store whose commits fail when told to, without having written anything. */
function unreliable(inner: SqliteStore): Store & { failNext: number } {
  const wrapper = {
    failNext: 0,
    commit(batch: Batch): Promise<Committed> {
      if (wrapper.failNext > 0 && batch.appends.length > 0) {
        wrapper.failNext--;
        return Promise.reject(Object.assign(new Error("disk full"), { code: "store_failure" }));
      }
      return inner.commit(batch);
    },
    read: inner.read.bind(inner),
    readAll: inner.readAll.bind(inner),
    lastNumber: inner.lastNumber.bind(inner),
    readSnapshot: inner.readSnapshot.bind(inner),
    tasks: inner.tasks,
    close: () => inner.close(),
  };
  return wrapper;
}

function open(over: Store = store, cache = {}): { conversations: Conversations; log: EventLog } {
  const log = new EventLog({
    store: over,
    now: Date.now,
    epoch: "test",
    ringSize: 100,
    report: (error) => {
      throw error;
    },
  });
  const conversations = new Conversations({
    store: over,
    index: store.conversations,
    log,
    clock: { now: () => 1000, after: () => () => {} },
    ids: { uuid: uuidv7, ordered: uuidv7 },
    identify: () => ({ type: "agent" }),
    cache,
  });
  return { conversations, log };
}

const NAMES = ["ann", "bob", "cyd"] as const;
const callers = new Map<string, Caller>(NAMES.map((name) => [name, callerOf(name)]));
const caller = (name: string): Caller => callers.get(name) ?? callerOf(name);

const visibility: fc.Arbitrary<Visibility | undefined> = fc.constantFrom(
  undefined,
  { type: "all" as const },
  { type: "private" as const },
  { type: "participants" as const, ids: ["bob"] },
  { type: "role" as const, roles: ["worker" as const] },
);

type Act =
  | {
      readonly act: "turn";
      readonly who: string;
      readonly visibility: Visibility | undefined;
      readonly internal: boolean;
    }
  | { readonly act: "join" | "leave"; readonly who: string }
  | { readonly act: "invite"; readonly who: string; readonly access: "none" | "from-join" | "full" }
  | { readonly act: "thread"; readonly who: string; readonly root: number }
  | { readonly act: "fail" };

const who = fc.constantFrom(...NAMES);
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant("turn" as const), who, visibility, internal: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom("join" as const, "leave" as const), who }) },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("invite" as const),
      who,
      access: fc.constantFrom("none" as const, "from-join" as const, "full" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("thread" as const), who, root: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("fail" as const) }) },
);

/** What a caller is shown, or the name of the error. */
async function doors(book: Conversations, as: Caller, conversationId: string): Promise<unknown> {
  const attempt = async (ask: () => Promise<unknown>): Promise<unknown> => {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof MapError) return error.code;
      throw error;
    }
  };
  return {
    get: await attempt(() =>
      book.get(as, {
        conversationId,
        include: { participants: true, threads: true, stats: true, recentTurns: 100 },
      }),
    ),
    turns: await attempt(() => book.listTurns(as, { conversationId, limit: 500 })),
    replay: await attempt(() => book.replay(as, { conversationId, limit: 500 })),
    threads: await attempt(() => book.listThreads(as, { conversationId })),
    list: await attempt(() => book.list(as, {})),
  };
}

const isOurs = (error: unknown): boolean =>
  error instanceof MapError || (error instanceof Error && "code" in error && error.code === "store_failure");

describe("conversations on a store", () => {
  it("[MAP-OURS-01] are the same after a reload as before, and hold all that was acknowledged, whatever failed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), fc.boolean(), async (acts, together) => {
        const over = unreliable(store);
        const { conversations: book } = open(over, { maxConversations: 1 });
        const { conversation } = await book.create(caller("ann"), {});
        const { id: conversationId } = conversation;
        const acknowledged: string[] = [];
        const perform = async (one: Act): Promise<void> => {
          switch (one.act) {
            case "fail":
              over.failNext = 1;
              return;
            case "turn": {
              const { turn } = await book.turn(caller(one.who), {
                conversationId,
                contentType: "text",
                content: { text: "x" },
                visibility: one.visibility as never,
                metadata: { internal: one.internal },
              });
              acknowledged.push(turn.id);
              return;
            }
            case "join":
              await book.join(caller(one.who), { conversationId });
              return;
            case "leave":
              await book.leave(caller(one.who), { conversationId });
              return;
            case "invite":
              await book.invite(caller("ann"), {
                conversationId,
                participant: { id: one.who, role: "worker", permissions: { historyAccess: one.access } },
              });
              return;
            case "thread": {
              const rootTurnId = acknowledged[one.root] ?? "turn-x";
              await book.createThread(caller(one.who), { conversationId, rootTurnId });
              return;
            }
            default:
              one satisfies never;
          }
        };
        const calm = (one: Act): Promise<void> =>
          perform(one).catch((error: unknown) => {
            if (!isOurs(error)) throw error;
          });
        if (together) await Promise.all(acts.map(calm));
        else for (const one of acts) await calm(one);
        over.failNext = 0;
        const { conversations: reloaded } = open();
        for (const name of [...NAMES, "eve"]) {
          expect(await doors(book, caller(name), conversationId)).toEqual(
            await doors(reloaded, caller(name), conversationId),
          );
        }
        const stored: string[] = [];
        for (const row of await store.read(conversationId)) {
          for (const entry of JSON.parse(row.data) as { t: string; turn: Turn }[]) {
            if (entry.t === "turn") stored.push(entry.turn.id);
          }
        }
        expect(stored.toSorted()).toEqual(acknowledged.toSorted());
      }),
      { numRuns: 100 },
    );
  });

  it("tell each committed event once, in commit order, and replay tells the same", async () => {
    const { conversations: book, log } = open();
    const live: MapEvent[] = [];
    // Others write to the same store, and do not say so.
    log.addSource({
      owns: (journal) => journal.startsWith("task-"),
      eventsOf: ({ position }) => [
        {
          id: journalEventId(position, 0),
          type: "other",
          source: "other",
          timestamp: 1000,
          data: {},
          toldLive: () => true,
          toldAgain: () => true,
        },
      ],
    });
    await log.listen((event) => live.push(event));
    const made = await Promise.all([1, 2, 3].map(() => book.create(caller("ann"), {})));
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const conversationId = made[n % 3]?.conversation.id ?? "";
        await book.turn(caller("ann"), { conversationId, contentType: "data", content: n });
        await store.commit({
          appends: [{ journal: `task-${n}`, expected: 0, count: 1, data: '[{"at":1}]' }],
        });
      }),
    );
    for (let n = 0; n < 20; n++) {
      await store.commit({ appends: [{ journal: `task-x${n}`, expected: 0, count: 1, data: '[{"at":1}]' }] });
      const conversationId = made[n % 3]?.conversation.id ?? "";
      await book.turn(caller("ann"), { conversationId, contentType: "data", content: n });
    }
    await log.wake();
    const replayed: MapEvent[] = [];
    for await (const event of log.replay({})) replayed.push(event);
    const ids = replayed.map(({ id }) => id);
    expect(ids).toHaveLength(166);
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(166);
    while (live.length < ids.length) await new Promise((resolve) => setImmediate(resolve));
    expect(live.map(({ id }) => id)).toEqual(ids);
    const [conversation] = made;
    const journal = conversation?.conversation.id ?? "";
    const part: string[] = [];
    for await (const event of log.replay({ journal, afterEventId: ids[30] ?? "" })) part.push(event.id);
    expect(part).toEqual(
      replayed
        .filter(({ id, mail }) => mail?.conversationId === journal && id > (ids[30] ?? ""))
        .map(({ id }) => id),
    );
    const since: string[] = [];
    for await (const event of log.replay({ fromTimestamp: 1000 })) since.push(event.id);
    expect(since).toEqual(ids);
  });

  it("refuse nothing for the sake of what was never written", async () => {
    const over = unreliable(store);
    const { conversations: book } = open(over);
    const { conversation } = await book.create(caller("ann"), {});
    const join = () => book.join(caller("bob"), { conversationId: conversation.id });
    over.failNext = 1;
    const [first, second] = await Promise.allSettled([join(), join()]);
    expect(first).toMatchObject({ status: "rejected", reason: { code: "store_failure" } });
    expect(second).toMatchObject({ status: "fulfilled" });
    await expect(join()).rejects.toMatchObject({ code: "PARTICIPANT_ALREADY_JOINED" });
  });

  it("that nobody uses leave memory, and come back", async () => {
    const { conversations: book } = open(store, { maxConversations: 5 });
    const made: string[] = [];
    for (let n = 0; n < 20; n++) {
      const { conversation } = await book.create(caller("ann"), {
        initialTurn: { contentType: "data", content: n },
      });
      made.push(conversation.id);
    }
    expect(book.loaded).toBeLessThanOrEqual(5);
    for (const [n, conversationId] of made.entries()) {
      await book.turn(caller("ann"), { conversationId, contentType: "data", content: "again" });
      const { turns } = await book.listTurns(caller("ann"), { conversationId });
      expect(turns.map(({ content }) => content)).toEqual([n, "again"]);
    }
    expect(book.loaded).toBeLessThanOrEqual(5);
  });

  it("a status that the server sets is seen and obeyed", async () => {
    const { conversations: book } = open();
    const { conversation } = await book.create(caller("ann"), {});
    const { id: conversationId } = conversation;
    const write = () => book.turn(caller("ann"), { conversationId, contentType: "data", content: 1 });
    await book.setStatus(conversationId, "paused");
    await expect(write()).rejects.toMatchObject({ code: "CONVERSATION_CLOSED" });
    await book.setStatus(conversationId, "active");
    await write();
    await book.setStatus(conversationId, "archived");
    await expect(write()).rejects.toMatchObject({ code: "CONVERSATION_CLOSED" });
    const { conversations } = await book.list(caller("ann"), { filter: { status: ["archived"] } });
    expect(conversations).toMatchObject([{ id: conversationId, closedAt: 1000 }]);
  });

  it("however long, cost a page what the page has, and hold up nobody while they are read", async () => {
    const LENGTH = 4000;
    const { conversations: writer } = open();
    const { conversation } = await writer.create(caller("ann"), {});
    const { id: conversationId } = conversation;
    for (let n = 0; n < LENGTH; n += 500) {
      await Promise.all(
        Array.from({ length: 500 }, (_, k) =>
          writer.turn(caller("ann"), { conversationId, contentType: "data", content: n + k }),
        ),
      );
    }
    let rowsRead = 0;
    const counting: Store = {
      ...unreliable(store),
      read: async (...asked) => {
        const rows = await store.read(...asked);
        rowsRead += rows.length;
        return rows;
      },
    };
    const { conversations: book, log } = open(counting);
    const { conversation: short } = await book.create(caller("bob"), {});
    const order: string[] = [];
    const opening = book
      .listTurns(caller("ann"), { conversationId, limit: 10, order: "desc" })
      .finally(() => order.push("long"));
    await book
      .turn(caller("bob"), { conversationId: short.id, contentType: "data", content: "hello" })
      .finally(() => order.push("short"));
    const { turns: newest } = await opening;
    expect(order).toEqual(["short", "long"]);
    expect(newest.map(({ content }) => content)).toEqual(
      Array.from({ length: 10 }, (_, k) => LENGTH - 1 - k),
    );

    rowsRead = 0;
    const oldestOfThem = newest.at(-1)?.id ?? "";
    const later = await book.listTurns(caller("ann"), { conversationId, limit: 5, cursor: oldestOfThem });
    expect(later.turns.map(({ id }) => id)).toEqual(
      newest
        .slice(4, 9)
        .map(({ id }) => id)
        .toReversed(),
    );
    const missed = await book.replay(caller("ann"), { conversationId, fromTurnId: oldestOfThem });
    expect(missed.turns.map(({ id }) => id)).toEqual(
      newest
        .slice(0, 9)
        .map(({ id }) => id)
        .toReversed(),
    );
    expect(rowsRead).toBeLessThan(100);

    const ids: string[] = [];
    for await (const { id } of log.replay({ journal: conversationId })) ids.push(id);
    rowsRead = 0;
    const after: string[] = [];
    for await (const { id } of log.replay({ journal: conversationId, afterEventId: ids.at(-4) ?? "" })) {
      after.push(id);
    }
    expect(after).toEqual(ids.slice(-3));
    expect(rowsRead).toBeLessThan(100);
  });
});
