/**
 * How a store fails, beside what the port itself declares. Every class has a stable `code`; callers decide by the code
 * or the class, never by the text.
 */
export { StoreBusyError, StoreClosedError, StoreFailedError } from "../journal/ports.js";

/** The batch makes no sense to this store, whatever is stored: a mistake in the calling code. Nothing was written. */
export class InvalidBatchError extends Error {
  override readonly name = "InvalidBatchError";
  readonly code = "invalid_batch";
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

/** The file cannot be read as it should be. It was not changed. */
export class StoreDamagedError extends Error {
  override readonly name = "StoreDamagedError";
  readonly code = "store_damaged";
  constructor(file: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      `${file} is damaged (${reason}): put a copy of it back, without the files ${file}-wal and ${file}-shm ` +
        "that are there now, or use another data directory",
      { cause },
    );
  }
}

/** The file is not one that this version of Mailroom can work with. It was not changed. */
export class StoreVersionError extends Error {
  override readonly name = "StoreVersionError";
  readonly code = "store_version";
}
