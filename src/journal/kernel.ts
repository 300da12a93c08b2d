/**
 * The journal kernel. Commands are decided at once on the newest state; each decision becomes a unit in the writer's
 * queue; nothing leaves the process before its unit is durable. Reactors see each unit with the facts as of its
 * entries, never the live state.
 */

import type { Types } from "./aggregate.js";
import { Cache, type Loaded } from "./cache.js";
import { asError, decideFailed, kernelClosed, unknownJournal } from "./errors.js";
import type { KernelParts, Reactor } from "./kernel-parts.js";
import { listenerFailed, notify } from "./listeners.js";
import {
  type Handling,
  KernelUnit,
  type Knowledge,
  Live,
  type Reader,
  type Unit,
  type UnitOwner,
} from "./live.js";
import { type JournalKey, type RowWrite, storeBusy } from "./ports.js";
import { StateReader } from "./reading.js";
import { RollBacks } from "./rollback.js";
import { writeSnapshot } from "./snapshots.js";
import type { Writer, Unit as WrittenUnit } from "./writer.js";

const NO_APPENDS: WrittenUnit["appends"] = [];
const NO_ROWS: readonly RowWrite[] = [];
export class Kernel<T extends Types> {
  readonly #parts: KernelParts<T>;
  readonly #writer: Writer;
  readonly #cache: Cache<T>;
  readonly #rollBacks: RollBacks<T>;
  readonly #owner: UnitOwner<T>;

  constructor(parts: KernelParts<T>) {
    this.#parts = parts;
    this.#writer = parts.store.writer;
    const reader = new StateReader(parts);
    this.#cache = new Cache(parts, reader);
    this.#rollBacks = new RollBacks(parts, this.#cache, reader, (live) => this.#continue(live));
    this.#owner = {
      durable: (unit) => this.#durable(unit),
      refused: (unit, error, later) => this.#rollBacks.refused(unit, error, later),
    };
  }

  get size(): number {
    return this.#cache.size;
  }

  /** The number of aggregates that are being reloaded or have waiting commands. */
  get unsettled(): number {
    return this.#cache.unsettled.size;
  }

  /** Nothing is decided any longer. */
  get stopped(): boolean {
    return this.#cache.stopped !== undefined;
  }

  /** All aggregates in memory. Callers must not keep them. */
  all(): Iterable<Live<T>> {
    return this.#cache.all();
  }

  peek(key: JournalKey): Live<T> | undefined {
    return this.#cache.peek(key);
  }

  /** Calls back at once if the aggregate is in memory, else after reading it; with nothing if there is no such journal. */
  with(key: JournalKey, callback: Loaded<T>): void {
    this.#cache.with(key, callback);
  }

  /** The same as a promise. The aggregate may have left memory by the time the caller continues. */
  load(key: JournalKey): Promise<Live<T> | undefined> {
    return this.#cache.load(key);
  }

  /**
   * Reads many journals at once and awaits `yieldToLoop` after each. A journal that cannot be parsed is reported. Rejects if
   * the store could not read some of them, also in a concurrent load.
   */
  loadMany(keys: readonly JournalKey[], yieldToLoop: () => Promise<void>): Promise<void> {
    return this.#cache.loadMany(keys, yieldToLoop);
  }

  /** Begins a journal with its first command. */
  create(key: JournalKey, command: T["command"], handling: Handling<T>): void {
    const { stopped } = this.#cache;
    if (stopped !== undefined) return handling.failed?.(stopped);
    if (this.#cache.peek(key) !== undefined || this.#cache.isLoading(key)) {
      return handling.failed?.(new Error(`journal ${key} already exists`));
    }
    const { aggregate, attach } = this.#parts;
    const decision = aggregate.decide(undefined, command, this.#parts.moment());
    if (!decision.ok) return handling.refused?.(decision.refusal);
    const live = new Live<T>(key, decision.state, 0);
    live.work = attach(live, "opened");
    this.#cache.add(live);
    this.#accept(live, command, decision.entries, handling);
  }

  /** Decides a command, after loading the aggregate if necessary. */
  submit(key: JournalKey, command: T["command"], handling: Handling<T> = {}): void {
    this.with(key, (live, error) => {
      if (live === undefined) handling.failed?.(error ?? unknownJournal(key));
      else this.apply(live, command, handling);
    });
  }

  /** Decides a command now, or after the current readers of the state. */
  apply(live: Live<T>, command: T["command"], handling: Handling<T> = {}): void {
    const { stopped } = this.#cache;
    if (stopped !== undefined) return handling.failed?.(stopped);
    if (live.gone) return this.submit(live.key, command, handling);
    if (!live.held) return this.#decide(live, command, handling);
    // The owner repeats its own commands when it resumes the aggregate.
    if (handling.own === true && live.rollBack !== undefined) return;
    live.waiting.push([command, handling]);
    this.#cache.unsettled.add(live);
  }

  /** @throws MailroomError `store_busy` when too many commands wait for this aggregate already */
  assertCapacityIn(key: JournalKey): void {
    const waiting = this.#cache.waitingFor(key);
    if (waiting < this.#parts.limits.waitingCommands) return;
    throw storeBusy(`${waiting} commands already wait for ${this.#parts.aggregate.kind} ${key}`);
  }

  /**
   * Reads the state when all decisions are durable; later commands and turns wait for that, one or two syncs at most.
   * The reader gets the live object and must copy what it keeps. `undefined` if there is no such journal.
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
   * Reads a versioned state without waiting: the reader sees it as of the last durable number. `undefined` if there is no
   * such journal.
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

  /** The facts of the last durable unit. Never waits for a commit. `undefined` if there is no such journal. */
  async summary(key: JournalKey): Promise<T["summary"] | undefined> {
    const live = this.#cache.peek(key);
    if (live?.summary !== undefined) return live.summary;
    const loaded = await this.load(key);
    return loaded === undefined
      ? undefined
      : (loaded.summary ?? this.read(key, (state) => this.#parts.aggregate.summary(state)));
  }

  /**
   * Removes a journal if all decisions are durable and `mayRemove` allows it. The rows must be conditional on the number
   * that they get. False if the aggregate has work, or changed meanwhile.
   */
  remove(
    key: JournalKey,
    mayRemove: (live: Live<T>) => boolean,
    rows: (expected: number) => readonly RowWrite[],
  ): Promise<boolean> {
    const { stopped } = this.#cache;
    if (stopped !== undefined) return Promise.reject(stopped);
    const live = this.#cache.peek(key);
    if (live !== undefined) {
      if (!live.quiet || !mayRemove(live)) return Promise.resolve(false);
      live.locks++;
      return this.#commitRemoval(rows(live.durable)).then((removed) => {
        live.locks--;
        if (removed) this.#cache.leave(live, "removed");
        this.#continue(live);
        return removed;
      });
    }
    if (this.#cache.isLoading(key)) return Promise.resolve(false);
    return this.#cache.block(key, async () => {
      const number = await this.#parts.store.lastNumber(key);
      return number === 0 ? false : this.#commitRemoval(rows(number));
    });
  }

  /** Drops an idle aggregate from memory. A long journal gets a snapshot. */
  evict(live: Live<T>): boolean {
    if (live.gone || !live.quiet) return false;
    this.#cache.leave(live, "evicted");
    if (live.durable - live.snapshotAt >= this.#parts.limits.snapshotAfter)
      writeSnapshot(this.#parts, this.#writer, live);
    return true;
  }

  /** Writes a snapshot if the journal has doubled since the last one; its commands wait meanwhile. */
  snapshotIfLong(live: Live<T>): void {
    const due = Math.max(this.#parts.limits.snapshotAfter, Math.floor(live.durable / 2));
    if (live.durable - live.snapshotAt < due || live.gone || live.held || live.units.length > 0) return;
    live.locks++;
    writeSnapshot(this.#parts, this.#writer, live, () => {
      live.locks--;
      this.#continue(live);
    });
  }

  /** Nothing is decided any longer. Every waiting caller gets the error. */
  stop(error: Error = kernelClosed()): void {
    if (this.stopped) return;
    this.#cache.stop(error, (live) => {
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
    });
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
      // A bug in the rules must not leave half a decision in memory: the journal is the truth.
      const error = decideFailed(thrown);
      report({ code: error.code, message: error.message, task: live.key, cause: thrown });
      this.#rollBacks.start(live, [], () => handling.failed?.(error));
      return;
    }
    this.#parts.idle(live);
  }

  /** A refusal reveals the state, so it waits until that state is durable. */
  #whenDurable(live: Live<T>, knowledge: Knowledge<T>): void {
    const last = live.units.at(-1);
    if (last === undefined) knowledge.tell();
    else if (last.after === undefined) last.after = [knowledge];
    else last.after.push(knowledge);
  }

  /** Rows of a command that changed nothing. The state it relies on is durable, so they belong to no unit. */
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
    this.#tellDone(live, unit);
    if (unit.after !== undefined) for (const { tell } of unit.after) this.#tell(live, tell);
    if (live.units.length === 0) this.#continue(live);
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

  /** The same as `#tell`, without a closure for every unit. */
  #tellDone(live: Live<T>, unit: KernelUnit<T>): void {
    try {
      unit.handling.done?.(unit);
    } catch (cause) {
      listenerFailed(this.#parts.report, live.key, cause);
    }
  }

  #tell({ key }: Live<T>, tell: () => void): void {
    notify(this.#parts.report, key, tell);
  }

  /** Serves what waits for a durable state: a reload or readers first, then commands. */
  #continue(live: Live<T>): void {
    if (live.locks > 0) return;
    if (live.units.length === 0) {
      if (live.rollBack !== undefined) {
        this.#rollBacks.readAgain(live);
        return;
      }
      if (live.readers.length > 0) {
        const { readers } = live;
        live.readers = [];
        // All values first: a callback can issue a command that the other readers must not see.
        const handOver = readers.map((reader) => reader.read(live.state));
        for (const hand of handOver) this.#tell(live, hand);
      }
    }
    // Even if units are not durable: the waiting commands are older than any that could be decided now.
    if (live.waiting.length > 0 && !live.held) {
      const { waiting } = live;
      live.waiting = [];
      for (const [command, handling] of waiting) {
        if (live.held) live.waiting.push([command, handling]);
        else this.apply(live, command, handling);
      }
    }
    if (live.waiting.length === 0 && live.rollBack === undefined) this.#cache.unsettled.delete(live);
    if (!live.gone && this.#cache.stopped === undefined) this.#parts.idle(live);
  }

  #queueReader(live: Live<T>, reader: Reader<T>): void {
    if (live.units.length === 0 && live.locks === 0 && live.rollBack === undefined) {
      this.#tell(live, reader.read(live.state));
      if (!live.gone) this.#parts.idle(live);
    } else live.readers.push(reader);
  }

  // --- removing ----------------------------------------------------------------------------------------------------

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
}
