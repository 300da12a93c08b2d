/** An aggregate in memory, and its decisions that are not durable yet. */
import type { Types } from "./aggregate.js";
import type { Append, JournalKey, RowWrite } from "./ports.js";
import type { Unit as WrittenUnit } from "./writer.js";

/** What accompanies a command, and the callbacks for its result. At most one of `done`, `refused` and `failed` is called. */
export interface Handling<T extends Types> {
  /** Rows that become durable together with the entries. */
  readonly rows?: RowsOf<T> | undefined;
  /** Commit the rows even if there is nothing to decide. */
  readonly rowsAlways?: boolean;
  /** Issued by the kernel's owner itself: dropped in a rollback, because resuming issues it again. */
  readonly own?: boolean;
  /** At decide time, before any reaction. Nothing may leave the process here. */
  decided?(unit: Unit<T>): void;
  /** Durable. Without a unit if nothing was to be done. */
  done?(unit: Unit<T> | undefined): void;
  refused?(refusal: T["refusal"]): void;
  failed?(error: Error): void;
}

export type RowsOf<T extends Types> =
  | readonly RowWrite[]
  | ((entries: readonly T["entry"][], first: number) => readonly RowWrite[]);

/** One decision, from its queueing until its reactors have run. */
export interface Unit<T extends Types> {
  readonly live: Live<T>;
  readonly entries: readonly T["entry"][];
  readonly first: number;
  readonly last: number;
  readonly orders: readonly T["order"][];
  readonly summary: T["summary"];
  /** The summary after the previous decision; `undefined` for the first. */
  readonly before: T["summary"] | undefined;
}

export type Waiting<T extends Types> = readonly [command: T["command"], handling: Handling<T>];

export interface Knowledge<T extends Types> {
  readonly tell: () => void;
  readonly command: T["command"];
  readonly handling: Handling<T>;
}

export interface Reader<T extends Types> {
  /** Computes the value; returns the function that delivers it. */
  readonly read: (state: T["state"]) => () => void;
  readonly failed: (error: Error | undefined) => void;
}

export interface RollBack<T extends Types> {
  /** To be decided again, in order. */
  readonly commands: Waiting<T>[];
  /** To be called when the state has been reloaded. */
  readonly failed: (() => void)[];
}

/** An aggregate in memory. Only the kernel stores a reference; other code holds keys and sees it during calls. */
export class Live<T extends Types> {
  readonly key: JournalKey;
  state: T["state"];
  /** The last number that is certainly on disk. The state may be ahead of it. */
  durable: number;
  /** As of `durable`; `undefined` before the first unit is durable. */
  summary: T["summary"] | undefined;
  /** As of the newest decision. */
  latest: T["summary"] | undefined;
  /** Characters of the journal. */
  size = 0;
  snapshotAt = 0;
  /** It has left memory. */
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
  /** @internal Rollbacks since a unit last became durable. */
  rollBacks = 0;
  /** @internal The number of operations that need an unchanging state: a snapshot, a removal, a reload. */
  locks = 0;
  /** @internal Names and digests of the stored snapshot's parts, if this process wrote it. */
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

  /** All decisions are durable and nothing waits: it can leave memory. */
  get quiet(): boolean {
    return this.units.length === 0 && !this.held && this.waiting.length === 0;
  }
}

/** It is its own append: many units wait in memory, so they are kept small. */
export class KernelUnit<T extends Types> implements Unit<T>, WrittenUnit, Append {
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
  /** Refusals and no-ops that rely on this unit: reported when it is durable. */
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

export interface UnitOwner<T extends Types> {
  durable(unit: KernelUnit<T>): void;
  refused(unit: KernelUnit<T>, error: Error, later: readonly WrittenUnit[]): void;
}
