import { closeSync, existsSync, fsyncSync, openSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { makeDirectories } from "../../files/directories.js";
import type { Clock, Loop } from "../../journal/ports.js";
import { systemLoop, urgentClock } from "../../journal/system.js";
import type { WriterLimits } from "../../journal/writer.js";
import { StoreDamagedError, StoreDirectoryError, StoreVersionError } from "../errors.js";
import { type Database, openDatabase } from "./driver.js";
import { watchFile } from "./foreign.js";
import { acquireLock, type ProcessLock } from "./lock.js";
import { assertReadable, migrate } from "./migrate.js";
import type { Room } from "./room.js";
import { ROOMS } from "./rooms/index.js";
import { SqliteStore } from "./store.js";

/**
 * `fsync`: what was acknowledged survives the loss of power. `fast`: it survives the death of the process, but the
 * last moments may be lost with the machine; the file stays consistent either way.
 */
export type Durability = "fsync" | "fast";

export type SqliteStoreOptions = SqliteLocation & {
  /** Default `fsync`. */
  readonly durability?: Durability;
  /**
   * Refuses a second process (or a second store in this one) on the same data. Default true; false is for callers
   * that hold the lock already. A store in memory needs none.
   */
  readonly lock?: boolean;
  /** How much may wait, and how much goes into one transaction. */
  readonly writerLimits?: Partial<WriterLimits>;
  /** How many journals' last numbers are kept in memory. Default 20,000. */
  readonly cachedJournals?: number;
  /** How many rows and tasks wait in memory before they are added to their indexes. Default 1,024. */
  readonly indexBatch?: number;
  /** The rooms that have tables. Default: all that Mailroom has. */
  readonly rooms?: readonly Room[];
  /** Default: those of the process. */
  readonly clock?: Clock;
  readonly loop?: Loop;
};

/** Either a data directory, which is created with mode 0700 and holds `mailroom.db`, or the path of a file. */
export type SqliteLocation =
  | { readonly directory: string; readonly path?: never }
  /** `":memory:"` keeps nothing. */
  | { readonly path: string; readonly directory?: never };

/** How long opening waits for another connection. Writing does not: the writer tries again, and the loop goes on. */
const OPENING_PATIENCE = 1_000;

/**
 * Opens the store, creating or migrating it as needed.
 * @throws StoreDirectoryError when the directory cannot be made.
 * @throws StoreLockedError when another process holds it.
 * @throws StoreVersionError when the file is not ours or from a newer version.
 * @throws StoreDamagedError when the file cannot be read as it should be.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { durability = "fsync", rooms = ROOMS, clock = urgentClock, loop = systemLoop } = options;
  const place = locate(options);
  if (place.directory !== undefined) createDirectory(place.directory, durability);
  const lock: ProcessLock | undefined =
    place.lock !== undefined && (options.lock ?? true) ? acquireLock(place.lock) : undefined;
  const release = (): void => lock?.release();

  let db: Database | undefined;
  try {
    if (place.directory !== undefined) createPrivateFile(place.file);
    if (place.directory !== undefined) lookAt(place.file, rooms);
    db = openDatabase(place.file, { busyTimeout: OPENING_PATIENCE });
    assertReadable(db, rooms);
    configure(db, durability);
    migrate(db, rooms, () => clock.now());
    db.pragma("busy_timeout = 0");
    return new SqliteStore({
      db,
      rooms,
      clock,
      loop,
      writerLimits: options.writerLimits ?? {},
      cachedJournals: options.cachedJournals ?? 20_000,
      indexBatch: options.indexBatch ?? 1_024,
      checkFile: place.directory === undefined ? () => {} : watchFile(place.file, clock),
      release,
    });
  } catch (error) {
    db?.close();
    release();
    throw explained(place.file, error);
  }
}

/** Refuses what is not ours before a connection that may write has touched it: even the choice of a log changes it. */
function lookAt(file: string, rooms: readonly Room[]): void {
  if (statSync(file).size === 0) return;
  let db: Database | undefined;
  try {
    db = openDatabase(file, { busyTimeout: OPENING_PATIENCE, readonly: true });
    assertReadable(db, rooms);
  } catch (error) {
    // What a killed process left behind may have to be put in order first, which takes a connection that writes.
    if (!/^SQLITE_(READONLY|CANTOPEN)/.test(String(codeOf(error)))) throw error;
  } finally {
    db?.close();
  }
}

function explained(file: string, error: unknown): unknown {
  // A migration that failed says so, and why.
  const code = String(codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined));
  if (code === "SQLITE_NOTADB") {
    return new StoreVersionError(
      `${file} is not a database of Mailroom, or it is damaged: put a copy of it back, or use another data directory`,
      { cause: error },
    );
  }
  return /^SQLITE_(CORRUPT|IOERR_SHORT_READ)/.test(code) ? new StoreDamagedError(file, error) : error;
}

/**
 * Opens nothing, and makes nothing where nothing is.
 * @throws StoreLockedError when a process has the data of this directory open.
 */
export function assertNotLocked(directory: string): void {
  const { lock } = locate({ directory });
  if (lock !== undefined && existsSync(lock)) acquireLock(lock).release();
}

interface Place {
  readonly file: string;
  /** Absent in memory. */
  readonly directory?: string;
  readonly lock?: string;
}

function locate({ path, directory }: SqliteLocation): Place {
  if (path === ":memory:") return { file: path };
  if (path !== undefined) {
    const file = resolve(path);
    return { file, directory: dirname(file), lock: `${file}.lock` };
  }
  const root = resolve(directory);
  return { file: join(root, "mailroom.db"), directory: root, lock: join(root, "lock") };
}

/** Sets what a connection does not remember by itself. Runs on every open, before the first table is made. */
function configure(db: Database, durability: Durability): void {
  // These two must come before WAL, which writes the first page: after that they can no longer be chosen. Pages of
  // 8 kB make groups a fifth faster than SQLite's 4 kB, and next to a sync they cost a single append nothing; without
  // the sync a single append costs half as much again with them.
  db.pragma(`page_size = ${durability === "fsync" ? 8192 : 4096}`);
  db.pragma("auto_vacuum = INCREMENTAL");
  db.pragma("journal_mode = WAL");
  // Not stored in the file, and the driver's default for a WAL file that exists is NORMAL.
  db.pragma(`synchronous = ${durability === "fsync" ? "FULL" : "NORMAL"}`);
  db.pragma("cache_size = -32768");
  db.pragma("temp_store = MEMORY");
  db.pragma("trusted_schema = OFF");
  // The log is written back every 4 MB: with 16 MB the throughput is the same, but each time the event loop stands
  // still for four times as long. A log that a large transaction made longer than 64 MB is cut again.
  db.pragma("wal_autocheckpoint = 512");
  db.pragma("journal_size_limit = 67108864");
}

/** Decision A1: what is stored is for the owner's eyes. A directory that exists keeps the mode it has. */
function createDirectory(path: string, durability: Durability): void {
  const created = makeDirectory(path);
  // Windows has no way to sync a directory, and keeps its entries in a journal of its own.
  if (created === undefined || durability !== "fsync" || process.platform === "win32") return;
  // SQLite makes its files' entries durable, but not those of the directories above them.
  for (let child = path; child.length >= created.length; child = dirname(child)) {
    const parent = openSync(dirname(child), "r");
    try {
      fsyncSync(parent);
    } finally {
      closeSync(parent);
    }
  }
}

function makeDirectory(path: string): string | undefined {
  try {
    return makeDirectories(path, 0o700);
  } catch (error) {
    throw new StoreDirectoryError(path, error);
  }
}

/**
 * SQLite gives its log and index the mode of the database, so it is enough to make that one. A file that exists is
 * not even opened: closing it would drop the locks of a connection that this process may have.
 */
function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
