import { MailroomError } from "../../base/index.js";
import {
  type Batch,
  type Group,
  type GroupResult,
  RowConflictError,
  type StoreDriver,
} from "../../journal/index.js";
import type { PreparedWrite } from "../table-set.js";
import { type Database, SqliteError } from "./driver.js";
import type { Journals } from "./journals.js";
import type { Undo } from "./undo.js";

/** Result of one batch: the positions of its appends, or why it was rejected. */
type Outcome = readonly number[] | Error;

export interface GroupParts {
  readonly db: Database;
  readonly journals: Journals;
  readonly handlers: ReadonlyMap<string, PreparedWrite>;
  readonly undo: Undo;
  /** @throws when the file is no longer the one that was opened */
  readonly checkFile: () => void;
  /** Called at the start of every transaction. */
  readonly begin: () => void;
  /** Called after every transaction that is durable. */
  readonly committed: () => void;
}

/**
 * Writes groups: one transaction each, on the calling thread. A rejected batch is rolled back alone; a failure of the
 * database rolls back the whole group, and is either transient or final for this connection.
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

  /** Why a batch is invalid, whatever is stored. */
  invalid({ appends, rows }: Batch): MailroomError | undefined {
    for (const { journal, expected, count } of appends) {
      if (!Number.isSafeInteger(expected) || expected < 0 || !Number.isSafeInteger(count) || count < 1) {
        return new MailroomError(
          "invalid_batch",
          `an append of ${count} entries after number ${expected} of ${journal}`,
        );
      }
    }
    for (const { kind } of rows ?? []) {
      if (!this.#parts.handlers.has(kind)) {
        return new MailroomError("invalid_batch", `this store has no handler for "${kind}"`);
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
      // A batch alone in its transaction needs no savepoint: if it is rejected, nothing is left to commit.
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

  /** @throws failures of the database, as opposed to the batch */
  #attempt(batch: Batch): Outcome {
    const invalid = this.invalid(batch);
    if (invalid !== undefined) return invalid;
    const { journals, handlers } = this.#parts;
    try {
      const positions = batch.appends.map((append) => journals.append(append));
      for (const row of batch.rows ?? []) {
        try {
          handlers.get(row.kind)?.execute(row);
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
    // Some SQLite errors have already ended the transaction.
    if (this.#parts.db.inTransaction) this.#sql.rollback.run();
    this.#parts.undo.backTo(0);
  }

  /**
   * A lock of another connection and a full disk are transient, and the transaction has certainly written nothing.
   * After any other failure a retry proves nothing: a kernel that failed an fsync may have dropped the pages, so a
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
 * Whether a failure is the database's, not one batch's. An existing position or journal counts as the database's:
 * another process writes, and the cached state cannot be trusted.
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
