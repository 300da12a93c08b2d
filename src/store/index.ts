/** The store room: see README.md for what it promises. */
export { createLocalBus, type LocalBusOptions } from "./bus.js";
export {
  type LockHolder,
  StoreBusyError,
  StoreDirectoryError,
  StoreFailureError,
  StoreLockedError,
} from "./errors.js";
export {
  assertNotLocked,
  type Durability,
  openSqliteStore,
  type SqliteLocation,
  type SqliteStoreOptions,
} from "./sqlite/open.js";
export type { Reclaimed } from "./sqlite/reclaim.js";
export type { SqliteInspection, SqliteStore } from "./sqlite/store.js";
