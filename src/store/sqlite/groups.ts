import {
  type Batch,
  type Group,
  type GroupResult,
  RowConflictError,
  type StoreDriver,
} from "../../journal/ports.js";
import { InvalidBatchError } from "../errors.js";
import { type Database, SqliteError } from "./driver.js";
import type { Journals } from "./journals.js";
import type { WriteHandler } from "./room.js";
import type { Undo } from "./undo.js";

/** What became of one batch: the positions of its appends, or why it was refused. */
type Outcome = readonly number[] | Error;

export interface GroupParts {
  readonly db: Database;
  readonly journals: Journals;
  readonly handlers: ReadonlyMap<string, WriteHandler>;
  readonly undo: Undo;
  /** @throws when the file is no longer the one that was opened */
  readonly checkFile: () => void;
  /** Called first in every transaction. */
  readonly begin: () => void;
  /** Called after every transaction that is durable. */
  readonly committed: () => void;
}

/**
 * Writes groups: one transaction each, on the calling thread. A batch that is refused is undone alone; a failure of
 * the database undoes the whole group, and is either one that may pass or the end of this connection.
 */
export class SqliteGroups implements StoreDriver {
  readonly #parts: GroupParts;
  readonly #sql: ReturnType<typeof prepareTransactionControl>;

  constructor(parts: GroupParts) {
    this.#parts = parts;
    this.#sql = prepareTransactionControl(parts.db);
  }

  write(group: Group, done: (result: GroupResult) => void): void {
    done(this.#write(group.batches));
  }

  /** Why a batch makes no sense to this store, whatever is stored. */
  invalid({ appends, rows }: Batch): InvalidBatchError | undefined {
    for (const { journal, expected, count } of appends) {
      if (!Number.isSafeInteger(expected) || expected < 0 || !Number.isSafeInteger(count) || count < 1) {
        return new InvalidBatchError(`an append of ${count} entries after number ${expected} of ${journal}`);
      }
    }
    for (const { kind } of rows ?? []) {
      if (!this.#parts.handlers.has(kind)) {
        return new InvalidBatchError(`this store has no room for "${kind}"`);
      }
    }
    return undefined;
  }

  #write(batches: readonly Batch[]): GroupResult {
    try {
      this.#parts.checkFile();
      this.#sql.begin.run();
      this.#parts.begin();
      const before = this.#parts.journals.position;
      const outcomes = this.#attemptAll(batches);
      // A batch that has the transaction to itself needs no savepoint: if it is refused, nothing is left to keep.
      if (batches.length === 1 && outcomes[0] instanceof Error) this.#rollBack();
      else this.#commit();
      return { kind: "committed", outcomes, before };
    } catch (cause) {
      return { kind: this.#fail(cause), cause };
    }
  }

  #attemptAll(batches: readonly Batch[]): Outcome[] {
    const [first, ...others] = batches;
    if (first !== undefined && others.length === 0) return [this.#attempt(first)];
    return batches.map((batch) => {
      const { mark } = this.#parts.undo;
      this.#sql.savepoint.run();
      const outcome = this.#attempt(batch);
      if (outcome instanceof Error) {
        this.#sql.rollBackToSavepoint.run();
        this.#parts.undo.backTo(mark);
      }
      this.#sql.release.run();
      return outcome;
    });
  }

  /** @throws what is wrong with the database and not with the batch */
  #attempt(batch: Batch): Outcome {
    const invalid = this.invalid(batch);
    if (invalid !== undefined) return invalid;
    const { journals, handlers } = this.#parts;
    try {
      const positions = batch.appends.map((append) => journals.append(append));
      for (const row of batch.rows ?? []) {
        try {
          handlers.get(row.kind)?.carryOut(row);
        } catch (error) {
          throw isConstraint(error) ? new RowConflictError(row.kind, error.message) : error;
        }
      }
      return positions;
    } catch (error) {
      if (isOfDatabase(error)) throw error;
      return error instanceof Error ? error : new Error(String(error), { cause: error });
    }
  }

  #commit(): void {
    this.#sql.commit.run();
    this.#parts.undo.clear();
    this.#parts.committed();
  }

  #rollBack(): void {
    // Some errors of SQLite have ended the transaction already.
    if (this.#parts.db.inTransaction) this.#sql.rollback.run();
    this.#parts.undo.backTo(0);
  }

  /**
   * Another connection in the way and a full disk pass, and the transaction has certainly left nothing behind. After
   * anything else a second attempt proves nothing: a kernel that failed a sync may have dropped the pages, and a
   * commit could succeed without the data being there.
   */
  #fail(cause: unknown): "transient" | "final" {
    try {
      this.#rollBack();
    } catch {
      return "final";
    }
    return cause instanceof SqliteError && /^SQLITE_(BUSY|LOCKED|FULL)/.test(cause.code)
      ? "transient"
      : "final";
  }
}

function isConstraint(error: unknown): error is SqliteError {
  return error instanceof SqliteError && error.code.startsWith("SQLITE_CONSTRAINT");
}

/**
 * Tells the database's own failures from mistakes in one batch, which concern nobody else. A position or a journal that
 * is there already is no such mistake: somebody else writes, and nothing in memory can be trusted.
 */
function isOfDatabase(error: unknown): boolean {
  const ofBatch = /^SQLITE_(CONSTRAINT_(?!PRIMARYKEY|UNIQUE)|MISMATCH|TOOBIG|RANGE)/;
  return error instanceof SqliteError && !ofBatch.test(error.code);
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
