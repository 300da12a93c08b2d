import { type Batch, type Committed, RowConflictError } from "../../engine/ports.js";
import { InvalidBatchError, StoreBusyError, StoreFailureError } from "../errors.js";
import { type Database, SqliteError } from "./driver.js";
import type { Journals } from "./journals.js";
import type { WriteHandler } from "./room.js";

export interface GroupLimits {
  /** Appends (and row writes) that may wait before `commit` is refused. */
  readonly maxQueuedAppends: number;
  /** Characters of journal data that may wait before `commit` is refused. */
  readonly maxQueuedData: number;
  /** What goes into one transaction: enough to make the fsync cheap, little enough to keep the event loop alive. */
  readonly maxGroupAppends: number;
  readonly maxGroupData: number;
}

interface Waiting {
  readonly batch: Batch;
  readonly weight: number;
  readonly size: number;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (error: unknown) => void;
}

/** What became of one batch of a group: committed at a position, or refused. */
type Outcome = { readonly position: number } | { readonly error: unknown };

/** Says that a refused batch had written something already, so the group has to be done again with savepoints. */
const REDO = Symbol("redo");

/**
 * Group commit: the batches that arrive within one turn of the event loop share a transaction, and so an fsync.
 *
 * A group is first tried without savepoints. A batch that is refused before it wrote anything (a stale append,
 * usually) is simply left out. Only if one is refused half way is everything rolled back and done again with a
 * savepoint around each batch: nobody pays for savepoints but those groups.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #journals: Journals;
  readonly #handlers: ReadonlyMap<string, WriteHandler>;
  readonly #limits: GroupLimits;
  readonly #sql: ReturnType<typeof prepareTransactionControl>;
  #queue: Waiting[] = [];
  #queuedWeight = 0;
  #queuedSize = 0;
  #scheduled = false;
  #failure: StoreFailureError | undefined;

  constructor(
    db: Database,
    journals: Journals,
    handlers: ReadonlyMap<string, WriteHandler>,
    limits: GroupLimits,
  ) {
    this.#db = db;
    this.#journals = journals;
    this.#handlers = handlers;
    this.#limits = limits;
    this.#sql = prepareTransactionControl(db);
  }

  commit(batch: Batch): Promise<Committed> {
    const refusal = this.#refusal(batch);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const weight = weightOf(batch);
      const size = sizeOf(batch);
      this.#queue.push({ batch, weight, size, resolve, reject });
      this.#queuedWeight += weight;
      this.#queuedSize += size;
      this.#schedule();
    });
  }

  isFull(weight: number, size: number): boolean {
    // A batch that finds the queue empty is always let in, however large: otherwise it could never be written.
    if (this.#queue.length === 0) return false;
    const { maxQueuedAppends, maxQueuedData } = this.#limits;
    return this.#queuedWeight + weight > maxQueuedAppends || this.#queuedSize + size > maxQueuedData;
  }

  /** Throws when the disk failed before: whoever writes past `commit` has to ask first. */
  assertWritable(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Commits all that waits, now. */
  flush(): void {
    while (this.#queue.length > 0) this.#commitGroup();
  }

  /** Why a batch cannot even wait. */
  #refusal(batch: Batch): Error | undefined {
    if (this.#failure !== undefined) return this.#failure;
    for (const { journal, expected, count } of batch.appends) {
      if (!Number.isSafeInteger(expected) || expected < 0 || !Number.isSafeInteger(count) || count < 1) {
        return new InvalidBatchError(`an append of ${count} entries after number ${expected} of ${journal}`);
      }
    }
    for (const { kind } of batch.rows ?? []) {
      if (!this.#handlers.has(kind)) return new InvalidBatchError(`this store has no room for "${kind}"`);
    }
    if (!this.isFull(weightOf(batch), sizeOf(batch))) return undefined;
    return new StoreBusyError(`${this.#queuedWeight} writes with ${this.#queuedSize} characters`);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#queue.length === 0) return;
      this.#commitGroup();
      // One transaction per turn: sockets and timers get their share of the loop between two groups.
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #takeGroup(): Waiting[] {
    let weight = 0;
    let size = 0;
    let end = 0;
    for (const waiting of this.#queue) {
      weight += waiting.weight;
      size += waiting.size;
      if (end > 0 && (weight > this.#limits.maxGroupAppends || size > this.#limits.maxGroupData)) {
        weight -= waiting.weight;
        size -= waiting.size;
        break;
      }
      end += 1;
    }
    this.#queuedWeight -= weight;
    this.#queuedSize -= size;
    if (end < this.#queue.length) return this.#queue.splice(0, end);
    const group = this.#queue;
    this.#queue = [];
    return group;
  }

  #commitGroup(): void {
    const group = this.#takeGroup();
    const before = this.#journals.position;
    let outcomes: Outcome[];
    let committing = false;
    const commit = (): void => {
      committing = true;
      this.#sql.commit.run();
    };
    try {
      try {
        outcomes = this.#attempt(group, commit);
      } catch (error) {
        if (error !== REDO) throw error;
        this.#rollBack(group, before);
        outcomes = this.#attemptWithSavepoints(group, commit);
      }
    } catch (cause) {
      this.#fail(group, before, cause, committing);
      return;
    }
    for (let index = 0; index < group.length; index += 1) {
      const waiting = group[index];
      const outcome = outcomes[index];
      if (waiting === undefined || outcome === undefined) continue;
      if ("error" in outcome) waiting.reject(outcome.error);
      else waiting.resolve(outcome);
    }
  }

  #attempt(group: readonly Waiting[], commit: () => void): Outcome[] {
    this.#sql.begin.run();
    const outcomes: Outcome[] = [];
    const progress = { touched: false };
    for (const { batch } of group) {
      progress.touched = false;
      try {
        outcomes.push(this.#carryOut(batch, progress));
      } catch (error) {
        if (isStoreFailure(error)) throw error;
        if (progress.touched) throw REDO;
        outcomes.push({ error });
      }
    }
    commit();
    return outcomes;
  }

  #attemptWithSavepoints(group: readonly Waiting[], commit: () => void): Outcome[] {
    this.#sql.begin.run();
    const outcomes: Outcome[] = [];
    for (const { batch } of group) {
      const before = this.#journals.position;
      this.#sql.savepoint.run();
      try {
        outcomes.push(this.#carryOut(batch, { touched: false }));
      } catch (error) {
        if (isStoreFailure(error)) throw error;
        this.#sql.rollBackToSavepoint.run();
        this.#forget(batch);
        this.#journals.resetPosition(before);
        outcomes.push({ error });
      }
      this.#sql.release.run();
    }
    commit();
    return outcomes;
  }

  #carryOut(batch: Batch, progress: { touched: boolean }): Committed {
    for (const append of batch.appends) {
      const state = this.#journals.check(append);
      progress.touched = true;
      this.#journals.append(append, state);
    }
    if (batch.rows !== undefined) {
      for (const row of batch.rows) {
        progress.touched = true;
        try {
          this.#handlers.get(row.kind)?.carryOut(row);
        } catch (error) {
          throw isConstraint(error) ? new RowConflictError(row.kind, error.message) : error;
        }
      }
    }
    return { position: this.#journals.position };
  }

  #rollBack(group: readonly Waiting[], position: number): void {
    // Some errors of SQLite have ended the transaction already.
    if (this.#db.inTransaction) this.#sql.rollback.run();
    this.#journals.resetPosition(position);
    for (const { batch } of group) this.#forget(batch);
  }

  #forget(batch: Batch): void {
    for (const { journal } of batch.appends) this.#journals.forget(journal);
  }

  /**
   * The transaction itself failed. If it certainly left nothing behind and the cause may pass (disk full, another
   * connection in the way), later batches are tried afresh. After anything else nothing is written any more until
   * the store is opened again: a kernel that failed an fsync may have dropped the pages, so a second attempt on the
   * same file could succeed without the data being there.
   */
  #fail(group: readonly Waiting[], position: number, cause: unknown, committing: boolean): void {
    let passing = cause instanceof SqliteError && /^SQLITE_(FULL|BUSY)/.test(cause.code);
    try {
      this.#rollBack(group, position);
    } catch {
      passing = false;
    }
    const reason = cause instanceof SqliteError ? `${cause.message} (${cause.code})` : String(cause);
    const failure = new StoreFailureError(reason, {
      outcome: committing && !passing ? "unknown" : "not_committed",
      final: !passing,
      cause,
    });
    for (const { reject } of group) reject(failure);
    if (passing) return;
    this.#failure = new StoreFailureError(reason, { outcome: "not_committed", final: true, cause });
    for (const { reject } of this.#queue) reject(this.#failure);
    this.#queue = [];
    this.#queuedWeight = 0;
    this.#queuedSize = 0;
  }
}

function weightOf(batch: Batch): number {
  return Math.max(1, batch.appends.length + (batch.rows?.length ?? 0));
}

function sizeOf(batch: Batch): number {
  let size = 0;
  for (const { data } of batch.appends) size += data.length;
  return size;
}

function isConstraint(error: unknown): error is SqliteError {
  return error instanceof SqliteError && error.code.startsWith("SQLITE_CONSTRAINT");
}

/** Tells the database's own failures from mistakes in one batch, which concern nobody else. */
function isStoreFailure(error: unknown): boolean {
  return error instanceof SqliteError && !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)/.test(error.code);
}

function prepareTransactionControl(db: Database) {
  return {
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    savepoint: db.prepare("SAVEPOINT batch"),
    rollBackToSavepoint: db.prepare("ROLLBACK TO batch"),
    release: db.prepare("RELEASE batch"),
  };
}
