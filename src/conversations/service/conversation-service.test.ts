import fc from "fast-check";
import { uuidv7 } from "uuidv7";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Fate, FaultyDisk, openStoreOn } from "../../../test/kit/faulty-driver.js";
import { replacing } from "../../../test/kit/replacing.js";
import { until } from "../../../test/kit/waiting.js";
import { actorOf } from "../../../test/map/builders.js";
import { systemClock } from "../../base/index.js";
import type { GroupResult, JournalRow } from "../../journal/index.js";
import { systemLoop, Writer } from "../../journal/index.js";
import { type FullStore, openStore } from "../../store/index.js";
import { journalEventId, type MapEvent } from "../events/event.js";
import { EventLog, type JournalEvents } from "../events/event-log.js";
import { MapError } from "../rules/errors.js";
import { extractiveSummarizer, type Summarizer } from "../rules/summary.js";
import type { Actor, Turn, Visibility } from "../rules/types.js";
import { ConversationService } from "./conversation-service.js";

let store: FullStore;
beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
});
afterEach(() => store.close());

function open(
  over: FullStore = store,
  memory = {},
  summarizer: Summarizer = extractiveSummarizer,
): { conversations: ConversationService; log: EventLog } {
  const report = (error: unknown): void => {
    throw error;
  };
  const log = new EventLog({ store: over, now: Date.now, epoch: "test", ringSize: 100, report });
  const conversations = new ConversationService({
    store: over,
    index: over.conversations,
    log,
    clock: { now: () => 1000, after: systemClock.after },
    ids: { uuid: uuidv7, ordered: uuidv7 },
    identify: () => ({ type: "agent" }),
    memory,
    summarizer,
    report,
  });
  return { conversations, log };
}

/** Makes the next appends fail permanently: first the whole batch, then its first append. */
function refuseNext(disk: FaultyDisk, attempts: number): void {
  let left = attempts;
  disk.refuse = ({ appends }) => {
    if (left === 0 || appends.length === 0) return undefined;
    left--;
    return Object.assign(new Error("it was refused"), { code: "refused" });
  };
}

function failNext(disk: FaultyDisk, fate: Fate, times: number): void {
  let left = times;
  disk.fate = () => (left-- > 0 ? fate : undefined);
}

/** The same store with gaps between positions. */
function sparse(inner: FullStore): FullStore {
  const STEP = 1000;
  const spread = <Row extends JournalRow>(rows: Row[]): Row[] =>
    rows.map((row) => ({ ...row, position: row.position * STEP }));
  const spreadResult = (result: GroupResult): GroupResult =>
    result.kind !== "committed"
      ? result
      : {
          ...result,
          before: (result.before ?? 0) * STEP,
          outcomes: result.outcomes.map((outcome) =>
            outcome instanceof Error ? outcome : outcome.map((position) => position * STEP),
          ),
        };
  const writer = new Writer({
    driver: { write: (group, done) => inner.driver.write(group, (result) => done(spreadResult(result))) },
    clock: systemClock,
    loop: systemLoop,
  });
  return replacing(inner, {
    writer,
    commit: (batch, kind) => writer.commit(batch, kind),
    read: async (...asked) => spread(await inner.read(...asked)),
    readAll: async (after, limit) => spread(await inner.readAll(Math.floor(after / STEP), limit)),
    position: async () => (await inner.position()) * STEP,
  });
}

async function replayed(log: EventLog): Promise<MapEvent[]> {
  const events: MapEvent[] = [];
  for await (const event of log.replay({})) events.push(event);
  return events;
}

const NAMES = ["ann", "bob", "cyd"] as const;
const callers = new Map<string, Actor>(NAMES.map((name) => [name, actorOf(name)]));
const actor = (name: string): Actor => callers.get(name) ?? actorOf(name);

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
  | { readonly act: "fail"; readonly fate: Fate | "refused"; readonly times: number };

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
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("fail" as const),
      fate: fc.constantFrom(
        "refused" as const,
        "transient" as const,
        "written, not told" as const,
        "not written, not told" as const,
      ),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
);

/** What the actor sees, or the name of the error. */
async function doors(service: ConversationService, as: Actor, conversationId: string): Promise<unknown> {
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
      service.get(as, {
        conversationId,
        include: { participants: true, threads: true, stats: true, recentTurns: 100 },
      }),
    ),
    turns: await attempt(() => service.listTurns(as, { conversationId, limit: 500 })),
    replay: await attempt(() => service.replay(as, { conversationId, limit: 500 })),
    threads: await attempt(() => service.listThreads(as, { conversationId })),
    list: await attempt(() => service.list(as, {})),
  };
}

/** Other writers use the same store. */
const OTHERS: JournalEvents = {
  owns: (journal) => journal.startsWith("task-"),
  eventsOf: ({ position }) => [
    {
      id: journalEventId(position, 0),
      type: "other",
      source: "other",
      timestamp: 1000,
      data: {},
      visibleLive: () => true,
      visibleInReplay: () => true,
    },
  ],
};
const other = (journal: string) => ({ journal, expected: 0, count: 1, data: '[{"at":1}]' });

const isOurs = (error: unknown): boolean =>
  error instanceof MapError || (error instanceof Error && "code" in error && error.code === "refused");

describe("conversations on a store", () => {
  it("[MAP-OURS-01] are unchanged by a reload and contain everything acknowledged, despite failures", async () => {
    const disk = new FaultyDisk();
    const over = await openStoreOn(disk);
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), fc.boolean(), async (acts, together) => {
        const { conversations: service } = open(over, { maxConversations: 1 });
        const { conversation } = await service.create(actor("ann"), {});
        const { id: conversationId } = conversation;
        const acknowledged: string[] = [];
        const perform = async (one: Act): Promise<void> => {
          switch (one.act) {
            case "fail": {
              const { fate, times } = one;
              if (fate === "refused") refuseNext(disk, times);
              else failNext(disk, fate, times);
              return;
            }
            case "turn": {
              const { turn } = await service.turn(actor(one.who), {
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
              await service.join(actor(one.who), { conversationId });
              return;
            case "leave":
              await service.leave(actor(one.who), { conversationId });
              return;
            case "invite":
              await service.invite(actor("ann"), {
                conversationId,
                participant: { id: one.who, role: "worker", permissions: { historyAccess: one.access } },
              });
              return;
            case "thread": {
              const rootTurnId = acknowledged[one.root] ?? "turn-x";
              await service.createThread(actor(one.who), { conversationId, rootTurnId });
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
        failNext(disk, "transient", 0);
        refuseNext(disk, 0);
        const { conversations: reloaded } = open(over);
        for (const name of [...NAMES, "eve"]) {
          expect(await doors(service, actor(name), conversationId)).toEqual(
            await doors(reloaded, actor(name), conversationId),
          );
        }
        const stored: string[] = [];
        for (const row of await over.read(conversationId)) {
          for (const entry of JSON.parse(row.data) as { t: string; turn: Turn }[]) {
            if (entry.t === "turn") stored.push(entry.turn.id);
          }
        }
        expect(stored.toSorted()).toEqual(acknowledged.toSorted());
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    ["one after the other", () => store],
    ["with gaps", () => sparse(store)],
  ])(
    "publish each committed event once, in commit order, as replay does: positions %s",
    async (_name, opened) => {
      const over = opened();
      const { conversations: service, log } = open(over);
      const live: MapEvent[] = [];
      log.addSource(OTHERS);
      await log.listen((event) => live.push(event));
      const made = await Promise.all([1, 2, 3].map(() => service.create(actor("ann"), {})));
      const write = (n: number) =>
        service.turn(actor("ann"), {
          conversationId: made[n % 3]?.conversation.id ?? "",
          contentType: "data",
          content: n,
        });
      await Promise.all(
        Array.from({ length: 60 }, async (_, n) => {
          await write(n);
          await over.commit({ appends: [other(`task-${n}`)] });
        }),
      );
      for (let n = 0; n < 20; n++) {
        await over.commit({ appends: [other(`task-x${n}`)] });
        await write(n);
      }
      // Turns that were committed together share a row, whose events keep their order.
      const rows = await over.readAll(0, 1000);
      expect(rows.length).toBeLessThan(150);
      const events = await replayed(log);
      const ids = events.map(({ id }) => id);
      expect(ids).toHaveLength(166);
      expect(ids).toEqual(ids.toSorted());
      expect(new Set(ids).size).toBe(166);
      await until(() => live.length === ids.length);
      expect(live.map(({ id }) => id)).toEqual(ids);
      expect(live.map(({ data }) => data)).toEqual(events.map(({ data }) => data));
      const [conversation] = made;
      const journal = conversation?.conversation.id ?? "";
      const part: string[] = [];
      for await (const event of log.replay({ journal, afterEventId: ids[30] ?? "" })) part.push(event.id);
      expect(part).toEqual(
        events
          .filter(({ id, mail }) => mail?.conversationId === journal && id > (ids[30] ?? ""))
          .map(({ id }) => id),
      );
      const since: string[] = [];
      for await (const event of log.replay({ fromTimestamp: 1000 })) since.push(event.id);
      expect(since).toEqual(ids);
    },
  );

  it("publish events that did not fit in memory from the store, in order", async () => {
    const { log } = open();
    const live: string[] = [];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    log.addSource({
      ...OTHERS,
      eventsOf: async (row, entries) => {
        await held;
        return OTHERS.eventsOf(row, entries);
      },
    });
    await log.listen(({ id }) => live.push(id));
    const commit = (n: number) => store.commit({ appends: [other(`task-${n}`)] });
    for (let n = 0; n < 3000; n += 500)
      await Promise.all(Array.from({ length: 500 }, (_, k) => commit(n + k)));
    const readAll = store.readAll.bind(store);
    let read = 0;
    store.readAll = async (...asked) => {
      const rows = await readAll(...asked);
      read += rows.length;
      return rows;
    };
    release();
    await until(() => live.length === 3000);
    // Most of them were dropped from memory.
    expect(read).toBeGreaterThan(1000);
    expect(live).toEqual((await replayed(log)).map(({ id }) => id));
  });

  it("publish events of other writers in their place", async () => {
    const { conversations: service, log } = open();
    const another = new Writer({ driver: store.driver, clock: systemClock, loop: systemLoop });
    log.addSource(OTHERS);
    await another.commit({ appends: [other("task-before")] });
    const live: string[] = [];
    await log.listen(({ id }) => live.push(id));
    const { conversation } = await service.create(actor("ann"), {});
    for (let n = 0; n < 3; n++) {
      await another.commit({ appends: [other(`task-${n}`)] });
      await service.turn(actor("ann"), { conversationId: conversation.id, contentType: "data", content: n });
    }
    const all = (await replayed(log)).map(({ id }) => id);
    expect(all).toHaveLength(9);
    await until(() => live.length >= 8);
    expect(live).toEqual(all.slice(1));
  });

  it("are published from the moment a listener is added, also after a restart", async () => {
    const before = open();
    const { conversation } = await before.conversations.create(actor("ann"), {});
    const say = (service: ConversationService, content: string) =>
      service.turn(actor("ann"), { conversationId: conversation.id, contentType: "data", content });
    await say(before.conversations, "first");
    before.log.close();
    const { conversations: service, log } = open();
    await say(service, "second");
    const live: MapEvent[] = [];
    const leave = await log.listen((event) => live.push(event));
    await say(service, "third");
    await until(() => live.length === 1);
    leave();
    await say(service, "fourth");
    await log.listen((event) => live.push(event));
    await say(service, "fifth");
    await until(() => live.length === 2);
    const all = (await replayed(log)).map(({ id }) => id);
    expect(live.map(({ id }) => id)).toEqual([all.at(-3), all.at(-1)]);
  });

  it("reject nothing because of entries that were never written", async () => {
    const disk = new FaultyDisk();
    const { conversations: service } = open(await openStoreOn(disk));
    const { conversation } = await service.create(actor("ann"), { metadata: { joinPolicy: "open" } });
    const join = () => service.join(actor("bob"), { conversationId: conversation.id });
    refuseNext(disk, 1);
    const [first, second] = await Promise.allSettled([join(), join()]);
    expect(first).toMatchObject({ status: "rejected", reason: { code: "refused" } });
    expect(second).toMatchObject({ status: "fulfilled" });
    await expect(join()).rejects.toMatchObject({ code: "PARTICIPANT_ALREADY_JOINED" });
  });

  it("show uncommitted entries neither to readers, which do not wait, nor in errors, which do", async () => {
    const disk = new FaultyDisk();
    const { conversations: service } = open(await openStoreOn(disk));
    const { conversation } = await service.create(actor("ann"), {});
    const { id: conversationId } = conversation;
    const told: string[] = [];
    disk.hold();
    const close = service.close(actor("ann"), { conversationId }).finally(() => told.push("closed"));
    const refused = service
      .join(actor("bob"), { conversationId })
      .catch((error: MapError) => error.code)
      .finally(() => told.push("refused"));
    const seen = await service.get(actor("ann"), { conversationId });
    expect(seen.conversation.status).toBe("active");
    expect(told).toEqual([]);
    disk.release();
    expect((await close).conversation.status).toBe("completed");
    expect(await refused).toBe("CONVERSATION_CLOSED");
  });

  it("generate no summary that could not be stored", async () => {
    const disk = new FaultyDisk();
    const over = await openStoreOn(disk);
    let made = 0;
    const { conversations: service } = open(
      over,
      {},
      {
        name: "counting",
        summarize: (input) => {
          made++;
          return extractiveSummarizer.summarize(input);
        },
      },
    );
    const { conversation } = await service.create(actor("ann"), {});
    const { id: conversationId } = conversation;
    disk.fate = () => "transient";
    const taken = service.turn(actor("ann"), { conversationId, contentType: "data", content: 1 });
    await until(() => over.writer.degraded);
    await expect(service.summary(actor("ann"), { conversationId })).rejects.toMatchObject({
      code: "store_busy",
    });
    expect(made).toBe(0);
    disk.fate = () => undefined;
    await taken;
    await service.summary(actor("ann"), { conversationId });
    expect(made).toBe(1);
  });

  it("leave memory when unused, and are loaded again", async () => {
    const { conversations: service } = open(store, { maxConversations: 5 });
    const made: string[] = [];
    for (let n = 0; n < 20; n++) {
      const { conversation } = await service.create(actor("ann"), {
        initialTurn: { contentType: "data", content: n },
      });
      made.push(conversation.id);
    }
    expect(service.loaded).toBeLessThanOrEqual(5);
    for (const [n, conversationId] of made.entries()) {
      await service.turn(actor("ann"), { conversationId, contentType: "data", content: "again" });
      const { turns } = await service.listTurns(actor("ann"), { conversationId });
      expect(turns.map(({ content }) => content)).toEqual([n, "again"]);
    }
    expect(service.loaded).toBeLessThanOrEqual(5);
  });

  it("of another space do not exist for reads or writes", async () => {
    const { conversations: service } = open();
    const { conversation } = await service.create(actor("ann"), {});
    const { id: conversationId } = conversation;
    const twin = { ...actor("ann"), space: "another" };
    for (const ask of [
      () => service.get(twin, { conversationId }),
      () => service.listTurns(twin, { conversationId }),
      () => service.turn(twin, { conversationId, contentType: "data", content: 1 }),
      () => service.join({ ...actor("bob"), space: "another" }, { conversationId }),
      () => service.close(twin, { conversationId }),
      () => service.create(twin, { parentConversationId: conversationId }),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: "CONVERSATION_NOT_FOUND" });
    }
  });

  it("a status that the server sets is visible and enforced", async () => {
    const { conversations: service } = open();
    const { conversation } = await service.create(actor("ann"), {});
    const { id: conversationId } = conversation;
    const write = () => service.turn(actor("ann"), { conversationId, contentType: "data", content: 1 });
    await service.setStatus(conversationId, "paused");
    await expect(write()).rejects.toMatchObject({ code: "CONVERSATION_CLOSED" });
    await service.setStatus(conversationId, "active");
    await write();
    await service.setStatus(conversationId, "archived");
    await expect(write()).rejects.toMatchObject({ code: "CONVERSATION_CLOSED" });
    const { conversations } = await service.list(actor("ann"), { filter: { status: ["archived"] } });
    expect(conversations).toMatchObject([{ id: conversationId, closedAt: 1000 }]);
  });

  it("of any length cost one page per page, and do not block other work while they load", async () => {
    const LENGTH = 4000;
    const filling = "x".repeat(2000);
    const { conversations: writer } = open();
    const { conversation } = await writer.create(actor("ann"), {});
    const { id: conversationId } = conversation;
    for (let n = 0; n < LENGTH; n += 500) {
      await Promise.all(
        Array.from({ length: 500 }, (_, k) =>
          writer.turn(actor("ann"), { conversationId, contentType: "data", content: [n + k, filling] }),
        ),
      );
    }
    let rowsRead = 0;
    const counting = replacing(store, {
      read: async (...asked) => {
        const rows = await store.read(...asked);
        rowsRead += rows.length;
        return rows;
      },
    });
    const { conversations: service, log } = open(counting);
    const { conversation: short } = await service.create(actor("bob"), {});
    const order: string[] = [];
    const opening = service
      .listTurns(actor("ann"), { conversationId, limit: 10, order: "desc" })
      .finally(() => order.push("long"));
    await service
      .turn(actor("bob"), { conversationId: short.id, contentType: "data", content: "hello" })
      .finally(() => order.push("short"));
    const { turns: newest } = await opening;
    expect(order).toEqual(["short", "long"]);
    expect(newest.map(({ content }) => content)).toEqual(
      Array.from({ length: 10 }, (_, k) => [LENGTH - 1 - k, filling]),
    );

    rowsRead = 0;
    const oldestOfThem = newest.at(-1)?.id ?? "";
    const later = await service.listTurns(actor("ann"), { conversationId, limit: 5, cursor: oldestOfThem });
    expect(later.turns.map(({ id }) => id)).toEqual(
      newest
        .slice(4, 9)
        .map(({ id }) => id)
        .toReversed(),
    );
    const missed = await service.replay(actor("ann"), { conversationId, fromTurnId: oldestOfThem });
    expect(missed.turns.map(({ id }) => id)).toEqual(
      newest
        .slice(0, 9)
        .map(({ id }) => id)
        .toReversed(),
    );
    expect(rowsRead).toBeLessThan(100);
    rowsRead = 0;
    expect((await service.listTurns(actor("ann"), { conversationId, limit: 5 })).turns).toHaveLength(5);
    expect(rowsRead).toBeLessThan(10);

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
