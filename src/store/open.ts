import type { FullStore } from "./full-store.js";
import { openSqliteStore, type SqliteStoreOptions } from "./sqlite/open.js";

/** Where and how durably data is stored. */
export type StoreOptions = SqliteStoreOptions;

/**
 * Opens the store that the options describe, creating or migrating it as needed.
 * @throws MailroomError `store_directory` when the directory cannot be created
 * @throws MailroomError `store_locked` when another process holds it
 * @throws MailroomError `store_version` when the file belongs to another program or a newer version
 * @throws MailroomError `store_damaged` when the file is damaged
 * @example
 * const store = await openStore({ path: "./data/mailroom.db" });
 */
export function openStore(options: StoreOptions): Promise<FullStore> {
  return openSqliteStore(options);
}
