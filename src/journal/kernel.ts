/**
 * The journal kernel: the only owner of aggregates in memory. Commands are decided at once on the newest state; what
 * was decided becomes a unit in the writer's queue; nothing leaves the process before its unit is durable. Reactors see
 * each unit with the facts as of its entries, never the live state.
 */
import type { Aggregate, Moment, Types } from "./aggregate.js";
import { byNumber, pages } from "./pages.js";
import {
  type Append,
  type Clock,
  type JournalKey,
  type JournalRow,
  type Loop,
  type Problem,
  type RowWrite,
  type Snapshot,
  type SnapshotPart,
  StoreBusyError,
  type StoredJournal,
} from "./ports.js";
import { digestOf, freezeInSteps, isSnapshotHeader, readHeader, snapshotHeader } from "./snapshots.js";
import type { Writer, Unit as WrittenUnit } from "./writer.js";

/** There is no such journal (any more). */
export class UnknownJournalError extends Error {
  override readonly name = "UnknownJournalError";
  readonly code = "unknown_journal";
  constructor(key: JournalKey) {
    super(`there is no journal ${key}`);
  }
}

/** The kernel decides nothing any more. */
export class KernelClosedError extends Error {
  override readonly name = "KernelClosedError";
  readonly code = "closed";
  constructor() {
    super("the journals are closed; what was acknowledged goes on when they are opened again");
  }
}

/** What comes with a command, and who is to be told. At most one of `done`, `refused` and `failed` is called. */
export interface Handling<T extends Types> {
  /** Rows that become durable together with the entries. */
  readonly rows?: RowsOf<T> | undefined;
  /** Commit the rows even if there is nothing to decide. */
  readonly rowsAlways?: boolean;
  /** Asked by the kernel's owner itself: not kept for later, because taking up asks anew. */
  readonly own?: boolean;
  /** At decide time, before anybody acts on it. Nothing may leave the process here. */
  readonly decided?: (unit: Unit<T>) => void;
  /** Durable. Without a unit: there was nothing to do. */
  readonly done?: (unit: Unit<T> | undefined) => void;
  readonly refused?: (refusal: T["refusal"]) => void;
  readonly failed?: (error: Error) => void;
}

export type RowsOf<T extends Types> =
  | readonly RowWrite[]
  | ((entries: readonly T["entry"][], first: number) => readonly RowWrite[]);

/** One decision on its way to the disk, and later the news of it. */
export interface Unit<T extends Types> {
  readonly live: Live<T>;
  readonly entries: readonly T["entry"][];
  readonly first: number;
  readonly last: number;
  readonly orders: readonly T["order"][];
  readonly summary: T["summary"];
  /** The summary after the decision before this one; nothing for the first. */
  readonly before: T["summary"] | undefined;
}

/** Acts on what is durable. A throw is reported, and the others still run. */
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
  readonly moment: () => Moment;
  readonly report: (problem: Problem) => void;
  readonly limits: KernelLimits;
  /** Rows and orders that follow from entries, made when they are decided. Must not throw. */
  readonly prepare: (
    live: Live<T>,
    entries: readonly T["entry"][],
    first: number,
    before: T["summary"] | undefined,
  ) => { readonly rows: readonly RowWrite[]; readonly orders: readonly T["order"][] };
  /** A new aggregate, or one that came from the store: gives it its work. */
  readonly attach: (live: Live<T>, from: "opened" | "stored") => T["work"];
  /** It came from the store and is in memory now: what was going on in it goes on. */
  readonly takeUp: (live: Live<T>) => void;
  /** Its state is about to be read again: whatever works on it stops, except effects. */
  readonly suspend: (live: Live<T>) => void;
  readonly detach: (live: Live<T>, why: Departure) => void;
  /** At decide time. */
  readonly decided: (live: Live<T>, unit: Unit<T>) => void;
  readonly reactors: readonly Reactor<T>[];
  /** Something came to an end that is no unit: it may be offered more work, or rest. */
  readonly idle: (live: Live<T>) => void;
}

/** What the kernel reads; everything it writes goes through the writer. */
export interface JournalStore {
  readonly writer: Writer;
  read(journal: JournalKey, options?: { after?: number; limit?: number }): Promise<JournalRow[]>;
  readSnapshot(journal: JournalKey): Promise<Snapshot | undefined>;
  readMany(journals: readonly JournalKey[]): Promise<readonly StoredJournal[]>;
  lastNumber(journal: JournalKey): Promise<number>;
}

export interface KernelLimits {
  /** Entries after which a long journal gets a snapshot, and again whenever it has doubled. */
  readonly snapshotAfter: number;
  /** Commands that may wait for one aggregate while it is being read. */
  readonly waitingCommands: number;
}

type Waiting<T extends Types> = readonly [command: T["command"], handling: Handling<T>];

interface Knowledge<T extends Types> {
  readonly tell: () => void;
  readonly command: T["command"];
  readonly handling: Handling<T>;
}

interface Reader<T extends Types> {
  /** Computes the value; returns what hands it over. */
  readonly read: (state: T["state"]) => () => void;
  readonly failed: (error: Error | undefined) => void;
}

interface RollBack<T extends Types> {
  /** To be decided again, in order. */
  readonly commands: Waiting<T>[];
  /** To be called when the state is read again. */
  readonly failed: (() => void)[];
}

/** An aggregate in memory. Only the kernel keeps one; others have keys, and see it while they are called. */
export class Live<T extends Types> {
  readonly key: JournalKey;
  state: T["state"];
  /** The last number that is certainly on disk. The state may be ahead of it. */
  durable: number;
  /** As of `durable`; nothing before the first unit is durable. */
  summary: T["summary"] | undefined;
  /** As of the newest decision. */
  latest: T["summary"] | undefined;
  /** Characters of the journal. */
  size = 0;
  snapshotAt = 0;
  /** It left memory. */
  gone = false;
  #work: T["work"] | undefined;
  /** @internal */
  readonly units: KernelUnit<T>[] = [];
  /** @internal */
  readers: Reader<T>[] = [];
  /** @internal */
  waiting: Waiting<T>[] = [];
  /** @internal */
  rollBack: RollBack<T> | undefined;
  /** @internal How often it was rolled back since something of it became durable. */
  rollBacks = 0;
  /** @internal Somebody needs the state to stand still: a snapshot, a removal. */
  locks = 0;
  /** @internal Names and digests of the parts that the stored snapshot has, if this process wrote it. */
  snapshotParts: ReadonlyMap<string, string> | undefined;

  constructor(key: JournalKey, state: T["state"], durable: number) {
    this.key = key;
    this.state = state;
    this.durable = durable;
  }

  get work(): T["work"] {
    if (this.#work === undefined) throw new Error(`journal ${this.key} was used before it was attached`);
    return this.#work;
  }

  set work(work: T["work"]) {
    this.#work = work;
  }

  get hasWork(): boolean {
    return this.#work !== undefined;
  }

  /** Units that are not durable yet. */
  get ahead(): number {
    return this.units.length;
  }

  /** Nothing may be decided or started now; commands wait. */
  get held(): boolean {
    return this.readers.length > 0 || this.locks > 0 || this.rollBack !== undefined;
  }

  /** Everything decided is durable and nobody waits: it can leave memory. */
  get quiet(): boolean {
    return this.units.length === 0 && !this.held && this.waiting.length === 0;
  }
}

/** Also its own append: units are what waits in memory, so they are kept small. */
class KernelUnit<T extends Types> implements Unit<T>, WrittenUnit, Append {
  readonly live: Live<T>;
  readonly command: T["command"];
  readonly handling: Handling<T>;
  readonly entries: readonly T["entry"][];
  readonly first: number;
  readonly last: number;
  readonly orders: readonly T["order"][];
  readonly summary: T["summary"];
  readonly before: T["summary"] | undefined;
  readonly appends: WrittenUnit["appends"];
  readonly rows: readonly RowWrite[];
  readonly data: string;
  readonly #kernel: UnitOwner<T>;
  /** Refusals and no-ops that rest on this unit: told when it is durable. */
  after: Knowledge<T>[] | undefined;

  constructor(parts: {
    kernel: UnitOwner<T>;
    live: Live<T>;
    command: T["command"];
    handling: Handling<T>;
    entries: readonly T["entry"][];
    last: number;
    data: string;
    rows: readonly RowWrite[];
    orders: readonly T["order"][];
    summary: T["summary"];
    before: T["summary"] | undefined;
  }) {
    this.#kernel = parts.kernel;
    this.live = parts.live;
    this.command = parts.command;
    this.handling = parts.handling;
    this.entries = parts.entries;
    this.last = parts.last;
    this.data = parts.data;
    this.first = parts.last - parts.entries.length + 1;
    this.appends = [this];
    this.rows = parts.rows;
    this.orders = parts.orders;
    this.summary = parts.summary;
    this.before = parts.before;
  }

  get owner(): object {
    return this.live;
  }

  get journal(): JournalKey {
    return this.live.key;
  }

  get expected(): number {
    return this.first - 1;
  }

  get count(): number {
    return this.entries.length;
  }

  durable(): void {
    this.#kernel.durable(this);
  }

  refused(error: Error, later: readonly WrittenUnit[]): void {
    this.#kernel.refused(this, error, later);
  }
}

interface UnitOwner<T extends Types> {
  durable(unit: KernelUnit<T>): void;
  refused(unit: KernelUnit<T>, error: Error, later: readonly WrittenUnit[]): void;
}

const NO_APPENDS: WrittenUnit["appends"] = [];
const NO_ROWS: readonly RowWrite[] = [];
const READ_AGAIN_AFTER = 50;
const LONGEST_PAUSE = 5_000;

type Loaded<T extends Types> = (live: Live<T> | undefined, error?: Error) => void;

export class Kernel<T extends Types> {
  readonly #parts: KernelParts<T>;
  readonly #writer: Writer;
  readonly #cache = new Map<JournalKey, Live<T>>();
  readonly #loading = new Map<JournalKey, Loaded<T>[]>();
  readonly #unsettled = new Set<Live<T>>();
  readonly #owner: UnitOwner<T>;
  #stopped: Error | undefined;

  constructor(parts: KernelParts<T>) {
    this.#parts = parts;
    this.#writer = parts.store.writer;
    this.#owner = {
      durable: (unit) => this.#durable(unit),
      refused: (unit, error, later) => this.#refused(unit, error, later),
    };
  }

  get size(): number {
    return this.#cache.size;
  }

  /** Aggregates that are being read again, or whose commands wait to be decided. */
  get unsettled(): number {
    return this.#unsettled.size;
  }

  /** Nothing is decided any more. */
  get stopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Everything in memory. For short looks: nobody keeps what is found here. */
  all(): Iterable<Live<T>> {
    return this.#cache.values();
  }

  peek(key: JournalKey): Live<T> | undefined {
    return this.#cache.get(key);
  }

  /** Calls back at once if it is in memory, else when it was read; with nothing if there is no such journal. */
  with(key: JournalKey, callback: Loaded<T>): void {
    // What is in memory then may have been decided and never become durable.
    if (this.#stopped !== undefined) return callback(undefined, this.#stopped);
    const live = this.#cache.get(key);
    if (live !== undefined) return callback(live);
    const under = this.#loading.get(key);
    if (under !== undefined) {
      under.push(callback);
      return;
    }
    this.#loading.set(key, [callback]);
    this.#read(key).then(
      (read) => this.#loaded(key, read),
      (error: unknown) => this.#notLoaded(key, asError(error)),
    );
  }

  /** The same as a promise. What it resolves with may have left memory by the time that it is looked at. */
  load(key: JournalKey): Promise<Live<T> | undefined> {
    return new Promise((resolve, reject) => {
      this.with(key, (live, error) => (error === undefined ? resolve(live) : reject(error)));
    });
  }

  /**
   * Reads many journals at once, with `breathe` between putting one and the next into memory. One that cannot be
   * understood is reported. Rejects if some could not be read, also by somebody else who was at it.
   */
  async loadMany(keys: readonly JournalKey[], breathe: () => Promise<void>): Promise<void> {
    const missing = keys.filter((key) => !this.#cache.has(key));
    const others = missing.filter((key) => this.#loading.has(key)).map((key) => this.load(key));
    const own = missing.filter((key) => !this.#loading.has(key));
    // Whoever asks for them meanwhile waits for this read: two pictures of a journal could be of different age.
    for (const key of own) this.#loading.set(key, []);
    await Promise.all([this.#loadTogether(own, breathe), ...others]);
  }

  async #loadTogether(keys: readonly JournalKey[], breathe: () => Promise<void>): Promise<void> {
    if (keys.length === 0) return;
    const { store, report } = this.#parts;
    let stored: readonly StoredJournal[];
    try {
      stored = await store.readMany(keys);
    } catch (error) {
      for (const key of keys) this.#notLoaded(key, asError(error));
      throw error;
    }
    for (const { journal, snapshot, rows } of stored) {
      try {
        const read = this.#begin(journal, snapshot);
        for (const row of rows) this.#add(read, row);
        this.#loaded(journal, read);
      } catch (cause) {
        report({ code: "load_failed", message: asError(cause).message, task: journal, cause });
        this.#notLoaded(journal, asError(cause));
      }
      await breathe();
    }
  }

  /** Begins a journal with its first command. */
  create(key: JournalKey, command: T["command"], handling: Handling<T>): void {
    if (this.#stopped !== undefined) return handling.failed?.(this.#stopped);
    if (this.#cache.has(key) || this.#loading.has(key)) {
      return handling.failed?.(new Error(`journal ${key} exists already`));
    }
    const { aggregate, attach } = this.#parts;
    const decision = aggregate.decide(undefined, command, this.#parts.moment());
    if (!decision.ok) return handling.refused?.(decision.refusal);
    const live = new Live<T>(key, decision.state, 0);
    live.work = attach(live, "opened");
    this.#cache.set(key, live);
    this.#accept(live, command, decision.entries, handling);
  }

  /** Decides a command, after loading if need be. */
  submit(key: JournalKey, command: T["command"], handling: Handling<T> = {}): void {
    this.with(key, (live, error) => {
      if (live === undefined) handling.failed?.(error ?? new UnknownJournalError(key));
      else this.apply(live, command, handling);
    });
  }

  /** Decides a command now, or when whoever reads the state is done. */
  apply(live: Live<T>, command: T["command"], handling: Handling<T> = {}): void {
    if (this.#stopped !== undefined) return handling.failed?.(this.#stopped);
    if (live.gone) return this.submit(live.key, command, handling);
    if (!live.held) return this.#decide(live, command, handling);
    // Taking up asks anew for what the owner asked of itself.
    if (handling.own === true && live.rollBack !== undefined) return;
    live.waiting.push([command, handling]);
    this.#unsettled.add(live);
  }

  /** @throws StoreBusyError when too many commands wait for this aggregate already */
  assertRoomIn(key: JournalKey): void {
    const waiting = this.#cache.get(key)?.waiting.length ?? this.#loading.get(key)?.length ?? 0;
    if (waiting < this.#parts.limits.waitingCommands) return;
    throw new StoreBusyError(`${waiting} commands wait for ${this.#parts.aggregate.kind} ${key} already`);
  }

  /**
   * Reads the state when everything decided is durable; later commands and turns wait for that, one or two syncs at
   * most. The reader gets the live object and must copy what it keeps. Nothing if there is no such journal.
   */
  read<V>(key: JournalKey, reader: (state: T["state"]) => V): Promise<V | undefined> {
    return new Promise((resolve, reject) => {
      this.with(key, (live, error) => {
        if (live === undefined) {
          if (error === undefined) resolve(undefined);
          else reject(error);
          return;
        }
        this.#queueReader(live, {
          read: (state) => {
            try {
              const value = reader(state);
              return () => resolve(value);
            } catch (thrown) {
              return () => reject(asError(thrown));
            }
          },
          failed: (failure) => (failure === undefined ? resolve(undefined) : reject(failure)),
        });
      });
    });
  }

  /**
   * Reads a state that knows what it was at each of its numbers, and does not wait: the reader looks at it as of the
   * last number that is durable, and what it saw stays true. Nothing if there is no such journal.
   */
  readVersioned<V>(
    key: JournalKey,
    reader: (state: T["state"], durable: number) => V,
  ): Promise<V | undefined> {
    return new Promise((resolve, reject) => {
      this.with(key, (live, error) => {
        if (error !== undefined) return reject(error);
        if (live === undefined || live.durable === 0) return resolve(undefined);
        try {
          resolve(reader(live.state, live.durable));
        } catch (thrown) {
          reject(asError(thrown));
        }
      });
    });
  }

  /** The facts of the last durable unit. Never waits for a commit; nothing if there is no such journal. */
  async summary(key: JournalKey): Promise<T["summary"] | undefined> {
    const live = this.#cache.get(key);
    if (live?.summary !== undefined) return live.summary;
    const loaded = await this.load(key);
    return loaded === undefined
      ? undefined
      : (loaded.summary ?? this.read(key, (state) => this.#summaryOf(state)));
  }

  /**
   * Removes a journal if `mayRemove` allows it when everything decided is durable. The rows must be conditional on the
   * number handed in. False if something is going on in it, or it changed meanwhile.
   */
  remove(
    key: JournalKey,
    mayRemove: (live: Live<T>) => boolean,
    rows: (expected: number) => readonly RowWrite[],
  ): Promise<boolean> {
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    const live = this.#cache.get(key);
    if (live !== undefined) {
      if (!live.quiet || !mayRemove(live)) return Promise.resolve(false);
      live.locks++;
      return this.#commitRemoval(rows(live.durable)).then((removed) => {
        live.locks--;
        if (removed) this.#leave(live, "removed");
        this.#goOn(live);
        return removed;
      });
    }
    if (this.#loading.has(key)) return Promise.resolve(false);
    // Whoever asks for it meanwhile waits, and then finds it or not.
    this.#loading.set(key, []);
    return this.#parts.store
      .lastNumber(key)
      .then((number) => (number === 0 ? false : this.#commitRemoval(rows(number))))
      .finally(() => {
        const waiting = this.#loading.get(key) ?? [];
        this.#loading.delete(key);
        for (const callback of waiting) this.with(key, callback);
      });
  }

  /** Lets go of an aggregate in which nothing is going on. A long journal gets a snapshot first. */
  evict(live: Live<T>): boolean {
    if (live.gone || !live.quiet) return false;
    this.#leave(live, "evicted");
    if (live.durable - live.snapshotAt >= this.#parts.limits.snapshotAfter) this.#writeSnapshot(live);
    return true;
  }

  /** Gives a journal that has doubled since its last snapshot another one; its commands wait for that. */
  snapshotIfLong(live: Live<T>): void {
    const due = Math.max(this.#parts.limits.snapshotAfter, Math.floor(live.durable / 2));
    if (live.durable - live.snapshotAt < due || live.gone || live.held || live.units.length > 0) return;
    live.locks++;
    this.#writeSnapshot(live, () => {
      live.locks--;
      this.#goOn(live);
    });
  }

  /** Nothing is decided any more. Whoever waits is told. */
  stop(error: Error = new KernelClosedError()): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = error;
    for (const live of [...this.#cache.values()]) {
      const { waiting, readers, rollBack } = live;
      live.waiting = [];
      live.readers = [];
      live.rollBack = undefined;
      for (const tell of rollBack?.failed ?? []) this.#tell(live, tell);
      for (const [, handling] of [...(rollBack?.commands ?? []), ...waiting]) {
        this.#tell(live, () => handling.failed?.(error));
      }
      for (const reader of readers) this.#tell(live, () => reader.failed(error));
      this.#parts.detach(live, "closed");
    }
    for (const callbacks of this.#loading.values())
      for (const callback of callbacks) callback(undefined, error);
    this.#loading.clear();
  }

  // --- deciding ---------------------------------------------------------------------------------------------------

  #decide(live: Live<T>, command: T["command"], handling: Handling<T>): void {
    const { aggregate, report } = this.#parts;
    try {
      const decision = aggregate.decide(live.state, command, this.#parts.moment());
      if (decision.ok && decision.entries.length > 0) {
        this.#accept(live, command, decision.entries, handling);
        return;
      }
      const tell = !decision.ok
        ? () => handling.refused?.(decision.refusal)
        : handling.rowsAlways === true
          ? () => this.#commitRows(live, handling)
          : () => handling.done?.(undefined);
      this.#whenDurable(live, { tell, command, handling });
    } catch (thrown) {
      // A mistake in the rules must not leave half a decision behind: the journal is the truth.
      const error = asError(thrown);
      report({ code: "decide_failed", message: error.message, task: live.key, cause: error });
      this.#startRollBack(live, [], () => handling.failed?.(error));
      return;
    }
    this.#parts.idle(live);
  }

  /** A refusal tells what the state says, so it waits until that is durable. */
  #whenDurable(live: Live<T>, knowledge: Knowledge<T>): void {
    const last = live.units.at(-1);
    if (last === undefined) knowledge.tell();
    else if (last.after === undefined) last.after = [knowledge];
    else last.after.push(knowledge);
  }

  /** Rows of a command that changed nothing. What it rests on is durable, so they belong to no unit. */
  #commitRows(live: Live<T>, handling: Handling<T>): void {
    const { rows = NO_ROWS } = handling;
    this.#writer.push({
      appends: NO_APPENDS,
      rows: typeof rows === "function" ? rows([], live.durable + 1) : rows,
      durable: () => this.#tell(live, () => handling.done?.(undefined)),
      refused: (error) => this.#tell(live, () => handling.failed?.(error)),
    });
  }

  #accept(live: Live<T>, command: T["command"], entries: readonly T["entry"][], handling: Handling<T>): void {
    const { aggregate, prepare, decided } = this.#parts;
    const last = aggregate.number(live.state);
    const first = last - entries.length + 1;
    const before = live.latest;
    const summary = aggregate.summary(live.state);
    live.latest = summary;
    const data = JSON.stringify(entries);
    const prepared = prepare(live, entries, first, before);
    const given =
      typeof handling.rows === "function" ? handling.rows(entries, first) : (handling.rows ?? NO_ROWS);
    const rows =
      prepared.rows.length === 0 ? given : given.length === 0 ? prepared.rows : [...prepared.rows, ...given];
    const { orders } = prepared;
    const unit = new KernelUnit<T>({
      kernel: this.#owner,
      live,
      command,
      handling,
      entries,
      last,
      data,
      rows,
      orders,
      summary,
      before,
    });
    live.size += data.length;
    live.units.push(unit);
    this.#writer.push(unit);
    handling.decided?.(unit);
    decided(live, unit);
  }

  // --- durable ----------------------------------------------------------------------------------------------------

  #durable(unit: KernelUnit<T>): void {
    const { live } = unit;
    if (live.units[0] !== unit) throw new Error(`journal ${live.key} became durable out of order`);
    live.units.shift();
    live.rollBacks = 0;
    live.durable = unit.last;
    live.summary = unit.summary;
    if (!live.gone) {
      for (const reactor of this.#parts.reactors) this.#react(reactor, live, unit);
    }
    this.#tell(live, () => unit.handling.done?.(unit));
    if (unit.after !== undefined) for (const { tell } of unit.after) this.#tell(live, tell);
    if (live.units.length === 0) this.#goOn(live);
  }

  #react(reactor: Reactor<T>, live: Live<T>, unit: Unit<T>): void {
    try {
      reactor.react(live, unit);
    } catch (cause) {
      this.#parts.report({
        code: "reactor_failed",
        message: `${reactor.name} failed at number ${unit.last}: ${asError(cause).message}`,
        task: live.key,
        cause,
      });
    }
  }

  #tell(live: Live<T>, tell: () => void): void {
    try {
      tell();
    } catch (cause) {
      this.#parts.report({
        code: "listener_failed",
        message: asError(cause).message,
        task: live.key,
        cause,
      });
    }
  }

  /** What waited for the state to stand still is served, then what waited for that. */
  #goOn(live: Live<T>): void {
    if (live.locks > 0) return;
    if (live.units.length === 0) {
      if (live.rollBack !== undefined) {
        this.#readAgain(live);
        return;
      }
      if (live.readers.length > 0) {
        const { readers } = live;
        live.readers = [];
        // All values first: handing one over may lead to a command that the others must not see.
        const handOver = readers.map((reader) => reader.read(live.state));
        for (const hand of handOver) this.#tell(live, hand);
      }
    }
    // Also if something is on its way: what waits was asked before whatever could be decided now.
    if (live.waiting.length > 0 && !live.held) {
      const { waiting } = live;
      live.waiting = [];
      for (const [command, handling] of waiting) {
        if (live.held) live.waiting.push([command, handling]);
        else this.apply(live, command, handling);
      }
    }
    if (live.waiting.length === 0 && live.rollBack === undefined) this.#unsettled.delete(live);
    if (!live.gone && this.#stopped === undefined) this.#parts.idle(live);
  }

  #queueReader(live: Live<T>, reader: Reader<T>): void {
    if (live.units.length === 0 && live.locks === 0 && live.rollBack === undefined) {
      this.#tell(live, reader.read(live.state));
      if (!live.gone) this.#parts.idle(live);
    } else live.readers.push(reader);
  }

  // --- rolling back -----------------------------------------------------------------------------------------------

  /** The store refused a unit for good. The journal is the truth: it is read again, and what stood behind is decided anew. */
  #refused(unit: KernelUnit<T>, error: Error, later: readonly WrittenUnit[]): void {
    const { live } = unit;
    const gone = new Set<WrittenUnit>([unit, ...later]);
    const lost = live.units.filter((other) => gone.has(other));
    const left = live.units.filter((other) => !gone.has(other));
    live.units.splice(0, live.units.length, ...left);
    if (this.#writer.ended || this.#stopped !== undefined) {
      // Nothing will be durable any more: everybody is told, and nothing is read again.
      for (const { handling, after } of lost) {
        this.#tell(live, () => handling.failed?.(error));
        for (const knowledge of after ?? []) this.#tell(live, () => knowledge.handling.failed?.(error));
      }
      return;
    }
    const again: Waiting<T>[] = [];
    for (const { command, handling, after } of lost) {
      // In order: each command, then those that were refused because of it.
      if (handling !== unit.handling && handling.own !== true) again.push([command, handling]);
      for (const knowledge of after ?? []) {
        if (knowledge.handling.own !== true) again.push([knowledge.command, knowledge.handling]);
      }
    }
    this.#startRollBack(live, again, () => unit.handling.failed?.(error));
  }

  #startRollBack(live: Live<T>, again: readonly Waiting<T>[], failed: () => void): void {
    if (live.rollBack === undefined) {
      live.rollBack = { commands: [...again], failed: [failed] };
      // Taking up asks anew for what the owner asked of itself.
      live.waiting = live.waiting.filter(([, { own }]) => own !== true);
      live.rollBacks++;
      this.#unsettled.add(live);
      this.#parts.suspend(live);
    } else {
      live.rollBack.commands.unshift(...again);
      live.rollBack.failed.push(failed);
    }
    // What was handed over before is still on its way: the journal is read when that is durable.
    if (live.units.length === 0 && live.locks === 0) this.#readAgain(live);
  }

  /** At once; later if what follows from it was refused again. */
  #readAgain(live: Live<T>): void {
    live.locks++;
    if (live.rollBacks < 2) return this.#readNow(live);
    const delay = Math.min(LONGEST_PAUSE, READ_AGAIN_AFTER * 2 ** Math.min(live.rollBacks, 10));
    this.#parts.clock.after(delay, () => this.#readNow(live));
  }

  #readNow(live: Live<T>): void {
    if (this.#stopped !== undefined) return;
    this.#read(live.key).then(
      (read) => {
        live.locks--;
        this.#replace(live, read);
      },
      (cause: unknown) => {
        if (this.#stopped !== undefined) return;
        this.#parts.report({
          code: "load_failed",
          message: asError(cause).message,
          task: live.key,
          cause,
        });
        this.#parts.clock.after(READ_AGAIN_AFTER, () => this.#readNow(live));
      },
    );
  }

  #replace(live: Live<T>, read: Reading<T>): void {
    const { rollBack } = live;
    if (rollBack === undefined || this.#stopped !== undefined) return;
    live.rollBack = undefined;
    const { state } = read;
    if (state === undefined) {
      const { waiting, readers } = live;
      live.waiting = [];
      live.readers = [];
      this.#leave(live, "missing");
      for (const tell of rollBack.failed) this.#tell(live, tell);
      const error = new UnknownJournalError(live.key);
      for (const [, handling] of [...rollBack.commands, ...waiting]) {
        this.#tell(live, () => handling.failed?.(error));
      }
      for (const reader of readers) this.#tell(live, () => reader.failed(undefined));
      return;
    }
    this.#settle(live, state, read);
    live.work = this.#parts.attach(live, "stored");
    for (const tell of rollBack.failed) this.#tell(live, tell);
    // Commands that wait anyway come behind those that were decided once.
    live.waiting.unshift(...rollBack.commands);
    this.#parts.takeUp(live);
    this.#goOn(live);
  }

  // --- loading ----------------------------------------------------------------------------------------------------

  async #read(key: JournalKey): Promise<Reading<T>> {
    const { store } = this.#parts;
    const read = this.#begin(key, await store.readSnapshot(key));
    const after = read.state === undefined ? 0 : this.#parts.aggregate.number(read.state);
    const readPage = (from: number, limit: number) => store.read(key, { after: from, limit });
    for await (const rows of pages(readPage, after, byNumber, this.#parts.loop)) {
      for (const row of rows) this.#add(read, row);
    }
    return read;
  }

  /** A snapshot only saves time: whatever is wrong with it, the journal alone gives the same state. */
  #begin(key: JournalKey, snapshot: Snapshot | undefined): Reading<T> {
    const read: Reading<T> = { state: undefined, size: 0, snapshotAt: 0 };
    if (snapshot === undefined) return read;
    const { aggregate, report } = this.#parts;
    try {
      const header = readHeader(snapshot);
      const parts = snapshot.parts.filter((part) => !isSnapshotHeader(part));
      const state = header === undefined ? undefined : aggregate.thaw?.(parts);
      if (state === undefined || header === undefined || aggregate.number(state) !== snapshot.number)
        return read;
      read.state = state;
      read.size = header.size;
      read.snapshotAt = snapshot.number;
    } catch (cause) {
      read.state = undefined;
      report({
        code: "bad_snapshot",
        message: `the snapshot cannot be read and is ignored: ${asError(cause).message}`,
        task: key,
        cause,
      });
    }
    return read;
  }

  #add(read: Reading<T>, row: JournalRow): void {
    const { aggregate } = this.#parts;
    const entries: T["entry"][] = JSON.parse(row.data);
    read.size += row.data.length;
    const seen = read.state === undefined ? 0 : aggregate.number(read.state);
    for (const entry of seen < row.first ? entries : entries.slice(seen - row.first + 1)) {
      if (read.state === undefined) read.state = aggregate.begin(entry);
      else aggregate.evolve(read.state, entry);
    }
  }

  #loaded(key: JournalKey, read: Reading<T>): void {
    const waiting = this.#loading.get(key);
    if (waiting === undefined) return;
    this.#loading.delete(key);
    const { state } = read;
    if (state === undefined) {
      for (const callback of waiting) callback(undefined);
      return;
    }
    const live = new Live<T>(key, state, 0);
    this.#settle(live, state, read);
    live.work = this.#parts.attach(live, "stored");
    this.#cache.set(key, live);
    this.#parts.takeUp(live);
    for (const callback of waiting) this.#tell(live, () => callback(live));
    if (!live.gone) this.#parts.idle(live);
  }

  #settle(live: Live<T>, state: T["state"], read: Reading<T>): void {
    live.state = state;
    live.durable = this.#parts.aggregate.number(state);
    live.summary = this.#summaryOf(state);
    live.latest = live.summary;
    live.size = read.size;
    live.snapshotAt = read.snapshotAt;
    live.snapshotParts = undefined;
  }

  #summaryOf(state: T["state"]): T["summary"] {
    return this.#parts.aggregate.summary(state);
  }

  #notLoaded(key: JournalKey, error: Error): void {
    const waiting = this.#loading.get(key) ?? [];
    this.#loading.delete(key);
    for (const callback of waiting) callback(undefined, error);
  }

  // --- leaving ----------------------------------------------------------------------------------------------------

  #leave(live: Live<T>, why: Departure): void {
    live.gone = true;
    this.#unsettled.delete(live);
    if (this.#cache.get(live.key) === live) this.#cache.delete(live.key);
    this.#parts.detach(live, why);
  }

  #commitRemoval(rows: readonly RowWrite[]): Promise<boolean> {
    return new Promise((resolve) => {
      this.#writer.push({
        appends: NO_APPENDS,
        rows,
        durable: () => resolve(true),
        refused: () => resolve(false),
      });
    });
  }

  /** Part by part, with the event loop's other work in between; the state must stand still meanwhile. */
  #writeSnapshot(live: Live<T>, done?: () => void): void {
    const { aggregate, loop, report } = this.#parts;
    if (aggregate.freeze === undefined) return done?.();
    const number = live.durable;
    const fail = (cause: unknown) => {
      // Tried again when the journal has grown as much once more, not at every entry.
      live.snapshotAt = number;
      report({ code: "snapshot_failed", message: asError(cause).message, task: live.key, cause });
      done?.();
    };
    freezeInSteps(aggregate.freeze(live.state), loop, (parts, error) => {
      if (parts === undefined) return fail(error);
      const all: SnapshotPart[] = [snapshotHeader(live.size), ...parts];
      const known = live.snapshotParts;
      const digests = new Map(all.map(({ name, data }) => [name, digestOf(data)]));
      const isKept = ({ name }: SnapshotPart) => known !== undefined && known.get(name) === digests.get(name);
      const changed = all.filter((part) => !isKept(part));
      const kept = all.filter(isKept).map(({ name }) => name);
      live.snapshotAt = number;
      live.snapshotParts = digests;
      const row = { kind: "snapshot.put", journal: live.key, number, parts: changed, kept };
      this.#writer.push({
        appends: NO_APPENDS,
        rows: [row],
        durable: () => {},
        // Removed meanwhile, or closed: a snapshot is never missed.
        refused: () => {
          live.snapshotParts = undefined;
        },
      });
      done?.();
    });
  }
}

interface Reading<T extends Types> {
  state: T["state"] | undefined;
  size: number;
  snapshotAt: number;
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
