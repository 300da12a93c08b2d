/**
 * The promises of README.md under crashes: random items, handlers and crash points, a virtual clock and the real store.
 * Commits after a crash have no effect; the next process finds everything committed before it.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../base/index.js";
import { type Batch, type Committed, StaleAppendError } from "../journal/index.js";
import { type FullStore, openStore } from "../store/index.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { type Attempt, type AttemptResult, Dispatcher } from "./dispatcher.js";
import { enqueue } from "./item.js";

const QUEUE = "crash";
const OUTCOMES = "outcomes";
const CONCURRENCY = 3;
const PER_TARGET = 2;

interface PlannedItem {
  readonly lane: number;
  readonly target: number;
  /** Results of the handler, attempt by attempt; later attempts deliver. */
  readonly answers: readonly ("retry" | "throw" | "refuse" | "slow" | "deliver")[];
  readonly due: number;
  readonly deadline: number | undefined;
  readonly enqueueAt: number;
}

const plannedItem: fc.Arbitrary<PlannedItem> = fc.record({
  lane: fc.integer({ min: 0, max: 3 }),
  target: fc.integer({ min: 0, max: 2 }),
  answers: fc.array(fc.constantFrom("retry", "throw", "refuse", "slow", "deliver"), { maxLength: 4 }),
  due: fc.integer({ min: 0, max: 2_000 }),
  deadline: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined }),
  enqueueAt: fc.integer({ min: 0, max: 5_000 }),
});

const scenario = fc.record({
  items: fc.array(plannedItem, { minLength: 1, maxLength: 14 }),
  /** Number of commits before each process crashes; the last process does not crash. */
  lives: fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 5 }),
  /** Whether the commit during the crash became durable. */
  keptLast: fc.boolean(),
});

interface Observed {
  readonly attempts: { id: string; lane: string; at: number }[];
  readonly violations: string[];
}

/** The store as seen by a process that crashes at a certain commit: later calls never resolve. */
function mortal(
  store: FullStore,
  lives: number,
  keptLast: boolean,
  died: () => void,
): Pick<FullStore, "commit"> {
  let left = lives;
  return {
    commit(batch: Batch): Promise<Committed> {
      left -= 1;
      if (left >= 0) return store.commit(batch);
      if (left === -1) {
        if (keptLast) store.commit(batch).catch(() => undefined);
        died();
      }
      return new Promise(() => undefined);
    },
  };
}

interface Ended {
  readonly id: string;
  readonly lane: string;
  readonly outcome: string;
  readonly at: number;
  readonly deadline?: number;
}

async function live(
  store: FullStore,
  clock: VirtualClock,
  plan: ReadonlyMap<string, PlannedItem>,
  observed: Observed,
  enqueueDue: () => Promise<void>,
  life: { commits: number; keptLast: boolean },
): Promise<void> {
  let dead = false;
  const mine = mortal(store, life.commits, life.keptLast, () => {
    dead = true;
  });
  const underWay = new Map<string, number>();
  const lanes = new Set<string>();
  const handler = async ({ item, number }: Attempt): Promise<AttemptResult> => {
    if (dead) return new Promise(() => undefined);
    const planned = plan.get(item.id);
    observed.attempts.push({ id: item.id, lane: item.lane, at: clock.now() });
    if (lanes.has(item.lane)) observed.violations.push(`two of lane ${item.lane} at once`);
    if (item.deadlineAt !== undefined && clock.now() >= item.deadlineAt) {
      observed.violations.push(`${item.id} tried after its deadline`);
    }
    if (clock.now() < item.dueAt) observed.violations.push(`${item.id} tried before it was due`);
    lanes.add(item.lane);
    underWay.set(item.target, (underWay.get(item.target) ?? 0) + 1);
    const total = [...underWay.values()].reduce((sum, count) => sum + count, 0);
    if (total > CONCURRENCY) observed.violations.push(`${total} attempts at once`);
    if ((underWay.get(item.target) ?? 0) > PER_TARGET) observed.violations.push(`too many to ${item.target}`);
    try {
      switch (planned?.answers[number - 1] ?? "deliver") {
        case "retry":
          return { kind: "retry", reason: "planned" };
        case "throw":
          throw new Error("planned");
        case "refuse":
          return { kind: "refused", reason: "planned" };
        case "slow":
          await new Promise(setImmediate);
          return { kind: "delivered" };
        default:
          return { kind: "delivered" };
      }
    } finally {
      lanes.delete(item.lane);
      underWay.set(item.target, (underWay.get(item.target) ?? 1) - 1);
    }
  };
  // Timers and handlers of a crashed process never fire.
  const mortalClock: Clock = {
    now: () => clock.now(),
    after: (ms, callback) => clock.after(ms, () => dead || callback()),
  };
  const dispatcher = new Dispatcher(
    { store: mine, reads: store.outbox, clock: mortalClock, random: () => 0.5, report: () => undefined },
    {
      queue: QUEUE,
      handler,
      concurrency: CONCURRENCY,
      targetConcurrency: PER_TARGET,
      settle: async ({ id, lane, deadlineAt }, { outcome, at }, finish) => {
        const data = JSON.stringify([{ id, lane, outcome, at, deadline: deadlineAt }]);
        const append = async () => {
          const expected = await store.lastNumber(OUTCOMES);
          return { journal: OUTCOMES, expected, count: 1, data };
        };
        // Several items end at the same time, and each tries to append the next entry.
        for (let overtaken = true; overtaken; ) {
          overtaken = await mine.commit({ appends: [await append()], rows: [finish] }).then(
            () => false,
            (error: unknown) => {
              if (error instanceof StaleAppendError) return true;
              throw error;
            },
          );
        }
      },
    },
  );
  for (;;) {
    await enqueueDue();
    dispatcher.wake();
    // Nothing polls, so only real input and output can happen before the next timer.
    const quiet = dispatcher.quiet().then(() => true);
    let settled = false;
    while (!settled && !dead) {
      settled = await Promise.race([quiet, new Promise<false>((resolve) => setImmediate(resolve, false))]);
    }
    if (dead) {
      // A commit that became durable during the crash must complete before the next process starts.
      await store.commit({ appends: [] });
      return;
    }
    if (!clock.step()) return;
  }
}

describe("the outbox under crashes", () => {
  it("gives every item exactly one outcome, keeps lanes in order and stays within the limits", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ items, lives, keptLast }) => {
        const store = await openStore({ path: ":memory:" });
        const clock = new VirtualClock();
        const start = clock.now();
        const plan = new Map(items.map((item, index) => [`i${index}`, item]));
        const observed: Observed = { attempts: [], violations: [] };
        const enqueued: string[] = [];

        const enqueueDue = async (): Promise<void> => {
          for (const [id, item] of plan) {
            if (enqueued.includes(id)) continue;
            if (start + item.enqueueAt > clock.now()) continue;
            const now = clock.now();
            const row = enqueue({
              queue: QUEUE,
              id,
              lane: `l${item.lane}`,
              target: `t${item.target}`,
              payload: id,
              dedupeKey: id,
              createdAt: now,
              dueAt: now + item.due,
              ...(item.deadline !== undefined && { deadlineAt: now + item.deadline }),
            });
            // Enqueued by another process, which does not crash.
            await store.commit({ appends: [], rows: [row] });
            enqueued.push(id);
          }
        };
        for (const item of items) clock.after(item.enqueueAt, () => undefined);

        for (const commits of [...lives, Number.POSITIVE_INFINITY]) {
          await live(store, clock, plan, observed, enqueueDue, { commits, keptLast });
        }

        expect(observed.violations).toEqual([]);
        const outcomes: Ended[] = (await store.read(OUTCOMES)).flatMap(({ data }) => JSON.parse(data));
        expect(outcomes.map(({ id }) => id).sort()).toEqual([...enqueued].sort());
        // Open circuits, full targets and earlier items of the lane make no difference.
        const expired = outcomes.filter(({ outcome }) => outcome === "expired");
        expect(expired.map(({ at }) => at)).toEqual(expired.map(({ deadline }) => deadline));
        for (const lane of new Set(items.map((item) => `l${item.lane}`))) {
          const tried = outcomes.filter((one) => one.lane === lane && one.outcome !== "expired");
          const ids = tried.map(({ id }) => id);
          expect(ids).toEqual(enqueued.filter((id) => ids.includes(id)));
        }
        const counts = await store.outbox.counts(QUEUE);
        expect(counts.waiting).toBe(0);
        expect(counts.delivered + counts.refused + counts.expired).toBe(items.length);
        expect((await store.outbox.waitingByTarget(QUEUE)).size).toBe(0);
        await store.close();
      }),
      { numRuns: 250 },
    );
  });

  it("finds waiting items after the file was closed and reopened", async () => {
    const directory = await mkdtemp(join(tmpdir(), "mailroom-outbox-"));
    const clock = new VirtualClock();
    const now = clock.now();
    const first = await openStore({ directory });
    const item = { queue: QUEUE, id: "a", lane: "l", target: "t", payload: "p", createdAt: now, dueAt: now };
    await first.commit({ appends: [], rows: [enqueue(item)] });
    await first.close();
    const second = await openStore({ directory });
    const payloads: string[] = [];
    const dispatcher = new Dispatcher(
      { store: second, reads: second.outbox, clock, report: () => undefined },
      {
        queue: QUEUE,
        handler: async (attempt) => {
          payloads.push(attempt.item.payload);
          return { kind: "delivered" };
        },
      },
    );
    dispatcher.wake();
    await dispatcher.quiet();
    expect(payloads).toEqual(["p"]);
    await second.close();
    await rm(directory, { recursive: true });
  });

  it("rejects a second outcome", async () => {
    const store = await openStore({ path: ":memory:" });
    const item = { queue: QUEUE, id: "a", lane: "l", target: "t", payload: "p", createdAt: 0, dueAt: 0 };
    await store.commit({ appends: [], rows: [enqueue(item)] });
    const finish = { kind: "outbox.finish", id: "a", outcome: "delivered", attempts: 1, at: 1 };
    await store.commit({ appends: [], rows: [finish] });
    const entry = { journal: OUTCOMES, expected: 0, count: 1, data: "[1]" };
    await expect(store.commit({ appends: [entry], rows: [finish] })).rejects.toMatchObject({
      code: "row_conflict",
    });
    expect(await store.lastNumber(OUTCOMES)).toBe(0);
    await store.close();
  });
});
