/** The one place where the driver is imported as a value. */
import Driver from "better-sqlite3";

export type Database = Driver.Database;

export const SqliteError = Driver.SqliteError;
export type SqliteError = InstanceType<typeof SqliteError>;

export interface ConnectionOptions {
  /** How long SQLite waits, blocking, for another connection that is in the way. */
  readonly busyTimeout: number;
  /** Leaves the file as it is, whatever is done. */
  readonly readonly?: boolean;
}

export function openDatabase(path: string, { busyTimeout, readonly = false }: ConnectionOptions): Database {
  return new Driver(path, { timeout: busyTimeout, readonly });
}
