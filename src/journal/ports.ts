/**
 * The interfaces that the journal kernel requires. Other modules implement them. Nothing here names a database or
 * assumes dense positions or a single process.
 *
 * Terms
 * - journal: the append-only, densely numbered list of entries of one aggregate (numbers start at 1).
 * - append: entries that one decision adds to a journal. Appends that meet in one group may share a stored row.
 * - batch: appends and rows that become durable together or not at all.
 * - group: batches that share one transaction.
 * - position: the place of a stored row in the one global commit order. Positions grow; they need not be dense.
 */
import { MailroomError, messageOf } from "../base/index.js";

export type { Clock } from "../base/index.js";

/** Names a journal. For a task this is its internal key, a UUIDv7. */
export type JournalKey = string;

export interface Append {
  readonly journal: JournalKey;
  /** The journal's last number (0 for a new journal). */
  readonly expected: number;
  /** How many entries `data` holds; they get the numbers expected+1 … expected+count. */
  readonly count: number;
  /** The entries as the text of a JSON array. Serialized once, when they are decided. */
  readonly data: string;
}

/**
 * A change to a table of some module. The module declares the shape of its writes; the store implements each `kind`. An
 * unknown kind rejects the batch.
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

/** A piece of a snapshot, small enough to be written and read without blocking the event loop. */
export interface SnapshotPart {
  readonly name: string;
  readonly data: string;
}

export interface Snapshot {
  /** The journal number up to which the snapshot covers all entries. */
  readonly number: number;
  /** In the order of their names. */
  readonly parts: readonly SnapshotPart[];
}

/** A stored journal: its newest snapshot, and the rows with entries after it. */
export interface StoredJournal {
  readonly journal: JournalKey;
  readonly snapshot: Snapshot | undefined;
  readonly rows: readonly JournalRow[];
  /** The journal is large, and `rows` are only its first ones: read it in pages. */
  readonly more?: true;
}

/** One transaction. */
export interface Group {
  /** Counts the groups of one writer. */
  readonly seq: number;
  /** Each is atomic by itself: a refused batch is left out, and the others are kept. */
  readonly batches: readonly Batch[];
}

export type GroupResult =
  | {
      readonly kind: "committed";
      /** For each batch, the positions of its appends; or why it alone was refused. */
      readonly outcomes: readonly (readonly number[] | Error)[];
      /** The newest position before the group, if the store has it: other processes may also write. */
      readonly before?: number | undefined;
    }
  /** Nothing was written, and the cause may be temporary: busy, disk full, connection lost before the commit. */
  | { readonly kind: "transient"; readonly cause: unknown }
  /** The commit itself was interrupted: `outcome` has to be asked. */
  | { readonly kind: "unknown"; readonly cause: unknown }
  /** The store must be opened again before anything else is written. */
  | { readonly kind: "final"; readonly cause: unknown };

/** What a writer requires of a store. SQLite calls back synchronously, a remote database later. */
export interface StoreDriver {
  write(group: Group, done: (result: GroupResult) => void): void;
  /** After `unknown`: the result of the group; `undefined` if it cannot be determined now. */
  outcome?(group: Group, done: (result: GroupResult | "not_committed" | undefined) => void): void;
}

export interface Subscription {
  /** Resolves when every later notification reaches the handler. A bus between processes needs a moment for that. */
  readonly ready: Promise<void>;
  /** The handler is not called again. */
  close(): void;
}

/** Passes notifications between the parts of a mailroom. Nothing durable depends on them. */
export interface Bus {
  publish(channel: string, note: unknown): void;
  /** Handlers are called in order of publication. If one throws, the others still run. */
  subscribe(channel: string, handler: (note: unknown) => void): Subscription;
  close(): Promise<void>;
}

/** The event loop, so that a simulation can control every wait. */
export interface Loop {
  /** In a later turn of the event loop, after pending input and timers. */
  soon(callback: () => void): void;
  /** After the current callback, before anything else. */
  micro(callback: () => void): void;
}

/** Another writer appended first. The caller's state is out of date and must be reloaded. */
export class StaleAppendError extends MailroomError<"stale_append"> {
  override readonly name = "StaleAppendError";
  readonly journal: JournalKey;
  readonly expected: number;
  readonly actual: number;
  constructor(journal: JournalKey, expected: number, actual: number) {
    super(
      "stale_append",
      `journal ${journal} is at ${actual}, not at ${expected}: another process wrote to it`,
    );
    this.journal = journal;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The condition of a row write does not hold (a taken name, an exhausted counter). */
export class RowConflictError extends MailroomError<"row_conflict"> {
  override readonly name = "RowConflictError";
  readonly kind: string;
  readonly reason: string;
  constructor(kind: string, reason: string) {
    super("row_conflict", `${kind} refused: ${reason}`);
    this.kind = kind;
    this.reason = reason;
  }
}

/** The write queue is full, or the store accepts no writes at the moment. Nothing of the batch was written. */
export function storeBusy(reason: string): MailroomError {
  return new MailroomError("store_busy", `${reason}: retry later`);
}

export function storeClosed(): MailroomError {
  return new MailroomError("store_closed", "the store is closed: open it again to read or write");
}

/** The disk or the database failed: the store accepts no writes until it is opened again. */
export function storeFailed(cause: unknown): MailroomError {
  const message = `the store failed and accepts no writes: ${messageOf(cause)}; restart to continue from what is on disk`;
  return new MailroomError("store_failed", message, { cause });
}
