import fc from "fast-check";
import { expect, it } from "vitest";
import {
  type EngineRowWrite,
  type InstanceId,
  type Store,
  TASK_STATUSES,
  type TaskRow,
} from "../../src/engine/ports.js";
import type { Batch, JournalRow, Snapshot } from "../../src/journal/index.js";
import {
  ANN,
  append,
  BOB,
  entriesOf,
  key,
  put,
  remove,
  snapshot,
  task,
} from "../../src/testing/contracts/fixtures.js";
import type { OpenStore } from "../../src/testing/contracts/store.js";

const INSTANCES: readonly InstanceId[] = [ANN, BOB];
const KEYS = [key(0), key(1), key(2), key(3)];

/** A minimal correct store: neither fast nor durable. */
class ReferenceStore {
  rows: JournalRow[] = [];
  tasks = new Map<string, TaskRow>();
  snapshots = new Map<string, Snapshot>();

  last(journal: string): number {
    return this.rows.findLast((row) => row.journal === journal)?.last ?? 0;
  }

  /** Applies the batch, or changes nothing and returns the code of the error that the store must reject with. */
  apply(batch: Batch & { rows: readonly EngineRowWrite[] }): string | undefined {
    const before = { rows: [...this.rows], tasks: new Map(this.tasks), snapshots: new Map(this.snapshots) };
    const expectedCode = this.#attempt(batch);
    if (expectedCode !== undefined) Object.assign(this, before);
    return expectedCode;
  }

  #attempt({ appends, rows }: Batch & { rows: readonly EngineRowWrite[] }): string | undefined {
    for (const { journal, expected, count, data } of appends) {
      if (this.last(journal) !== expected) return "stale_append";
      // The store chooses positions: they are compared by order.
      this.rows.push({ journal, first: expected + 1, last: expected + count, position: 0, data });
    }
    for (const row of rows) {
      if (!this.#write(row)) return "row_conflict";
    }
    return undefined;
  }

  #write(write: EngineRowWrite): boolean {
    switch (write.kind) {
      case "task.put": {
        const { row } = write;
        const named = [...this.tasks.values()].find(
          (other) => other.taskId === row.taskId && other.instance.id === row.instance.id,
        );
        const keyed = this.tasks.get(row.key);
        if (named !== keyed) return false;
        this.tasks.set(row.key, row);
        return true;
      }
      case "snapshot.put": {
        const last = this.last(write.journal);
        const newest = this.snapshots.get(write.journal)?.number ?? 0;
        if (last === 0 || write.number > last || write.number < newest) return false;
        const before = this.snapshots.get(write.journal)?.parts ?? [];
        const kept = before.filter(({ name }) => write.kept.includes(name));
        if (kept.length < write.kept.length) return false;
        const names = write.parts.map(({ name }) => name);
        const parts = [...kept.filter(({ name }) => !names.includes(name)), ...write.parts];
        parts.sort((a, b) => (a.name < b.name ? -1 : 1));
        this.snapshots.set(write.journal, { number: write.number, parts });
        return true;
      }
      case "task.remove": {
        const task = this.tasks.get(write.key);
        if (task?.status === "running" || task?.openWork === true) return false;
        if (this.last(write.key) !== write.expected) return false;
        this.tasks.delete(write.key);
        this.snapshots.delete(write.key);
        this.rows = this.rows.filter(({ journal }) => journal !== write.key);
        return true;
      }
    }
  }
}

const someKey = fc.constantFrom(...KEYS);

const planOfAppend = fc.record({
  journal: someKey,
  count: fc.integer({ min: 1, max: 3 }),
  // How far the expected number is off; usually 0.
  slip: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.constantFrom(-2, -1, 1)),
});

/** Plans a write for the journals' current numbers; undefined if it would be meaningless. */
type PlanOfRow = (last: (journal: string) => number) => EngineRowWrite | undefined;

const somePart = fc.constantFrom("head", "history", "tail");

const planOfRow: fc.Arbitrary<PlanOfRow> = fc.oneof(
  fc
    .record({
      key: someKey,
      taskId: fc.constantFrom("x", "y", "z"),
      instance: fc.constantFrom(...INSTANCES),
      status: fc.constantFrom(...TASK_STATUSES),
      updatedAt: fc.nat(100),
      flags: fc.constantFrom({}, { held: true }, { openWork: true }),
    })
    .map(
      ({ key: named, flags, ...fields }): PlanOfRow =>
        () =>
          put(task(named, { ...fields, ...flags })),
    ),
  fc
    .record({
      journal: someKey,
      behind: fc.nat(2),
      parts: fc.dictionary(somePart, fc.string(), { noNullPrototype: true }),
      kept: fc.uniqueArray(somePart, { maxLength: 1 }),
    })
    .map(({ journal, behind, parts, kept }): PlanOfRow => {
      return (last) =>
        last(journal) === 0 ? undefined : snapshot(journal, Math.max(1, last(journal) - behind), parts, kept);
    }),
  fc
    .record({ key: someKey, behind: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.constant(1)) })
    .map(({ key: named, behind }): PlanOfRow => {
      return (last) => remove(named, Math.max(0, last(named) - behind));
    }),
);

const planOfBatch = fc.record({
  appends: fc.array(planOfAppend, { maxLength: 3 }),
  rows: fc.array(planOfRow, { maxLength: 2 }),
});

const step = fc.oneof(
  { weight: 6, arbitrary: fc.array(planOfBatch, { minLength: 1, maxLength: 6 }) },
  { weight: 1, arbitrary: fc.constant("reopen" as const) },
);

/** Any sequence of groups of batches, with restarts between them, leaves what the reference store has. */
export function referenceStoreTest(open: OpenStore): void {
  it("has the same state as the reference store after any sequence of batches and restarts", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const harness = await open();
        try {
          await compareRuns(steps, harness.store, harness.reopen);
        } finally {
          await harness.destroy();
        }
      }),
      { numRuns: 60 },
    );
  });
}

type Steps = typeof step extends fc.Arbitrary<infer Step> ? Step[] : never;

async function compareRuns(steps: Steps, opened: Store, reopen?: () => Promise<Store>): Promise<void> {
  const reference = new ReferenceStore();
  let store = opened;
  let newest = 0;
  let entry = 0;
  for (const plan of steps) {
    if (plan === "reopen") {
      if (reopen !== undefined) store = await reopen();
    } else {
      // All batches of a step are committed before any is awaited; the reference applies them in the same order.
      const commits = plan.map(({ appends, rows }) => {
        const planned = new Map<string, number>();
        const last = (journal: string) => planned.get(journal) ?? reference.last(journal);
        const batch = {
          appends: appends.map(({ journal, count, slip }) => {
            const at = last(journal);
            planned.set(journal, at + count);
            const entries = Array.from({ length: count }, () => `${entry++}`);
            return append(journal, Math.max(0, at + slip), ...entries);
          }),
          rows: rows.flatMap((planRow) => planRow(last) ?? []),
        };
        const expectedCode = reference.apply(batch);
        return store.commit(batch).then(
          ({ position }) => ({ expectedCode, actual: undefined, position }),
          (error: { code?: unknown }) => ({ expectedCode, actual: error.code, position: undefined }),
        );
      });
      const before = newest;
      for (const { expectedCode, actual, position } of await Promise.all(commits)) {
        expect(actual).toBe(expectedCode);
        if (position === undefined) continue;
        expect(position).toBeGreaterThanOrEqual(before);
        newest = Math.max(newest, position);
      }
      expect(await store.position()).toBeGreaterThanOrEqual(newest);
      newest = await store.position();
    }
    await compare(store, reference);
  }
}

async function compare(store: Store, reference: ReferenceStore): Promise<void> {
  const all = await store.readAll(0, 10_000);
  const positions = all.map(({ position }) => position);
  expect(new Set(positions).size).toBe(positions.length);
  expect(positions).toEqual([...positions].sort((a, b) => a - b));
  for (const journal of KEYS) {
    expect(await store.lastNumber(journal)).toBe(reference.last(journal));
    const rows = await store.read(journal);
    expect(rows).toEqual(all.filter((row) => row.journal === journal));
    expect(entriesOf(rows)).toEqual(entriesOf(reference.rows.filter((row) => row.journal === journal)));
    expect(rows.map(({ first, last }) => last - first + 1)).toEqual(
      rows.map((row) => entriesOf([row]).length),
    );
    expect(await store.readSnapshot(journal)).toEqual(reference.snapshots.get(journal));
    expect(await store.tasks.byKey(journal)).toEqual(reference.tasks.get(journal));
  }
  const newestFirst = [...reference.tasks.values()].sort((a, b) => (a.key < b.key ? 1 : -1));
  for (const instance of INSTANCES) {
    const { tasks } = await store.tasks.list({ instance, limit: 100 });
    expect(tasks).toEqual(newestFirst.filter((row) => row.instance.id === instance.id));
  }
}
