import type { InstanceId } from "../engine/index.js";
import type { JournalKey, RowWrite } from "../journal/index.js";
import type { Database } from "./database.js";

/** One step of a table set's schema. Steps are numbered 1, 2, 3 … and never change once released. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  /** A function where the statements depend on the stored schema. It runs in the same transaction. */
  readonly sql: string | ((db: Database) => void);
}

/** What the writes of a table set may use beside their own tables. */
export interface WriteContext {
  readonly db: Database;
  readonly journals: {
    /** The journal's internal number; undefined for a journal that does not exist. */
    idOf(journal: JournalKey): number | undefined;
    /** 0 for a journal that does not exist. */
    lastNumber(journal: JournalKey): number;
  };
  readonly removals: {
    remove(journal: JournalKey): void;
    /** Continues unfinished removals, as far as one transaction may. */
    continue(): void;
  };
  readonly taskList: {
    /** The number of the next task. Numbers are never reused. */
    nextNumber(): number;
    add(instance: InstanceId, key: JournalKey): void;
    remove(task: { readonly role: string; readonly instance: string; readonly key: string }): void;
  };
}

/**
 * Prepares its statements once and returns the function that executes a write within the batch's transaction. To
 * refuse a write, throw RowConflictError: the batch is rolled back. A write may be executed again after a rollback, so
 * it must affect nothing but the database.
 */
export type WriteHandler<Write extends RowWrite> = (context: WriteContext) => (write: Write) => void;

/** The part of the database that belongs to one module: its tables and the writes on them. */
export interface TableSet {
  /** Recorded with each applied migration; never changes once released. */
  readonly name: string;
  readonly migrations: readonly Migration[];
  prepareWrites(context: WriteContext): ReadonlyMap<string, PreparedWrite>;
}

export interface PreparedWrite {
  // A method, so that the handler of one kind is assignable: it receives only writes of the kind it is filed under.
  execute(write: RowWrite): void;
}

export function defineTableSet<Write extends RowWrite>(definition: {
  readonly name: string;
  readonly migrations: readonly Migration[];
  readonly writes: { readonly [Kind in Write["kind"]]: WriteHandler<Extract<Write, { kind: Kind }>> };
}): TableSet {
  return {
    name: definition.name,
    migrations: definition.migrations,
    prepareWrites(context) {
      const prepared = new Map<string, PreparedWrite>();
      for (const [kind, prepare] of Object.entries<WriteHandler<never>>(definition.writes)) {
        prepared.set(kind, { execute: prepare(context) });
      }
      return prepared;
    },
  };
}
