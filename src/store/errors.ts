/**
 * How a store fails, beside the two refusals that the port itself declares (StaleAppendError, RowConflictError).
 * Every class has a stable `code`; callers decide by the code or the class, never by the text.
 */

/** The batch makes no sense to this store, whatever is stored: a mistake in the calling code. Nothing was written. */
export class InvalidBatchError extends Error {
  override readonly name = "InvalidBatchError";
  readonly code = "invalid_batch";
}

/** Too much waits to be written. Nothing of this batch was written; try again later or shed load. */
export class StoreBusyError extends Error {
  override readonly name = "StoreBusyError";
  readonly code = "store_busy";
  constructor(waiting: string) {
    super(`the store has ${waiting} waiting to be written and takes no more: try again later`);
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

/**
 * The disk or the database failed under a batch that was in order.
 *
 * `outcome` says what became of the batch: `not_committed` is certain; with `unknown` the failure came while the
 * commit itself was being made durable, and only reading the journal after reopening can tell.
 * `final` says whether the store refuses everything from now on until it is opened again.
 */
export class StoreFailureError extends Error {
  override readonly name = "StoreFailureError";
  readonly code = "store_failure";
  readonly outcome: "not_committed" | "unknown";
  readonly final: boolean;
  constructor(
    reason: string,
    options: { outcome: "not_committed" | "unknown"; final: boolean; cause?: unknown },
  ) {
    super(
      `the store could not write: ${reason}. ${
        options.outcome === "unknown"
          ? "It is not known whether the batch was kept. "
          : "Nothing of the batch was kept. "
      }${options.final ? "Open the store again to go on." : "Mend the cause and try again."}`,
      { cause: options.cause },
    );
    this.outcome = options.outcome;
    this.final = options.final;
  }
}

/** Who holds a data directory. `started` is the start of the process, as an ISO 8601 time. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly started: string;
}

/** Another process (or another store in this one) works on the same data. */
export class StoreLockedError extends Error {
  override readonly name = "StoreLockedError";
  readonly code = "store_locked";
  readonly lock: string;
  /** Absent when the holder has not written its name yet. */
  readonly holder: LockHolder | undefined;
  constructor(lock: string, holder: LockHolder | undefined) {
    const who = holder
      ? `process ${holder.pid} on ${holder.host}, started ${holder.started}`
      : "a process that has not given its name";
    super(`${lock} is held by ${who}: stop it first, or use another data directory`);
    this.lock = lock;
    this.holder = holder;
  }
}

/** There is no directory to keep the data in, and none can be made. */
export class StoreDirectoryError extends Error {
  override readonly name = "StoreDirectoryError";
  readonly code = "store_directory";
  constructor(directory: string, cause: unknown) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    const what =
      code === "EEXIST" || code === "ENOTDIR"
        ? "is a file, or lies below one"
        : `cannot be made (${code}): this user may not write there, or the disk does not allow it`;
    super(`the data directory ${directory} ${what}; use another data directory`, { cause });
  }
}

/** The file is not one that this version of Mailroom can work with. It was not changed. */
export class StoreVersionError extends Error {
  override readonly name = "StoreVersionError";
  readonly code = "store_version";
}
