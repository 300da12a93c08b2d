/**
 * What the journal kernel asks of the world. Stores, buses and clocks outside implement these; nothing in here names a
 * database, and nothing assumes dense positions or a single process.
 *
 * Terms
 * - journal: the append-only, densely numbered list of entries of one aggregate (numbers start at 1).
 * - append: entries that one decision adds to a journal. Appends that meet in one group may share a stored row.
 * - batch: appends and rows that become durable together or not at all.
 * - group: batches that share one transaction.
 * - position: the place of a stored row in the one global commit order. Positions grow; they need not be dense.
 */

/** Names a journal. For a task this is its internal key, a UUIDv7. */
export type JournalKey = string;

export interface Append {
  readonly journal: JournalKey;
  /** The journal's last number as the writer knows it (0 for a journal that does not exist yet). */
  readonly expected: number;
  /** How many entries `data` holds; they get the numbers expected+1 … expected+count. */
  readonly count: number;
  /** The entries as the text of a JSON array. Serialized once, by whoever decided them. */
  readonly data: string;
}

/**
 * A change to a table that some module owns. The module declares the shape of its writes, the store knows how to
 * carry each `kind` out; a kind that the store does not know rejects the batch.
 */
export interface RowWrite {
  readonly kind: string;
}

export interface Batch {
  readonly appends: readonly Append[];
  readonly rows?: readonly RowWrite[];
}

export interface Committed {
  /** Position of the row with the batch's last append; of the newest row known to the writer if the batch had none. */
  readonly position: number;
}

export interface JournalRow {
  readonly journal: JournalKey;
  readonly first: number;
  readonly last: number;
  readonly position: number;
  readonly data: string;
}

/** A piece of a snapshot, small enough to be written and read without holding up the event loop. */
export interface SnapshotPart {
  readonly name: string;
  readonly data: string;
}

export interface Snapshot {
  /** The journal number up to which the snapshot has seen everything. */
  readonly number: number;
  /** In the order of their names. */
  readonly parts: readonly SnapshotPart[];
}

/** What is stored of one journal: its newest snapshot, and the rows with entries behind that. */
export interface StoredJournal {
  readonly journal: JournalKey;
  readonly snapshot: Snapshot | undefined;
  readonly rows: readonly JournalRow[];
}

/** One transaction. */
export interface Group {
  /** Counts the groups of one writer. */
  readonly seq: number;
  /** Each is all or nothing by itself: one that is refused is left out, and the others are kept. */
  readonly batches: readonly Batch[];
}

export type GroupResult =
  | {
      readonly kind: "committed";
      /** For each batch, the positions of its appends; or why it alone was refused. */
      readonly outcomes: readonly (readonly number[] | Error)[];
      /** The newest position before the group, where the store knows it: others may write, too. */
      readonly before?: number | undefined;
    }
  /** Certainly nothing was written, and the cause may pass: busy, disk full, connection lost before the commit. */
  | { readonly kind: "transient"; readonly cause: unknown }
  /** The commit itself was interrupted: `outcome` has to be asked. */
  | { readonly kind: "unknown"; readonly cause: unknown }
  /** Nothing can be trusted any more until the store is opened again. */
  | { readonly kind: "final"; readonly cause: unknown };

/** What a writer needs of a store. SQLite calls back at once, a database behind a network later. */
export interface StoreDriver {
  write(group: Group, done: (result: GroupResult) => void): void;
  /** After `unknown`: what became of the group; `undefined` if that cannot be learned now. */
  outcome?(group: Group, done: (result: GroupResult | "not_committed" | undefined) => void): void;
}

export interface Bus {
  publish(channel: string, note: unknown): void;
  /** Handlers are called in order of publication; one that throws disturbs nobody else. */
  subscribe(channel: string, handler: (note: unknown) => void): () => void;
  close(): Promise<void>;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels it. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** The event loop, so that a simulation can own every wait. */
export interface Loop {
  /** In a later turn of the event loop, after input and timers had their chance. */
  soon(callback: () => void): void;
  /** After what runs now, before anything else. */
  micro(callback: () => void): void;
}

/** Where new ids come from; a simulation hands in a seeded one. */
export interface Ids {
  /** A random UUID, for everything that goes on the wire. */
  uuid(): string;
  /** A time-ordered UUID, for keys that are indexed. */
  ordered(): string;
}

/** Something that went wrong where nobody waits for an answer. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly task?: JournalKey;
  readonly cause?: unknown;
}

/** Another writer was first. The caller's picture of the journal is out of date and must be read again. */
export class StaleAppendError extends Error {
  override readonly name = "StaleAppendError";
  readonly code = "stale_append";
  readonly journal: JournalKey;
  readonly expected: number;
  readonly actual: number;
  constructor(journal: JournalKey, expected: number, actual: number) {
    super(`journal ${journal} is at ${actual}, not at ${expected}: it was written by someone else`);
    this.journal = journal;
    this.expected = expected;
    this.actual = actual;
  }
}

/** A row write came with a condition that does not hold (a name that is taken, a counter that is used up). */
export class RowConflictError extends Error {
  override readonly name = "RowConflictError";
  readonly code = "row_conflict";
  readonly kind: string;
  readonly reason: string;
  constructor(kind: string, reason: string) {
    super(`${kind} refused: ${reason}`);
    this.kind = kind;
    this.reason = reason;
  }
}

/** Too much waits to be written, or nothing can be written for the moment. Nothing of this batch was written. */
export class StoreBusyError extends Error {
  override readonly name = "StoreBusyError";
  readonly code = "store_busy";
  constructor(reason: string) {
    super(`${reason}: try again later`);
  }
}

/** The store was closed. */
export class StoreClosedError extends Error {
  override readonly name = "StoreClosedError";
  readonly code = "store_closed";
  constructor() {
    super("the store is closed: open it again to read or write");
  }
}

/** The disk or the database failed for good: nothing is written any more until the store is opened again. */
export class StoreFailedError extends Error {
  override readonly name = "StoreFailedError";
  readonly code = "store_failed";
  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`the store failed and takes no more writes: ${reason}. Restart to go on from what is on disk`, {
      cause,
    });
  }
}
