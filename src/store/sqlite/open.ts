import { closeSync, existsSync, fsyncSync, openSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Clock, MailroomError, urgentClock } from "../../base/index.js";
import { makeDirectories } from "../../base/node.js";
import type { Loop, WriterLimits } from "../../journal/index.js";
import { systemLoop } from "../../journal/index.js";
import { storeDamaged, storeDirectoryUnusable } from "../errors.js";
import { TABLE_SETS } from "../tables/all.js";
import { type Database, openDatabase } from "./driver.js";
import { watchFile } from "./foreign.js";
import { acquireLock, type ProcessLock } from "./lock.js";
import { assertReadable, migrate } from "./migrate.js";
import { SqliteStore } from "./store.js";

/**
 * `fsync`: acknowledged data survives a power failure. `fast`: it survives the end of the process, but a power failure
 * may lose the last moments. The file stays consistent either way.
 */
export type Durability = "fsync" | "fast";

export type SqliteStoreOptions = SqliteLocation & {
  /** Default `fsync`. */
  readonly durability?: Durability;
  /**
   * Excludes a second process, or a second store in this process, from the same data. Default true; false is for
   * callers that already hold the lock. A store in memory needs none.
   */
  readonly lock?: boolean;
  /** Limits of the write queue and of one transaction. */
  readonly writerLimits?: Partial<WriterLimits>;
  /** Number of journals whose last number is cached. Default 20,000. */
  readonly cachedJournals?: number;
  /** Number of rows, and of tasks, that wait in memory before they are added to their index. Default 1,024. */
  readonly indexBatch?: number;
  /** Default: that of the process. */
  readonly clock?: Clock;
  readonly loop?: Loop;
};

/** Either a data directory, which is created with mode 0700 and holds `mailroom.db`, or the path of a file. */
export type SqliteLocation =
  | { readonly directory: string; readonly path?: never }
  /** `":memory:"` stores nothing on disk. */
  | { readonly path: string; readonly directory?: never };

/** How long opening waits for another connection. Writing does not block: the writer retries. */
const OPENING_PATIENCE = 1_000;

/**
 * Opens the store, creating or migrating it as needed.
 * @throws MailroomError `store_directory` when the directory cannot be created
 * @throws MailroomError `store_locked` when another process holds it
 * @throws MailroomError `store_version` when the file belongs to another program or a newer version
 * @throws MailroomError `store_damaged` when the file is damaged
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { durability = "fsync", clock = urgentClock, loop = systemLoop } = options;
  const place = locate(options);
  if (place.directory !== undefined) createDirectory(place.directory, durability);
  const lock: ProcessLock | undefined =
    place.lock !== undefined && (options.lock ?? true) ? acquireLock(place.lock) : undefined;
  const release = (): void => lock?.release();

  let db: Database | undefined;
  try {
    if (place.directory !== undefined) createPrivateFile(place.file);
    if (place.directory !== undefined) lookAt(place.file);
    db = openDatabase(place.file, { busyTimeout: OPENING_PATIENCE });
    assertReadable(db, TABLE_SETS);
    configure(db, durability);
    migrate(db, TABLE_SETS, () => clock.now());
    db.pragma("busy_timeout = 0");
    return new SqliteStore({
      db,
      tableSets: TABLE_SETS,
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

/** Rejects a foreign file before a writing connection touches it: even choosing a journal mode changes the file. */
function lookAt(file: string): void {
  if (statSync(file).size === 0) return;
  let db: Database | undefined;
  try {
    db = openDatabase(file, { busyTimeout: OPENING_PATIENCE, readonly: true });
    assertReadable(db, TABLE_SETS);
  } catch (error) {
    // The log of a killed process may have to be recovered first, which takes a connection that writes.
    if (!/^SQLITE_(READONLY|CANTOPEN)/.test(String(codeOf(error)))) throw error;
  } finally {
    db?.close();
  }
}

function explained(file: string, error: unknown): unknown {
  // A failed migration has the original error as its cause.
  const code = String(codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined));
  if (code === "SQLITE_NOTADB") {
    return new MailroomError(
      "store_version",
      `${file} is not a Mailroom database, or it is damaged: restore a backup, or use another data directory`,
      { cause: error },
    );
  }
  return /^SQLITE_(CORRUPT|IOERR_SHORT_READ)/.test(code) ? storeDamaged(file, error) : error;
}

/**
 * Opens no database and creates no file.
 * @throws MailroomError `store_locked` when a process has the data of this directory open
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

/** Sets what is not stored in the file. Runs on every open, before the first table is created. */
function configure(db: Database, durability: Durability): void {
  // These two must come before WAL, which writes the first page and fixes them. Pages of 8 kB make groups a fifth
  // faster than SQLite's 4 kB and cost a synced single append nothing; a single append without a sync costs half as
  // much again with them.
  db.pragma(`page_size = ${durability === "fsync" ? 8192 : 4096}`);
  db.pragma("auto_vacuum = INCREMENTAL");
  db.pragma("journal_mode = WAL");
  // Not stored in the file, and the driver's default for a WAL file that exists is NORMAL.
  db.pragma(`synchronous = ${durability === "fsync" ? "FULL" : "NORMAL"}`);
  db.pragma("cache_size = -32768");
  db.pragma("temp_store = MEMORY");
  db.pragma("trusted_schema = OFF");
  // Checkpoint every 4 MB: with 16 MB the throughput is the same, but each checkpoint blocks the event loop four times
  // as long. A log that a large transaction made longer than 64 MB is truncated.
  db.pragma("wal_autocheckpoint = 512");
  db.pragma("journal_size_limit = 67108864");
}

/** Stored data is readable by its owner only (decision A1). An existing directory keeps its mode. */
function createDirectory(path: string, durability: Durability): void {
  const created = makeDirectory(path);
  // Windows cannot sync a directory and journals its entries itself.
  if (created === undefined || durability !== "fsync" || process.platform === "win32") return;
  // SQLite makes its files' directory entries durable, but not those of the directories above.
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
    throw storeDirectoryUnusable(path, error);
  }
}

/**
 * SQLite gives its log and index the mode of the database, so only that file is created here. An existing file is not
 * even opened: closing it would drop the locks of another connection of this process.
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
