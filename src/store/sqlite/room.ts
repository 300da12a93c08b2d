import type { RowWrite } from "../../engine/ports.js";
import type { Database } from "./driver.js";
import type { Journals } from "./journals.js";
import type { Removals } from "./removals.js";
import type { TaskList } from "./task-list.js";

/** One step of a room's schema. Steps are numbered 1, 2, 3 … and never changed once released. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  /** A function where the statements depend on what is there. It runs in the same transaction. */
  readonly sql: string | ((db: Database) => void);
}

/** What a room's writes may use beside its own tables. */
export interface RoomContext {
  readonly db: Database;
  readonly journals: Pick<Journals, "idOf" | "lastNumber">;
  readonly removals: Pick<Removals, "remove" | "goOn">;
  readonly taskList: Pick<TaskList, "nextNumber" | "add" | "remove">;
}

/**
 * Prepares its statements once, and hands back what carries a write out within the transaction of the batch.
 * To refuse, throw RowConflictError; the batch is then undone. A write may be carried out again after such an
 * undo, so it must have no effect but on the database.
 */
export type PrepareWrite<Write extends RowWrite> = (context: RoomContext) => (write: Write) => void;

/** The part of the database that belongs to one room: its tables and what may be done to them. */
export interface Room {
  readonly room: string;
  readonly migrations: readonly Migration[];
  /** Prepares every kind of write that the room knows. */
  prepareWrites(context: RoomContext): ReadonlyMap<string, WriteHandler>;
}

export interface WriteHandler {
  // A method, so that a handler of one kind fits here: the store hands it only writes of the kind it is filed under.
  carryOut(write: RowWrite): void;
}

export function defineRoom<Write extends RowWrite>(definition: {
  readonly room: string;
  readonly migrations: readonly Migration[];
  readonly writes: { readonly [Kind in Write["kind"]]: PrepareWrite<Extract<Write, { kind: Kind }>> };
}): Room {
  return {
    room: definition.room,
    migrations: definition.migrations,
    prepareWrites(context) {
      const handlers = new Map<string, WriteHandler>();
      for (const [kind, prepare] of Object.entries<PrepareWrite<never>>(definition.writes)) {
        handlers.set(kind, { carryOut: prepare(context) });
      }
      return handlers;
    },
  };
}
