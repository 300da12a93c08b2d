import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { CircuitBreaker } from "../base/index.js";
import { type FullStore, openStore } from "../store/index.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { type Attempt, type AttemptResult, Dispatcher, type QueueOptions } from "./dispatcher.js";
import { enqueue, type FinalOutcome, type OutboxItem, purgeFinished } from "./item.js";
import type { StoredItem } from "./ports.js";

const QUEUE = "test";
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Setup {
  readonly store: FullStore;
  readonly clock: VirtualClock;
  readonly dispatcher: Dispatcher;
  readonly problems: unknown[];
  readonly attempts: Attempt[];
  put(id: string, fields?: Partial<OutboxItem>): Promise<unknown>;
  /** Runs until nothing is due before a time. */
  run(ms?: number): Promise<void>;
}

async function setUp(
  handler: (attempt: Attempt) => AttemptResult | Promise<AttemptResult>,
  options: Partial<QueueOptions> & {
    store?: FullStore;
    finished?: (item: StoredItem, final: FinalOutcome) => void;
  } = {},
): Promise<Setup> {
  const store = options.store ?? (await openStore({ path: ":memory:" }));
  if (options.store === undefined) cleanups.push(() => store.close());
  const clock = new VirtualClock();
  const attempts: Attempt[] = [];
  const problems: unknown[] = [];
  const dispatcher = new Dispatcher(
    { store, reads: store.outbox, clock, random: () => 0, report: (problem) => problems.push(problem) },
    {
      queue: QUEUE,
      handler: async (attempt) => {
        attempts.push(attempt);
        return handler(attempt);
      },
      ...(options.finished !== undefined && {
        settle: async (item, final, finish) => {
          await store.commit({ appends: [], rows: [finish] });
          options.finished?.(item, final);
        },
      }),
      ...options,
    },
  );
  cleanups.push(() => dispatcher.stop());
  return {
    store,
    clock,
    dispatcher,
    problems,
    attempts,
    put: (id, fields = {}) => {
      const now = clock.now();
      const item = {
        queue: QUEUE,
        id,
        lane: id,
        target: "peer",
        payload: id,
        createdAt: now,
        dueAt: now,
        ...fields,
      };
      return store.commit({ appends: [], rows: [enqueue(item)] });
    },
    async run(ms = 0) {
      const until = clock.now() + ms;
      dispatcher.wake();
      do await dispatcher.quiet();
      while (clock.step(until));
      if (clock.now() < until) clock.jump(until - clock.now());
    },
  };
}

const delivered: AttemptResult = { kind: "delivered" };

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate);
}

describe("delivery", () => {
  it("passes each item to the handler once and stores the outcome", async () => {
    const { put, run, attempts, store } = await setUp(() => delivered);
    await put("a");
    await put("b");
    await run();
    await run();
    expect(attempts.map(({ item, number }) => [item.payload, number])).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
    expect(await store.outbox.counts(QUEUE)).toEqual({ waiting: 0, delivered: 2, refused: 0, expired: 0 });
    expect(await store.outbox.item("a")).toMatchObject({ outcome: "delivered", attempts: 1, payload: "" });
  });

  it("stores an item together with its batch, or not at all", async () => {
    const { store, attempts, run, clock } = await setUp(() => delivered);
    const now = clock.now();
    const item = { queue: QUEUE, id: "a", lane: "l", target: "t", payload: "p", createdAt: now, dueAt: now };
    const stale = { journal: "j", expected: 7, count: 1, data: "[1]" };
    await expect(store.commit({ appends: [stale], rows: [enqueue(item)] })).rejects.toThrow("journal j");
    await run();
    expect(attempts).toEqual([]);
  });

  it("attempts nothing before the due time", async () => {
    const { put, run, attempts, clock } = await setUp(() => delivered);
    await put("later", { dueAt: clock.now() + 5_000 });
    await run(4_999);
    expect(attempts).toHaveLength(0);
    await run(1);
    expect(attempts).toHaveLength(1);
  });

  it("keeps the order of a lane while other lanes pass a blocked one", async () => {
    const { put, run, attempts } = await setUp(({ item, number }) =>
      item.id === "a1" && number < 3 ? { kind: "retry", reason: "down", after: 1_000 } : delivered,
    );
    await put("a1", { lane: "a" });
    await put("a2", { lane: "a" });
    await put("b1", { lane: "b" });
    await run(10_000);
    expect(attempts.map(({ item }) => item.id)).toEqual(["a1", "b1", "a1", "a1", "a2"]);
  });

  it("continues the lane after a refused item", async () => {
    const { put, run, store } = await setUp(({ item }) =>
      item.id === "a1" ? { kind: "refused", reason: "no such agent" } : delivered,
    );
    await put("a1", { lane: "a" });
    await put("a2", { lane: "a" });
    await run();
    expect(await store.outbox.list(QUEUE, { limit: 9 })).toMatchObject([
      { id: "a1", outcome: "refused", reason: "no such agent" },
      { id: "a2", outcome: "delivered" },
    ]);
  });

  it("ignores an item whose dedupe key was enqueued before, finished or not", async () => {
    const { put, run, attempts, store } = await setUp(() => delivered);
    await put("a", { dedupeKey: "k" });
    await put("b", { dedupeKey: "k" });
    await run();
    await put("c", { dedupeKey: "k" });
    await run();
    expect(attempts.map(({ item }) => item.id)).toEqual(["a"]);
    expect(await store.outbox.byDedupeKey(QUEUE, "k")).toMatchObject({ id: "a", outcome: "delivered" });
    await store.commit({
      appends: [],
      rows: [purgeFinished(QUEUE, Number.MAX_SAFE_INTEGER)],
    });
    expect(await store.outbox.byDedupeKey(QUEUE, "k")).toBeUndefined();
  });

  it("reports full targets, counting items that are not durable yet", async () => {
    const ends: ((result: AttemptResult) => void)[] = [];
    const { put, dispatcher } = await setUp(() => new Promise((resolve) => ends.push(resolve)));
    const { backlog } = dispatcher;
    await put("found");
    dispatcher.wake();
    while (ends.length === 0) await new Promise(setImmediate);
    expect([backlog.isFull("peer", 1), backlog.isFull("peer", 2), backlog.isFull("other", 1)]).toEqual([
      true,
      false,
      false,
    ]);
    backlog.add("peer");
    expect(backlog.isFull("peer", 2)).toBe(true);
    // It was never committed. The next rejection makes the count read the store, which shows it.
    while (backlog.isFull("peer", 2)) await new Promise(setImmediate);
    for (const end of ends) end(delivered);
    await dispatcher.quiet();
    expect(backlog.isFull("peer", 1)).toBe(false);
  });

  it("dispatches the lanes passed to wake, and all others with the next full scan", async () => {
    const { put, dispatcher, attempts } = await setUp(() => delivered);
    await put("told");
    await put("untold");
    dispatcher.wake(["told", "of another"]);
    await dispatcher.quiet();
    expect(attempts.map(({ item }) => item.id)).toEqual(["told"]);
    dispatcher.wake();
    await dispatcher.quiet();
    expect(attempts.map(({ item }) => item.id)).toEqual(["told", "untold"]);
  });
});

describe("failure", () => {
  it("backs off after a failed attempt, and treats a throw as one", async () => {
    const { put, run, attempts, clock } = await setUp(
      ({ number }) => {
        if (number < 4) throw new Error("no route");
        return delivered;
      },
      { backoff: { base: 100, factor: 10, cap: 5_000, jitter: 0 } },
    );
    const start = clock.now();
    const times: number[] = [];
    await put("a");
    for (let index = 0; index < 4; index += 1) {
      await run(0);
      times.push(clock.now() - start);
      if (!clock.step()) break;
    }
    expect(times).toEqual([0, 100, 1_100, 6_100]);
    await run();
    expect(attempts.map(({ interrupted }) => interrupted)).toEqual([false, true, true, true]);
  });

  it("expires at the deadline without another attempt and gives the reason", async () => {
    const finals: FinalOutcome[] = [];
    const { put, run, attempts, store, clock } = await setUp(
      () => ({ kind: "retry", reason: "503", after: 60_000 }),
      { finished: (_, final) => finals.push(final) },
    );
    await put("a", { deadlineAt: clock.now() + 90_000 });
    await run(3_600_000);
    expect(attempts).toHaveLength(2);
    expect(finals).toMatchObject([
      { outcome: "expired", attempts: 2, reason: expect.stringContaining("503") },
    ]);
    expect((await store.outbox.item("a"))?.finishedAt).toBe(finals[0]?.at);
  });

  it("[MAIL-OURS-08] expires at the deadline while the circuit is open, an attempt hangs, or another item is ahead in its lane", async () => {
    const finals: [string, string, number][] = [];
    const hang = ({ signal }: Attempt) =>
      new Promise<AttemptResult>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    const circuits = new CircuitBreaker({
      threshold: 1,
      pause: { base: 3_600_000, factor: 1, cap: 3_600_000, jitter: 0 },
    });
    const { put, clock, dispatcher, attempts } = await setUp(
      (attempt) => (attempt.item.target === "hanging" ? hang(attempt) : { kind: "retry", reason: "down" }),
      {
        circuits,
        targetConcurrency: 1,
        timeLimit: 10_000_000,
        finished: (item, { outcome, at }) => finals.push([item.id, outcome, at - start]),
      },
    );
    const start = clock.now();
    await put("opens it", { deadlineAt: start + 50_000 });
    await put("open", { deadlineAt: start + 20_000 });
    await put("behind", { lane: "opens it", deadlineAt: start + 10_000 });
    await put("hangs", { target: "hanging" });
    await put("no place", { target: "hanging", deadlineAt: start + 30_000 });
    dispatcher.wake();
    while (finals.length < 4) {
      // A handler that hangs is never idle.
      await new Promise(setImmediate);
      clock.step(start + 60_000);
    }
    expect(finals).toEqual([
      ["behind", "expired", 10_000],
      ["open", "expired", 20_000],
      ["no place", "expired", 30_000],
      ["opens it", "expired", 50_000],
    ]);
    expect(attempts.map(({ item }) => item.id).sort()).toEqual(["hangs", "opens it"]);
  });

  it("stops attempts to a dead target without delaying the others", async () => {
    const { put, run, attempts, dispatcher } = await setUp(
      ({ item }) => (item.target === "dead" ? { kind: "retry", reason: "down" } : delivered),
      { targetConcurrency: 1, concurrency: 2 },
    );
    for (let index = 0; index < 50; index += 1) await put(`dead-${index}`, { target: "dead" });
    await put("alive", { target: "alive" });
    await run();
    expect(attempts.filter(({ item }) => item.target === "dead")).toHaveLength(5);
    expect(attempts.filter(({ item }) => item.target === "alive")).toHaveLength(1);
    // One attempt per pause until the target is reported back.
    await run(1_000);
    expect(attempts.filter(({ item }) => item.target === "dead")).toHaveLength(6);
    dispatcher.retryNow("dead");
    await run();
    expect(attempts.filter(({ item }) => item.target === "dead")).toHaveLength(11);
  });

  it("does not open the circuit of a target that asks to wait", async () => {
    const { put, run, attempts } = await setUp(
      () => ({ kind: "retry", reason: "429", after: 10, answered: true }),
      { backoff: { base: 10, factor: 10, cap: 1_000, jitter: 0 } },
    );
    await put("a");
    await run(200);
    expect(attempts.length).toBeGreaterThan(10);
  });

  it("pauses between attempts even if the target asks for no pause", async () => {
    const { put, run, attempts } = await setUp(
      () => ({ kind: "retry", reason: "503", after: 0, answered: true }),
      { backoff: { base: 100, factor: 2, cap: 1_000, jitter: 0 } },
    );
    await put("a");
    // 0, 100, 300, 700
    await run(1_000);
    expect(attempts).toHaveLength(4);
  });

  it("scans again after the store failed to read waiting items", async () => {
    const { put, run, store, problems } = await setUp(() => delivered);
    const { heads } = store.outbox;
    let refusals = 1;
    Object.assign(store.outbox, {
      heads: (...asked: Parameters<typeof heads>) =>
        refusals-- > 0 ? Promise.reject(new Error("busy")) : heads(...asked),
    });
    await put("a");
    await run(5_000);
    expect(problems).toHaveLength(1);
    expect(await store.outbox.counts(QUEUE)).toMatchObject({ waiting: 0, delivered: 1 });
  });

  it.each<[string, AttemptResult, boolean]>([
    ["a refusal, which may be caused by the abort", { kind: "refused", reason: "aborted" }, true],
    ["an unknown result", { kind: "retry", reason: "aborted", uncertain: true }, true],
    ["an attempt that was certainly not sent", { kind: "retry", reason: "aborted" }, false],
  ])("keeps the item for the next process at shutdown: %s", async (_, result, interrupted) => {
    const { put, dispatcher, attempts, store } = await setUp(
      ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(result))),
      { journalAttempts: true },
    );
    await put("a");
    dispatcher.wake();
    while (attempts.length === 0) await new Promise(setImmediate);
    await dispatcher.stop();
    const item = await store.outbox.item("a");
    expect([item?.outcome, item?.payload, item?.interrupted]).toEqual([undefined, "a", interrupted]);
  });

  it("marks an attempt that a crash interrupted, if the queue journals attempts", async () => {
    const store = await openStore({ path: ":memory:" });
    cleanups.push(() => store.close());
    const first = await setUp(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)),
      {
        store,
        journalAttempts: true,
      },
    );
    await first.put("a");
    first.dispatcher.wake();
    while (first.attempts.length === 0) await new Promise(setImmediate);
    await first.dispatcher.stop();
    const second = await setUp(
      ({ number }) => (number === 1 ? { kind: "retry", reason: "not sent" } : delivered),
      { store, journalAttempts: true },
    );
    await second.run(10_000);
    expect(first.attempts.map(({ interrupted }) => interrupted)).toEqual([false]);
    expect(second.attempts.map(({ interrupted }) => interrupted)).toEqual([true, true]);
  });
});

describe("the outcome", () => {
  it("is committed together with the owner's rows, or not at all", async () => {
    const holder: { store?: FullStore } = {};
    let asked = 0;
    const { put, run, store, attempts } = await setUp(() => delivered, {
      settle: async (_, { outcome }, finish) => {
        asked += 1;
        // The first call expects a journal number that is too high.
        const expected = asked === 1 ? 7 : 0;
        const entry = { journal: "owner", expected, count: 1, data: JSON.stringify([outcome]) };
        await holder.store?.commit({ appends: [entry], rows: [finish] });
      },
    });
    holder.store = store;
    await put("a");
    await run();
    expect(await store.outbox.counts(QUEUE)).toMatchObject({ waiting: 1 });
    await run(5_000);
    expect([asked, attempts.length]).toEqual([2, 1]);
    expect((await store.read("owner")).map(({ data }) => data)).toEqual(['["delivered"]']);
    expect(await store.outbox.counts(QUEUE)).toMatchObject({ waiting: 0, delivered: 1 });
  });

  it("is settled once, even if its attempt starts while its expiry is being settled", async () => {
    const settled: string[] = [];
    const holder: { store?: FullStore; release?: () => void } = {};
    const { put, clock, store, dispatcher } = await setUp(() => delivered, {
      settle: async (item, { outcome }, finish) => {
        settled.push(`${item.id} ${outcome}`);
        await new Promise<void>((resolve) => {
          holder.release = resolve;
        });
        await holder.store?.commit({ appends: [], rows: [finish] });
      },
    });
    holder.store = store;
    const start = clock.now();
    await put("a", { deadlineAt: start + 1_000, dueAt: start + 1_001 });
    dispatcher.wake();
    await dispatcher.quiet();
    clock.step(start + 1_000);
    while (holder.release === undefined) await new Promise(setImmediate);
    const before = dispatcher.underWay;
    clock.jump(1);
    dispatcher.retryNow("peer");
    expect(dispatcher.underWay).toBe(before + 1);
    await new Promise(setImmediate);
    holder.release();
    await dispatcher.quiet();
    expect(settled).toEqual(["a expired"]);
    expect(await store.outbox.counts(QUEUE)).toMatchObject({ waiting: 0, expired: 1 });
  });

  it("of one item that its owner cannot settle does not stop others from expiring", async () => {
    const finals: string[] = [];
    const holder: { store?: FullStore } = {};
    const { put, run, clock, store } = await setUp(
      () => ({ kind: "retry", reason: "down", after: 3_600_000 }),
      {
        settle: async ({ id }, { outcome, at }, finish) => {
          if (id === "ill") throw new Error("not in memory");
          await holder.store?.commit({ appends: [], rows: [finish] });
          finals.push(`${id} ${outcome} ${at - start}`);
        },
      },
    );
    holder.store = store;
    const start = clock.now();
    await put("ill", { deadlineAt: start + 10_000 });
    await put("well", { deadlineAt: start + 10_000 });
    await put("later", { deadlineAt: start + 15_500 });
    await run(20_000);
    expect(finals).toEqual(["well expired 10000", "later expired 15500"]);
  });

  it("[ENGINE-A-3] waits while the store cannot be written, without another attempt and without a report", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-outbox-"));
    cleanups.push(() => rm(directory, { recursive: true, force: true }));
    const store = await openStore({ directory });
    cleanups.push(() => store.close());
    const blocker = new Database(join(directory, "mailroom.db"));
    cleanups.push(() => blocker.close());
    const { put, dispatcher, attempts, problems } = await setUp(
      async ({ number }) => {
        blocker.exec("BEGIN IMMEDIATE");
        // Long enough for further attempts to show.
        await Promise.race([put(`c${number}`), until(() => store.writer.degraded)]);
        return number === 1 ? { kind: "retry", reason: "later", after: 1_000 } : delivered;
      },
      { store, journalAttempts: true },
    );
    await put("a");
    for (const attempt of [1, 2]) {
      dispatcher.wake(["a"]);
      await until(() => store.writer.degraded && store.writer.undurable === 2);
      await expect(put("b")).rejects.toMatchObject({ code: "store_busy" });
      blocker.exec("ROLLBACK");
      await dispatcher.quiet();
      expect(attempts).toHaveLength(attempt);
      dispatcher.retryNow("peer");
    }
    expect(await store.outbox.item("a")).toMatchObject({ outcome: "delivered", attempts: 2 });
    expect(problems).toEqual([]);
  });

  it("is not settled again after the store rejected it", async () => {
    const { put, run, store, attempts, problems } = await setUp(() => delivered);
    const commit = store.commit.bind(store);
    let refusals = 2;
    store.commit = (batch) => {
      if (batch.rows?.some(({ kind }) => kind === "outbox.finish") && refusals > 0) {
        refusals -= 1;
        return Promise.reject(new Error("refused"));
      }
      return commit(batch);
    };
    await put("a");
    await run(5_000);
    expect(attempts).toHaveLength(1);
    expect(problems).toHaveLength(2);
    expect(await store.outbox.counts(QUEUE)).toMatchObject({ waiting: 0, delivered: 1 });
  });
});
