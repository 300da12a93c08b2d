/**
 * The one way to the disk. Units wait in order, those that arrive together share a transaction, and a unit that was
 * handed over stays until it is durable or the store refuses it for good. A passing failure is retried with everything
 * it carried; nothing that is known is thrown away.
 */
import { merge, type Parcel, type StoredRow, separate } from "./parcel.js";
import {
  type Append,
  type Batch,
  type Clock,
  type Committed,
  type Group,
  type GroupResult,
  type Loop,
  type RowWrite,
  StoreBusyError,
  StoreClosedError,
  type StoreDriver,
  StoreFailedError,
} from "./ports.js";

/** One decision on its way to the disk. */
export interface Unit {
  readonly appends: readonly Append[];
  readonly rows: readonly RowWrite[];
  /** Units of one owner depend on each other: when one is refused, those behind it are withdrawn. */
  readonly owner?: object | undefined;
  /** What the text of its one append says, for those who would parse it. */
  readonly entries?: readonly object[] | undefined;
  /** It is durable. `position` is that of its last append. */
  durable(position: number): void;
  /** It will never be written; nor will the later units of its owner, which are handed back in order. */
  refused(error: Error, later: readonly Unit[]): void;
}

export type { StoredRow };

/**
 * Told of what one group has stored, in commit order. `before` is the newest position until then: whoever has seen
 * everything up to it misses nothing.
 */
export type RowListener = (rows: readonly StoredRow[], before: number) => void;

export interface WriterLimits {
  /** Units that may wait. */
  readonly units: number;
  /** Characters of journal data that may wait. */
  readonly characters: number;
  /** What goes into one transaction: enough to make the sync cheap, little enough to keep the event loop alive. */
  readonly groupWrites: number;
  readonly groupCharacters: number;
  /** How large a row may get by appends of one journal that meet in one group. 0: each append is a row. */
  readonly rowCharacters: number;
}

export const DEFAULT_WRITER_LIMITS: WriterLimits = {
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
  /** The newest position in the store when the writer begins. */
  readonly position?: number;
}

/** How the writer is doing, for health and metrics. */
export interface WriterHealth {
  readonly state: "open" | "degraded" | "failed" | "closed";
  /** Units that are not durable yet. */
  readonly waiting: number;
  readonly characters: number;
  /** Attempts that were repeated, ever. */
  readonly retries: number;
  /** Milliseconds since the epoch, while nothing can be written. */
  readonly since?: number;
  readonly reason?: string;
}

/** A failure that lasts longer than this shows: no turn starts, and the doors push back. */
const DEGRADED_AFTER = 250;
const FIRST_RETRY = 10;
const LONGEST_RETRY = 1_000;
/** New posts leave this share of the queue to what is already known. */
const POST_SHARE = 0.75;

export class Writer {
  readonly #parts: WriterParts;
  readonly #limits: WriterLimits;
  readonly #rowListeners = new Set<RowListener>();
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
  #failure: StoreFailedError | undefined;
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

  /** Position of the newest row that this writer knows to be durable. */
  get position(): number {
    return this.#position;
  }

  /** Nothing could be written for longer than a moment. */
  get degraded(): boolean {
    return this.#degraded;
  }

  /** Failed or closed: nothing will be durable any more. */
  get ended(): boolean {
    return this.#closed || this.#failure !== undefined;
  }

  get failure(): StoreFailedError | undefined {
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

  /** Told of stored rows after their units were. */
  onRows(listener: RowListener): () => void {
    this.#rowListeners.add(listener);
    return () => this.#rowListeners.delete(listener);
  }

  /** Told when the writer becomes degraded, is well again, or has failed. */
  onState(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Whether a new post would be refused: results of what is under way may use the rest of the room. */
  isFull(characters = 0): boolean {
    if (this.#undurable === 0) return false;
    const { units, characters: most } = this.#limits;
    return this.#undurable >= units * POST_SHARE || this.#characters + characters > most * POST_SHARE;
  }

  /** @throws StoreBusyError, StoreFailedError, StoreClosedError when nothing new may be handed over now */
  admit(characters = 0): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#closed) throw new StoreClosedError();
    if (this.#degraded)
      throw new StoreBusyError(`the store cannot be written at the moment (${this.#reason})`);
    if (this.isFull(characters)) {
      throw new StoreBusyError(`${this.#undurable} writes with ${this.#characters} characters wait already`);
    }
  }

  /**
   * Makes a batch durable that belongs to no aggregate in memory. A `post` is refused when there is no room or the
   * store cannot be written; a `result` says what is known already, and waits.
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

  /** Hands a unit over for good. */
  push(unit: Unit): void {
    if (this.#failure !== undefined || this.#closed) {
      const error = this.#failure ?? new StoreClosedError();
      this.#parts.loop.micro(() => unit.refused(error, []));
      return;
    }
    this.#queue.push(unit);
    this.#undurable++;
    this.#characters += sizeOf(unit.appends);
    this.#schedule();
  }

  /** Resolves when nothing waits any more; at once if the store has failed. */
  drained(): Promise<void> {
    return this.below(0);
  }

  /** Resolves when at most so many units wait; for loops that write much by themselves. */
  below(most: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#undurable <= most || this.#failure !== undefined || this.#closed) resolve();
      else this.#onBelow.push({ most, resolve });
    });
  }

  /** Nothing is taken or written any more. What waits is refused: `drained` first. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#giveUp(new StoreClosedError());
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

  /** Together in one batch; or, after a refusal, each unit by itself so that only the culprit is left out. */
  #send(units: Unit[], together: boolean): void {
    this.#inFlight = units;
    const parcel = together ? merge(units, this.#limits.rowCharacters) : separate(units);
    const group: Group = { seq: ++this.#seq, batches: parcel.batches };
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
    // Scheduled before anybody is told: what they add joins the next group, and it is due at once.
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
    if (this.#rowListeners.size > 0) {
      const stored = parcel.rows.filter(({ position }) => position > 0);
      if (stored.length > 0) for (const listener of this.#rowListeners) listener(stored, before);
    }
    if (this.#onBelow.length > 0) this.#tellBelow();
  }

  /** Takes out of the queue what depends on something that was refused. */
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

  /** After a pause that grows while it fails; what lasts longer than a moment shows. */
  #again(units: Unit[], cause: unknown, attempt: () => void): void {
    const { clock } = this.#parts;
    this.#retries++;
    this.#reason = cause instanceof Error ? cause.message : String(cause);
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

  #well(): void {
    this.#backoff = 0;
    this.#failingSince = undefined;
    this.#reason = undefined;
    if (!this.#degraded) return;
    this.#degraded = false;
    this.#tellState();
  }

  #fail(cause: unknown): void {
    this.#failure = new StoreFailedError(cause);
    this.#degraded = false;
    this.#giveUp(this.#failure);
    this.#tellState();
  }

  /** No unit that waits will ever be durable. */
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
