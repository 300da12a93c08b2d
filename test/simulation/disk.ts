/**
 * The simulated disk. `Disk` holds the durable data and outlives every process; `SimulatedStore` is the view of one
 * process: with delays, and with writes and reads that fail in all the ways of a real store.
 */
import type { DeliveryResult, OutgoingMail } from "../../src/engine/carrier.js";
import type {
  InstanceId,
  SnapshotPut,
  Store,
  TaskPut,
  TaskReads,
  TaskRemove,
  TaskRow,
  TaskStatus,
} from "../../src/engine/ports.js";
import type { Entry } from "../../src/engine/task/entries.js";
import type { StoredJournal } from "../../src/journal/index.js";
import {
  type Append,
  type Batch,
  type Group,
  type GroupResult,
  type JournalKey,
  type JournalRow,
  RowConflictError,
  type RowWrite,
  type Snapshot,
  StaleAppendError,
  type StoreDriver,
  storeClosed,
} from "../../src/journal/ports.js";
import { Writer, type WriterLimits } from "../../src/journal/writer.js";
import type { Random } from "../kit/seeded.js";
import type { Life, World } from "./world.js";

/** The kinds of faults. Each can be disabled, to find out which ones a violation needs. */
export const FAULTS = [
  "transient",
  "unknown",
  "refused",
  "slow writes",
  "slow reads",
  "failed reads",
] as const;
export type Fault = (typeof FAULTS)[number];

/** A name that can be used once, like an idempotency key. */
export interface NamePut extends RowWrite {
  readonly kind: "name.put";
  readonly name: string;
  readonly key: JournalKey;
  readonly number: number;
}

/** Mail that waits for delivery to another swarm. */
export interface OutPut extends RowWrite {
  readonly kind: "out.put";
  readonly id: string;
  readonly key: JournalKey;
  readonly messageId: string;
  readonly swarm: string;
  readonly mail: OutgoingMail;
}

export interface OutDone extends RowWrite {
  readonly kind: "out.done";
  readonly id: string;
  readonly carriage: DeliveryResult;
}

type SimulatedRow = TaskPut | TaskRemove | SnapshotPut | NamePut | OutPut | OutDone;

/** Receives everything that becomes durable. */
export interface DiskWatcher {
  entry(key: JournalKey, number: number, entry: Entry): void;
  /** A batch of these journals is complete. */
  written(keys: readonly JournalKey[]): void;
  removed(key: JournalKey): void;
  snapshot(row: SnapshotPut): void;
  /** An append was refused because its number is not the next one, although nothing before it was refused. */
  stale(error: StaleAppendError): void;
}

export interface Journal {
  readonly rows: JournalRow[];
  readonly entries: Entry[];
}

interface StoredSnapshot {
  readonly number: number;
  readonly parts: ReadonlyMap<string, string>;
}

export class Disk {
  readonly journals = new Map<JournalKey, Journal>();
  /** Removed journals, visible only to the oracles. */
  readonly removed = new Map<JournalKey, readonly Entry[]>();
  readonly tasks = new Map<JournalKey, TaskRow>();
  readonly names = new Map<string, NamePut>();
  readonly outbox = new Map<string, OutPut>();
  /** The delivery results of mail that has left the outbox. */
  readonly carried = new Map<string, DeliveryResult>();
  readonly snapshots = new Map<JournalKey, StoredSnapshot>();
  position = 0;
  readonly #byTaskId = new Map<string, JournalKey>();
  readonly #watcher: DiskWatcher;

  constructor(watcher: DiskWatcher) {
    this.#watcher = watcher;
  }

  last(key: JournalKey): number {
    return this.journals.get(key)?.entries.length ?? 0;
  }

  /** The journal of an existing or removed task. */
  entriesOf(key: JournalKey): readonly Entry[] {
    return this.journals.get(key)?.entries ?? this.removed.get(key) ?? [];
  }

  find(instance: InstanceId, taskId: string): TaskRow | undefined {
    const key = this.#byTaskId.get(nameOf(instance, taskId));
    return key === undefined ? undefined : this.tasks.get(key);
  }

  /** Each batch is atomic; a refused batch is skipped. */
  write(group: Group, isRefused: (append: Append) => boolean): GroupResult {
    const refusedJournals = new Set<JournalKey>();
    const outcomes = group.batches.map((batch) => {
      const outcome = this.#apply(batch, isRefused);
      if (!(outcome instanceof Error)) return outcome;
      const follows = batch.appends.some(({ journal }) => refusedJournals.has(journal));
      if (outcome instanceof StaleAppendError && !follows) this.#watcher.stale(outcome);
      for (const { journal } of batch.appends) refusedJournals.add(journal);
      return outcome;
    });
    return { kind: "committed", outcomes };
  }

  #apply(batch: Batch, isRefused: (append: Append) => boolean): number[] | Error {
    const undo: (() => void)[] = [];
    const tell: (() => void)[] = [];
    try {
      for (const append of batch.appends) {
        if (isRefused(append)) throw new RowConflictError("injected", "this unit is refused");
      }
      const positions = batch.appends.map((append) => this.#append(append, undo, tell));
      for (const row of batch.rows ?? []) this.#put(row, undo, tell);
      for (const told of tell) told();
      this.#watcher.written(batch.appends.map(({ journal }) => journal));
      return positions;
    } catch (error) {
      for (const back of undo.reverse()) back();
      if (error instanceof StaleAppendError || error instanceof RowConflictError) return error;
      throw error;
    }
  }

  #append(
    { journal: key, expected, count, data }: Append,
    undo: (() => void)[],
    tell: (() => void)[],
  ): number {
    const known = this.journals.get(key);
    const journal = known ?? { rows: [], entries: [] };
    const last = journal.entries.length;
    if (last !== expected) throw new StaleAppendError(key, expected, last);
    const entries: Entry[] = JSON.parse(data);
    if (entries.length !== count) throw new Error(`${entries.length} entries are called ${count}`);
    // Positions increase, but may have gaps.
    this.position += 1 + (this.position % 3);
    const position = this.position;
    if (known === undefined) this.journals.set(key, journal);
    journal.rows.push({ journal: key, first: expected + 1, last: expected + count, position, data });
    journal.entries.push(...entries);
    undo.push(() => {
      journal.rows.pop();
      journal.entries.length = last;
      if (known === undefined) this.journals.delete(key);
    });
    tell.push(() => {
      for (const [index, entry] of entries.entries()) this.#watcher.entry(key, expected + 1 + index, entry);
    });
    return position;
  }

  #put(write: RowWrite, undo: (() => void)[], tell: (() => void)[]): void {
    const row = write as SimulatedRow;
    switch (row.kind) {
      case "task.put":
        this.#putTask(row.row, undo);
        return;
      case "task.remove":
        this.#removeTask(row, undo, tell);
        return;
      case "snapshot.put": {
        // Written separately, so it may arrive after the task was removed.
        if (row.number > this.last(row.journal)) {
          throw new RowConflictError(row.kind, `journal ${row.journal} is not as far as its snapshot`);
        }
        const before = this.snapshots.get(row.journal);
        if (before !== undefined && before.number > row.number) {
          throw new RowConflictError(row.kind, `journal ${row.journal} has a newer snapshot`);
        }
        const parts = new Map<string, string>();
        for (const name of row.kept) {
          const data = before?.parts.get(name);
          if (data === undefined) throw new RowConflictError(row.kind, `there is no part '${name}' to keep`);
          parts.set(name, data);
        }
        for (const { name, data } of row.parts) parts.set(name, data);
        restore(undo, this.snapshots, row.journal);
        this.snapshots.set(row.journal, { number: row.number, parts });
        tell.push(() => this.#watcher.snapshot(row));
        return;
      }
      case "name.put":
        if (this.names.has(row.name)) throw new RowConflictError(row.kind, `'${row.name}' is taken`);
        restore(undo, this.names, row.name);
        this.names.set(row.name, row);
        return;
      case "out.put":
        // The same mail gives the same row, and an existing row does not change.
        if (this.carried.has(row.id)) return;
        restore(undo, this.outbox, row.id);
        this.outbox.set(row.id, row);
        return;
      case "out.done":
        restore(undo, this.outbox, row.id);
        restore(undo, this.carried, row.id);
        this.outbox.delete(row.id);
        this.carried.set(row.id, row.carriage);
        return;
      default:
        row satisfies never;
        throw new Error(`no such row: ${write.kind}`);
    }
  }

  #putTask(row: TaskRow, undo: (() => void)[]): void {
    const name = nameOf(row.instance, row.taskId);
    const holder = this.#byTaskId.get(name);
    if (holder !== undefined && holder !== row.key) {
      throw new RowConflictError("task.put", `task id '${row.taskId}' is taken`);
    }
    const before = this.tasks.get(row.key);
    restore(undo, this.tasks, row.key);
    restore(undo, this.#byTaskId, name);
    const title = row.title ?? before?.title;
    this.tasks.set(row.key, title === undefined ? row : { ...row, title });
    this.#byTaskId.set(name, row.key);
  }

  #removeTask({ key, expected }: TaskRemove, undo: (() => void)[], tell: (() => void)[]): void {
    const row = this.tasks.get(key);
    if (row === undefined) return;
    if (row.status === "running") throw new RowConflictError("task.remove", "the task runs");
    if (row.openWork === true) throw new RowConflictError("task.remove", "the task has running work");
    if (this.last(key) !== expected) throw new RowConflictError("task.remove", "the task has moved on");
    const name = nameOf(row.instance, row.taskId);
    restore(undo, this.tasks, key);
    restore(undo, this.#byTaskId, name);
    restore(undo, this.journals, key);
    restore(undo, this.snapshots, key);
    restore(undo, this.removed, key);
    this.removed.set(key, this.journals.get(key)?.entries ?? []);
    this.tasks.delete(key);
    this.#byTaskId.delete(name);
    this.journals.delete(key);
    this.snapshots.delete(key);
    tell.push(() => this.#watcher.removed(key));
  }
}

function restore<K, V>(undo: (() => void)[], map: Map<K, V>, key: K): void {
  const before = map.get(key);
  undo.push(() => {
    if (before === undefined) map.delete(key);
    else map.set(key, before);
  });
}

function nameOf({ role, id }: InstanceId, taskId: string): string {
  return `${role}\n${id}\n${taskId}`;
}

export interface StoreOptions {
  readonly disk: Disk;
  readonly world: World;
  readonly life: Life;
  readonly random: Random;
  readonly isOn: (fault: Fault) => boolean;
  /** Called when the process learns that an append to these journals was refused. */
  readonly onRefused: (keys: readonly JournalKey[]) => void;
  /** Receives the result of each write, for the figures and the trace. */
  readonly onFate: (fate: Fate, group: Group) => void;
  readonly limits: Partial<WriterLimits>;
}

export type Fate = "written" | "transient" | "outage" | "unknown" | "refused" | "final" | "failed read";

interface Flight {
  readonly group: Group;
  readonly write: () => void;
}

/** Identifies the unit that the store always refuses: the one with this entry. */
interface Curse {
  readonly journal: JournalKey;
  readonly number: number;
  readonly seq: number;
}

export class SimulatedStore implements Store {
  readonly writer: Writer;
  readonly tasks: TaskReads;
  readonly #options: StoreOptions;
  readonly #results = new Map<number, GroupResult>();
  readonly #reading = new Set<(error: Error) => void>();
  #flight: Flight | undefined;
  #curse: Curse | undefined;
  #outageUntil = 0;
  #failsNext = false;
  #failed = false;
  #closed = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    const { world, life, disk, limits } = options;
    const driver: StoreDriver = {
      write: (group, done) => this.#write(group, done),
      outcome: (group, done) => this.#outcome(group, done),
    };
    this.writer = new Writer({
      driver,
      clock: world.clockOf(life),
      loop: world.loopOf(life),
      limits,
      position: disk.position,
    });
    this.tasks = this.#taskIndex();
  }

  /** All writes fail for a while. */
  breakDown(ms: number): void {
    this.#outageUntil = this.#options.world.now + ms;
  }

  /** The next write fails permanently. */
  failNext(): void {
    this.#failsNext = true;
  }

  /** Whether there was an outage of writes, or still is. */
  get wasDown(): boolean {
    return this.#failed || this.#outageUntil > 0;
  }

  /** Whether a group has been submitted and is not settled. */
  get inFlight(): boolean {
    return this.#flight !== undefined;
  }

  /** The process died. Its submitted group is written or lost. */
  die(isWritten: boolean): void {
    if (this.#flight !== undefined && isWritten) this.#flight.write();
    this.#flight = undefined;
  }

  commit: Store["commit"] = (batch, kind) => this.writer.commit(batch, kind);

  #write(group: Group, told: (result: GroupResult) => void): void {
    const { world, life, random, isOn, onFate, disk } = this.#options;
    const done = (result: GroupResult) => {
      told(result);
      // Not before: units that became durable in the same group still start turns, which the refusal then takes back.
      this.#noteRefusals(group, result);
    };
    if (this.#closed) throw storeClosed();
    const slow = isOn("slow writes");
    const answer = (result: GroupResult, ms: number) => {
      // SQLite has finished when the call returns; a remote database has not.
      if (slow && ms === 0) done(result);
      else world.later(ms, () => done(result), life);
    };
    if (this.#failed) return answer({ kind: "final", cause: new Error("injected: the disk is broken") }, 0);
    if (this.#failsNext) {
      this.#failed = true;
      onFate("final", group);
      if (random.chance(0.5)) disk.write(group, () => false);
      return answer({ kind: "final", cause: new Error("injected: the disk broke") }, random.int(8));
    }
    if (world.now < this.#outageUntil) {
      onFate("outage", group);
      return answer({ kind: "transient", cause: new Error("injected: the disk is full") }, random.int(8));
    }
    const dice = random.next();
    if (dice < 0.05 && isOn("transient")) {
      onFate("transient", group);
      return answer({ kind: "transient", cause: new Error("injected: the file is locked") }, random.int(8));
    }
    if (dice < 0.09 && isOn("unknown")) return this.#writeUnknown(group, done);
    const isRefused = this.#refusal(group, dice < 0.12 && isOn("refused"));
    const write = () => {
      this.#flight = undefined;
      const result = disk.write(group, isRefused);
      this.#results.set(group.seq, result);
      onFate("written", group);
      return result;
    };
    if (random.chance(0.2)) return answer(write(), slow ? random.int(3) : 0);
    this.#flight = { group, write };
    const arrive = () => {
      if (!this.#closed) answer(write(), slow ? random.int(3) : 0);
    };
    world.later(slow ? random.int(8) : 0, arrive, life);
  }

  /** The connection was lost during the commit: the store must be asked whether it took effect. */
  #writeUnknown(group: Group, done: (result: GroupResult) => void): void {
    const { world, life, random, onFate, disk } = this.#options;
    const really = random.chance(0.5);
    const write = () => {
      this.#flight = undefined;
      if (really)
        this.#results.set(
          group.seq,
          disk.write(group, () => false),
        );
      onFate("unknown", group);
    };
    this.#flight = { group, write };
    world.later(
      random.int(8),
      () => {
        if (this.#closed) return;
        write();
        const cause = new Error("injected: the connection was lost");
        world.later(random.int(3), () => done({ kind: "unknown", cause }), life);
      },
      life,
    );
  }

  #outcome(group: Group, done: (result: GroupResult | "not_committed" | undefined) => void): void {
    const { world, life, random, isOn } = this.#options;
    world.later(
      random.int(5),
      () => {
        if (isOn("unknown") && random.chance(0.2)) done(undefined);
        else {
          const result = this.#results.get(group.seq) ?? "not_committed";
          done(result);
          if (result !== "not_committed") this.#noteRefusals(group, result);
        }
      },
      life,
    );
  }

  #noteRefusals({ batches }: Group, result: GroupResult): void {
    if (result.kind !== "committed") return;
    for (const [index, outcome] of result.outcomes.entries()) {
      if (!(outcome instanceof Error)) continue;
      this.#options.onRefused(batches[index]?.appends.map(({ journal }) => journal) ?? []);
    }
  }

  /** A refused unit is refused again when the units of its group are retried separately. */
  #refusal(group: Group, fresh: boolean): (append: Append) => boolean {
    const { random, onFate } = this.#options;
    const curse = this.#curse;
    this.#curse = undefined;
    const hits =
      ({ journal, number }: Curse) =>
      (append: Append) =>
        append.journal === journal && append.expected < number && number <= append.expected + append.count;
    if (curse !== undefined && group.batches.length > 1) return hits(curse);
    const appends = group.batches.flatMap((batch) => batch.appends);
    const append = fresh ? appends[random.int(appends.length)] : undefined;
    if (append === undefined) return () => false;
    const number = append.expected + 1 + random.int(append.count);
    this.#curse = { journal: append.journal, number, seq: group.seq };
    onFate("refused", group);
    return hits(this.#curse);
  }

  // --- reads

  /** A read returns the data as of the call, the response, or a moment in between; the seed decides. */
  #read<T>(compute: () => T): Promise<T> {
    const { world, life, random, isOn, onFate } = this.#options;
    if (this.#closed) return Promise.reject(storeClosed());
    if (!isOn("slow reads") || random.chance(0.3)) return Promise.resolve(compute());
    const early = random.chance(0.5) ? { value: compute() } : undefined;
    return new Promise((resolve, reject) => {
      this.#reading.add(reject);
      world.later(
        random.int(6),
        () => {
          this.#reading.delete(reject);
          if (isOn("failed reads") && random.chance(0.07)) {
            onFate("failed read", { seq: 0, batches: [] });
            reject(new Error("injected: the read failed"));
          } else resolve(early === undefined ? compute() : early.value);
        },
        life,
      );
    });
  }

  #rows(journal: JournalKey, after: number, limit: number): JournalRow[] {
    const rows = this.#options.disk.journals.get(journal)?.rows ?? [];
    return rows.filter((row) => row.last > after).slice(0, limit);
  }

  #snapshot(journal: JournalKey): Snapshot | undefined {
    const stored = this.#options.disk.snapshots.get(journal);
    if (stored === undefined) return undefined;
    const names = [...stored.parts.keys()].sort();
    return {
      number: stored.number,
      parts: names.map((name) => ({ name, data: stored.parts.get(name) ?? "" })),
    };
  }

  read: Store["read"] = (journal, { after = 0, limit = Number.POSITIVE_INFINITY } = {}) =>
    this.#read(() => this.#rows(journal, after, limit));

  readMany: Store["readMany"] = (journals) =>
    this.#read(() =>
      journals.map((journal): StoredJournal => {
        const snapshot = this.#snapshot(journal);
        return {
          journal,
          snapshot,
          rows: this.#rows(journal, snapshot?.number ?? 0, Number.MAX_SAFE_INTEGER),
        };
      }),
    );

  readAll: Store["readAll"] = (afterPosition, limit) =>
    this.#read(() =>
      [...this.#options.disk.journals.values()]
        .flatMap(({ rows }) => rows)
        .filter(({ position }) => position > afterPosition)
        .sort((a, b) => a.position - b.position)
        .slice(0, limit),
    );

  position: Store["position"] = () => this.#read(() => this.#options.disk.position);
  lastNumber: Store["lastNumber"] = (journal) => this.#read(() => this.#options.disk.last(journal));
  readSnapshot: Store["readSnapshot"] = (journal) => this.#read(() => this.#snapshot(journal));

  async close(): Promise<void> {
    this.#closed = true;
    this.writer.close();
    // A submitted group is written before another process opens the store, or never.
    this.die(this.#options.random.chance(0.5));
    for (const reject of this.#reading) reject(storeClosed());
  }

  #taskIndex(): TaskReads {
    const { disk } = this.#options;
    const rows = () => [...disk.tasks.values()];
    const byKey = (a: TaskRow, b: TaskRow) => (a.key < b.key ? -1 : 1);
    const isOf = (instance: InstanceId | undefined) => (row: TaskRow) =>
      instance === undefined || (row.instance.role === instance.role && row.instance.id === instance.id);
    const isBehind = (after: JournalKey | undefined) => (row: TaskRow) =>
      after === undefined || row.key > after;
    return {
      find: (instance, taskId) => this.#read(() => disk.find(instance, taskId)),
      byKey: (key) => this.#read(() => disk.tasks.get(key)),
      list: ({ instance, status, limit }) =>
        this.#read(() => ({
          tasks: rows()
            .filter(isOf(instance))
            .filter((row) => status === undefined || row.status === status)
            .sort((a, b) => byKey(b, a))
            .slice(0, limit),
        })),
      inOrder: ({ instance, after, limit }) =>
        this.#read(() => rows().filter(isOf(instance)).filter(isBehind(after)).sort(byKey).slice(0, limit)),
      withStatus: (status, after, limit) =>
        this.#read(() =>
          rows()
            .filter((row) => row.status === status)
            .filter(isBehind(after))
            .sort(byKey)
            .slice(0, limit),
        ),
      withWork: (kind, after, limit) =>
        this.#read(() =>
          rows()
            .filter((row) => row.status !== "running" && row[kind] === true)
            .filter(isBehind(after))
            .sort(byKey)
            .slice(0, limit),
        ),
      finished: ({ updatedBefore, beyondNewest, limit, after }) =>
        this.#read(() => {
          const finished = rows()
            .filter(({ status }) => status !== "running" && status !== "paused")
            .sort((a, b) => a.updatedAt - b.updatedAt || byKey(a, b));
          const beyond = beyondNewest === undefined ? 0 : Math.max(0, finished.length - beyondNewest);
          return finished
            .filter(
              (row, index) => index < beyond || row.updatedAt < (updatedBefore ?? Number.NEGATIVE_INFINITY),
            )
            .filter(
              (row) =>
                after === undefined ||
                row.updatedAt > after.updatedAt ||
                (row.updatedAt === after.updatedAt && row.key > after.key),
            )
            .slice(0, limit);
        }),
      counts: (instance) =>
        this.#read(() => {
          const counts: Record<TaskStatus, number> = {
            running: 0,
            paused: 0,
            completed: 0,
            failed: 0,
            cancelled: 0,
          };
          for (const row of rows().filter(isOf(instance))) counts[row.status]++;
          return counts;
        }),
    };
  }
}
