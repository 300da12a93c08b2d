/** The only file that imports the driver as a value. */
import Driver from "better-sqlite3";

export type Database = Driver.Database;

export const SqliteError = Driver.SqliteError;
export type SqliteError = InstanceType<typeof SqliteError>;

export interface ConnectionOptions {
  /** How long SQLite blocks while another connection holds the lock. */
  readonly busyTimeout: number;
  /** Never changes the file. */
  readonly readonly?: boolean;
}

export function openDatabase(path: string, { busyTimeout, readonly = false }: ConnectionOptions): Database {
  return new Driver(path, { timeout: busyTimeout, readonly });
}
