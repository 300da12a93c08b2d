import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { isLockHolder, type LockHolder, storeLocked } from "../errors.js";
import { type Database, openDatabase, SqliteError } from "./driver.js";

export interface ProcessLock {
  release(): void;
}

/**
 * Acquires the lock at `path`, or throws `store_locked` at once.
 *
 * The lock must be the operating system's, so that it vanishes with the process, even after SIGKILL (decision C3). Node
 * cannot lock files, but SQLite does: an exclusive transaction on an empty database is a file lock (fcntl on Unix,
 * LockFileEx on Windows), and SQLite keeps two connections of one process apart as well.
 *
 * `path` must never be opened by anything else in this process: on Unix, closing any descriptor of a file drops all of
 * the process's locks on it. That is why the holder's name is in a separate file.
 */
export function acquireLock(path: string): ProcessLock {
  const db = openDatabase(path, { busyTimeout: 0 });
  const nameplate = `${path}.json`;
  try {
    db.exec("BEGIN EXCLUSIVE");
    writeNameplate(nameplate);
  } catch (error) {
    db.close();
    if (error instanceof SqliteError && error.code.startsWith("SQLITE_BUSY")) {
      throw storeLocked(path, readNameplate(nameplate));
    }
    throw error;
  }
  return { release: () => release(db, nameplate) };
}

function release(db: Database, nameplate: string): void {
  if (!db.open) return;
  // Remove the name before the lock: the next holder writes its own as soon as the lock is free.
  rmSync(nameplate, { force: true });
  db.close();
}

function writeNameplate(path: string): void {
  const holder: LockHolder = {
    pid: process.pid,
    host: hostname(),
    started: new Date(performance.timeOrigin).toISOString(),
  };
  // Written to a draft and renamed, so that a rejected process never reads half of it.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

function readNameplate(path: string): LockHolder | undefined {
  try {
    const holder: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isLockHolder(holder) ? holder : undefined;
  } catch {
    // Absent or damaged: the lock is still held, only the holder's name is unknown.
    return undefined;
  }
}
