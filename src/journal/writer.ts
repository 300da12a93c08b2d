/**
 * The only path to the disk. Units wait in order; units that arrive together share a transaction. A unit stays in the
 * queue until it is durable or the store refuses it permanently. A temporary failure is retried with the same units, so
 * no known result is lost.
 */
import { type MailroomError, messageOf } from "../base/index.js";
import { merge, type Parcel, type StoredRow, separate, type Unit } from "./parcel.js";
import {
  type Append,
  type Batch,
  type Clock,
  type Committed,
  type Group,
  type GroupResult,
  type Loop,
  type RowWrite,
  type StoreDriver,
  storeBusy,
  storeClosed,
  storeFailed,
} from "./ports.js";

export type { StoredRow, Unit };

/**
 * Receives the rows that one group stored, in commit order. `before` is the newest position before the group: a listener
 * that has seen everything up to it misses nothing.
 */
export type RowListener = (rows: readonly StoredRow[], before: number) => void;

export interface WriterLimits {
  /** Limit on waiting units. */
  readonly units: number;
  /** Limit on waiting characters of journal data. */
  readonly characters: number;
  /** Units in one transaction: enough to amortize the sync, few enough to keep the event loop responsive. */
  readonly groupWrites: number;
  readonly groupCharacters: number;
  /** Size up to which appends of one journal in one group share a row. 0: each append is a row. */
  readonly rowCharacters: number;
}

const DEFAULT_WRITER_LIMITS: WriterLimits = {
  units: 16_384,
  characters: 128 * 1024 * 1024,
  groupWrites: 512,
  groupCharacters: 8 * 1024 * 1024,
  rowCharacters: 256 * 1024,
};

export interface WriterParts {
  readonly driver: StoreDriver;
  readonly clock: Clock;
  readonly loop: Loop;
  readonly limits?: Partial<WriterLimits>;
  /** The newest position in the store when the writer starts. */
  readonly position?: number;
  /** Milliseconds, finer than the clock's, for the duration of commits. Default: the clock. */
  readonly stopwatch?: () => number;
}

/** The state of the writer, for health and metrics. */
export interface WriterHealth {
  readonly state: "open" | "degraded" | "failed" | "closed";
  /** Units that are not durable yet. */
  readonly waiting: number;
  readonly characters: number;
  /** Retries since the start. */
  readonly retries: number;
  /** Since when nothing can be written, in milliseconds since the epoch; only while degraded. */
  readonly since?: number;
  readonly reason?: string;
}

/** A failure that lasts longer than this makes the writer degraded: no turn starts, and requests are refused. */
const DEGRADED_AFTER = 250;
const FIRST_RETRY = 10;
const LONGEST_RETRY = 1_000;
/** New posts leave this share of the queue to results of turns and actions. */
const POST_SHARE = 0.75;

export class Writer {
  readonly #parts: WriterParts;
  readonly #limits: WriterLimits;
  readonly #rowListeners = new Set<RowListener>();
  readonly #commitListeners = new Set<(ms: number) => void>();
  #sentAt = 0;
  readonly #stateListeners = new Set<() => void>();
  #queue: Unit[] = [];
  #inFlight: Unit[] | undefined;
  #seq = 0;
  #undurable = 0;
  #characters = 0;
  #position: number;
  #scheduled = false;
  #backoff = 0;
  #retries = 0;
  #failingSince: number | undefined;
  #reason: string | undefined;
  #degraded = false;
  #failure: MailroomError | undefined;
  #closed = false;
  #onBelow: { readonly most: number; readonly resolve: () => void }[] = [];

  constructor(parts: WriterParts) {
    this.#parts = parts;
    this.#limits = { ...DEFAULT_WRITER_LIMITS, ...parts.limits };
    this.#position = parts.position ?? 0;
  }

  /** Units that are not durable yet. */
  get undurable(): number {
    return this.#undurable;
  }

  /** Position of the newest durable row that this writer has seen. */
  get position(): number {
    return this.#position;
  }

  /** Writes have been failing for longer than the grace period. */
  get degraded(): boolean {
    return this.#degraded;
  }

  /** Failed or closed: nothing becomes durable any longer. */
  get ended(): boolean {
    return this.#closed || this.#failure !== undefined;
  }

  get failure(): MailroomError | undefined {
    return this.#failure;
  }

  get health(): WriterHealth {
    return {
      state:
        this.#failure !== undefined
          ? "failed"
          : this.#closed
            ? "closed"
            : this.#degraded
              ? "degraded"
              : "open",
      waiting: this.#undurable,
      characters: this.#characters,
      retries: this.#retries,
      ...(this.#degraded && this.#failingSince !== undefined && { since: this.#failingSince }),
      ...(this.#degraded && this.#reason !== undefined && { reason: this.#reason }),
    };
  }

  /** Calls back after each commit with the milliseconds that it took, retries included. */
  onCommit(listener: (ms: number) => void): () => void {
    this.#commitListeners.add(listener);
    return () => this.#commitListeners.delete(listener);
  }

  /** Calls the listener with stored rows, after their units were notified. */
  onRows(listener: RowListener): () => void {
    this.#rowListeners.add(listener);
    return () => this.#rowListeners.delete(listener);
  }

  /** Calls the listener when the writer becomes degraded, recovers or fails. */
  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Whether a new post would be refused. Results of running turns and actions may use the rest of the queue. */
  isFull(characters = 0): boolean {
    if (this.#undurable === 0) return false;
    const { units, characters: most } = this.#limits;
    return this.#undurable >= units * POST_SHARE || this.#characters + characters > most * POST_SHARE;
  }

  /** @throws MailroomError `store_busy`, `store_failed`, `store_closed` when new units are refused */
  admit(characters = 0): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closed) throw storeClosed();
    if (this.#degraded) throw storeBusy(`the store cannot be written at the moment (${this.#reason})`);
    if (this.isFull(characters)) {
      throw storeBusy(`${this.#undurable} writes with ${this.#characters} characters already wait`);
    }
  }

  /**
   * Makes a batch durable that belongs to no aggregate in memory. A `post` is refused when the queue is full or
   * the store is degraded; a `result` waits.
   */
  commit(batch: Batch, kind: "post" | "result" = "post"): Promise<Committed> {
    return new Promise((resolve, reject) => {
      if (kind === "post") this.admit(sizeOf(batch.appends));
      this.push({
        appends: batch.appends,
        rows: batch.rows ?? NO_ROWS,
        durable: (position) => resolve({ position }),
        refused: reject,
      });
    });
  }

  /** Queues a unit. */
  push(unit: Unit): void {
    if (this.#failure !== undefined || this.#closed) {
      const error = this.#failure ?? storeClosed();
      this.#parts.loop.micro(() => unit.refused(error, []));
      return;
    }
    this.#queue.push(unit);
    this.#undurable++;
    this.#characters += sizeOf(unit.appends);
    this.#schedule();
  }

  /** Resolves when the queue is empty; at once if the store has failed. */
  drained(): Promise<void> {
    return this.below(0);
  }

  /** Resolves when at most this many units wait; for loops that write a lot. */
  below(most: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#undurable <= most || this.#failure !== undefined || this.#closed) resolve();
      else this.#onBelow.push({ most, resolve });
    });
  }

  /** Accepts and writes nothing any longer. Waiting units are refused, so await `drained` first. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#giveUp(storeClosed());
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight !== undefined) return;
    this.#scheduled = true;
    this.#parts.loop.soon(() => {
      this.#scheduled = false;
      if (this.#inFlight === undefined && this.#queue.length > 0) this.#send(this.#takeGroup(), true);
    });
  }

  #takeGroup(): Unit[] {
    const { groupWrites, groupCharacters } = this.#limits;
    let characters = 0;
    let writes = 0;
    let end = 0;
    for (const { appends, rows } of this.#queue) {
      characters += sizeOf(appends);
      writes += Math.max(1, appends.length + rows.length);
      if (end > 0 && (writes > groupWrites || characters > groupCharacters)) break;
      end++;
    }
    if (end < this.#queue.length) return this.#queue.splice(0, end);
    const units = this.#queue;
    this.#queue = [];
    return units;
  }

  /** All units in one batch; after a refusal each unit alone, so that only the refused one is left out. */
  #send(units: Unit[], together: boolean): void {
    this.#inFlight = units;
    const parcel = together ? merge(units, this.#limits.rowCharacters) : separate(units);
    const group: Group = { seq: ++this.#seq, batches: parcel.batches };
    if (this.#commitListeners.size > 0) this.#sentAt = this.#now();
    this.#write(units, parcel, group);
  }

  #write(units: Unit[], parcel: Parcel, group: Group): void {
    if (this.#closed) return;
    let answered = false;
    const done = (result: GroupResult) => {
      if (answered) return;
      answered = true;
      this.#written(units, parcel, group, result);
    };
    try {
      this.#parts.driver.write(group, done);
    } catch (cause) {
      done({ kind: "final", cause });
    }
  }

  #written(units: Unit[], parcel: Parcel, group: Group, result: GroupResult): void {
    if (this.#inFlight !== units || this.#closed || this.#failure !== undefined) return;
    switch (result.kind) {
      case "committed":
        this.#committed(units, parcel, result);
        return;
      case "transient":
        this.#retry(units, parcel, group, result.cause);
        return;
      case "unknown":
        this.#ask(units, parcel, group, result.cause);
        return;
      case "final":
        this.#fail(result.cause);
        return;
    }
  }

  #committed(units: Unit[], parcel: Parcel, { outcomes, before = this.#position }: Committal): void {
    if (units.length > 1 && parcel.batches.length === 1 && outcomes[0] instanceof Error) {
      this.#well();
      this.#send(units, false);
      return;
    }
    this.#inFlight = undefined;
    this.#well();
    let row = 0;
    for (const [index, { appends }] of parcel.batches.entries()) {
      const outcome = outcomes[index];
      for (let at = 0; at < appends.length; at++, row++) {
        const stored = parcel.rows[row];
        if (stored === undefined || outcome === undefined || outcome instanceof Error) continue;
        stored.position = outcome[at] ?? this.#position;
        if (stored.position > this.#position) this.#position = stored.position;
      }
    }
    const refused = new Map<Unit, Error>();
    for (const [index, unit] of units.entries()) {
      this.#left(unit);
      const outcome = outcomes[parcel.batches.length === 1 ? 0 : index];
      if (outcome instanceof Error) refused.set(unit, outcome);
    }
    // Scheduled before the callbacks: units that they add join the next group, which is due at once.
    if (this.#queue.length > 0) this.#schedule();
    const handedBack = new Set<Unit>();
    for (const [index, unit] of units.entries()) {
      const error = refused.get(unit);
      if (error === undefined) {
        unit.durable(parcel.rowOf[index]?.position ?? this.#position);
      } else if (!handedBack.has(unit)) {
        const later =
          unit.owner === undefined
            ? []
            : [
                ...units.filter(
                  (other) => other.owner === unit.owner && other !== unit && refused.has(other),
                ),
                ...this.#withdraw(unit.owner),
              ];
        for (const other of later) handedBack.add(other);
        unit.refused(error, later);
      }
    }
    if (this.#sentAt > 0) {
      const took = this.#now() - this.#sentAt;
      for (const listener of this.#commitListeners) listener(took);
    }
    if (this.#rowListeners.size > 0) {
      const stored = parcel.rows.filter(({ position }) => position > 0);
      if (stored.length > 0) for (const listener of this.#rowListeners) listener(stored, before);
    }
    if (this.#onBelow.length > 0) this.#tellBelow();
  }

  /** Removes from the queue the units that depend on a refused one. */
  #withdraw(owner: object): Unit[] {
    const withdrawn: Unit[] = [];
    this.#queue = this.#queue.filter((unit) => {
      if (unit.owner !== owner) return true;
      withdrawn.push(unit);
      this.#left(unit);
      return false;
    });
    return withdrawn;
  }

  #left(unit: Unit): void {
    this.#undurable--;
    this.#characters -= sizeOf(unit.appends);
  }

  #retry(units: Unit[], parcel: Parcel, group: Group, cause: unknown): void {
    this.#again(units, cause, () => this.#write(units, parcel, group));
  }

  /** Retries after a growing pause; a failure that lasts makes the writer degraded. */
  #again(units: Unit[], cause: unknown, attempt: () => void): void {
    const { clock } = this.#parts;
    this.#retries++;
    this.#reason = messageOf(cause);
    this.#failingSince ??= clock.now();
    this.#backoff = Math.min(LONGEST_RETRY, Math.max(FIRST_RETRY, this.#backoff * 2));
    if (!this.#degraded && clock.now() - this.#failingSince >= DEGRADED_AFTER) {
      this.#degraded = true;
      this.#tellState();
    }
    clock.after(this.#backoff, () => {
      if (this.#inFlight === units) attempt();
    });
  }

  #ask(units: Unit[], parcel: Parcel, group: Group, cause: unknown): void {
    const { driver } = this.#parts;
    if (driver.outcome === undefined) {
      this.#fail(cause);
      return;
    }
    driver.outcome(group, (result) => {
      if (this.#inFlight !== units || this.#closed || this.#failure !== undefined) return;
      if (result === "not_committed") this.#write(units, parcel, group);
      else if (result !== undefined) this.#written(units, parcel, group, result);
      else this.#again(units, cause, () => this.#ask(units, parcel, group, cause));
    });
  }

  #now(): number {
    const { stopwatch, clock } = this.#parts;
    return stopwatch === undefined ? clock.now() : stopwatch();
  }

  #well(): void {
    this.#backoff = 0;
    this.#failingSince = undefined;
    this.#reason = undefined;
    if (!this.#degraded) return;
    this.#degraded = false;
    this.#tellState();
  }

  #fail(cause: unknown): void {
    this.#failure = storeFailed(cause);
    this.#degraded = false;
    this.#giveUp(this.#failure);
    this.#tellState();
  }

  /** No waiting unit becomes durable. */
  #giveUp(error: Error): void {
    const units = [...(this.#inFlight ?? []), ...this.#queue];
    this.#inFlight = undefined;
    this.#queue = [];
    this.#undurable = 0;
    this.#characters = 0;
    const told = new Set<object>();
    for (const unit of units) {
      if (unit.owner === undefined) unit.refused(error, []);
      else if (!told.has(unit.owner)) {
        told.add(unit.owner);
        unit.refused(
          error,
          units.filter((other) => other.owner === unit.owner && other !== unit),
        );
      }
    }
    this.#tellBelow();
  }

  #tellBelow(): void {
    const due = this.#onBelow.filter(({ most }) => this.#undurable <= most);
    this.#onBelow = this.#onBelow.filter(({ most }) => this.#undurable > most);
    for (const { resolve } of due) resolve();
  }

  #tellState(): void {
    for (const listener of this.#stateListeners) listener();
  }
}

const NO_ROWS: readonly RowWrite[] = [];

type Committal = Extract<GroupResult, { kind: "committed" }>;

function sizeOf(appends: readonly Append[]): number {
  let size = 0;
  for (const { data } of appends) size += data.length;
  return size;
}
