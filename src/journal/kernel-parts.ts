/** What the owner of a kernel supplies: the rules, the ports, and the callbacks that act on decisions. */
import type { Report } from "../base/index.js";
import type { Aggregate, DecisionContext, Types } from "./aggregate.js";
import type { Live, Unit } from "./live.js";
import type { Clock, JournalKey, JournalRow, Loop, RowWrite, Snapshot, StoredJournal } from "./ports.js";
import type { Writer } from "./writer.js";

/** Runs when a unit is durable. If it throws, the error is reported and the other reactors still run. */
export interface Reactor<T extends Types> {
  readonly name: string;
  react(live: Live<T>, unit: Unit<T>): void;
}

/** Why an aggregate leaves memory, or its state is replaced. */
export type Departure = "evicted" | "removed" | "missing" | "closed";

export interface KernelParts<T extends Types> {
  readonly aggregate: Aggregate<T>;
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly moment: () => DecisionContext;
  readonly report: Report;
  readonly limits: KernelLimits;
  /** Rows and orders that follow from entries, made when they are decided. Must not throw. */
  readonly prepare: (
    live: Live<T>,
    entries: readonly T["entry"][],
    first: number,
    before: T["summary"] | undefined,
  ) => { readonly rows: readonly RowWrite[]; readonly orders: readonly T["order"][] };
  /** Returns the work object of a new aggregate, or of one that was read from the store. */
  readonly attach: (live: Live<T>, from: "opened" | "stored") => T["work"];
  /** The aggregate was read from the store and is in memory: its unfinished work continues. */
  readonly resume: (live: Live<T>) => void;
  /** The state is about to be reloaded: all work on it stops, except effects. */
  readonly suspend: (live: Live<T>) => void;
  readonly detach: (live: Live<T>, why: Departure) => void;
  /** At decide time. */
  readonly decided: (live: Live<T>, unit: Unit<T>) => void;
  readonly reactors: readonly Reactor<T>[];
  /** Something other than a unit has ended: the aggregate may get more work, or leave memory. */
  readonly idle: (live: Live<T>) => void;
}

/** What the kernel reads. It writes through the writer only. */
export interface JournalStore {
  readonly writer: Writer;
  read(
    journal: JournalKey,
    options?: { after?: number; limit?: number; characters?: number },
  ): Promise<JournalRow[]>;
  readSnapshot(journal: JournalKey): Promise<Snapshot | undefined>;
  /** In the order of the keys. At least one; the kernel asks again for the others. */
  readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]>;
  lastNumber(journal: JournalKey): Promise<number>;
}

export interface KernelLimits {
  /** Entries after which a journal gets a snapshot; another one follows whenever it has doubled. */
  readonly snapshotAfter: number;
  /** Limit on commands that wait for one aggregate while it is being read. */
  readonly waitingCommands: number;
}
