import type { FullStore } from "./full-store.js";
import { openSqliteStore, type SqliteStoreOptions } from "./sqlite/open.js";

export type StoreOptions = SqliteStoreOptions;

/**
 * Opens the store that the options describe, creating or migrating it as needed.
 * @throws StoreDirectoryError when the directory cannot be made.
 * @throws StoreLockedError when another process holds it.
 * @throws StoreVersionError when the file is not ours or from a newer version.
 * @throws StoreDamagedError when the file cannot be read as it should be.
 */
export function openStore(options: StoreOptions): Promise<FullStore> {
  return openSqliteStore(options);
}
