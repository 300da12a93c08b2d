import { type Database, SqliteError } from "./driver.js";

/** Pages freed per step: 1 MB, a few milliseconds. */
const PAGES_PER_STEP = 128;

export interface Reclaimed {
  /** Bytes by which the file became smaller. */
  readonly bytes: number;
}

export async function reclaimSpace(db: Database, mayGoOn: () => boolean): Promise<Reclaimed> {
  const pageSize = readNumber(db, "page_size");
  const before = readNumber(db, "page_count");
  let after = before;
  try {
    while (mayGoOn() && readNumber(db, "freelist_count") > 0) {
      // Not `pragma()`, which would step the statement once and so free one page.
      db.exec(`PRAGMA incremental_vacuum(${PAGES_PER_STEP})`);
      after = readNumber(db, "page_count");
      await new Promise((resume) => setImmediate(resume));
    }
    // The file itself shrinks with a checkpoint.
    if (mayGoOn()) db.pragma("wal_checkpoint(TRUNCATE)");
  } catch (error) {
    // Another connection holds the lock, or the disk is full: the next call frees the rest.
    if (!(error instanceof SqliteError && /^SQLITE_(BUSY|LOCKED|FULL)/.test(error.code))) throw error;
  }
  return { bytes: Math.max(0, before - after) * pageSize };
}

function readNumber(db: Database, pragma: string): number {
  return Number(db.pragma(pragma, { simple: true }));
}
