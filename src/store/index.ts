/** The store room: see README.md for what it promises. */
export { createLocalBus, type LocalBusOptions } from "./bus.js";
export {
  InvalidBatchError,
  type LockHolder,
  StoreBusyError,
  StoreClosedError,
  StoreDirectoryError,
  StoreFailureError,
  StoreLockedError,
  StoreVersionError,
} from "./errors.js";
export { acquireLock, type ProcessLock } from "./sqlite/lock.js";
export {
  type Durability,
  openSqliteStore,
  type SqliteLocation,
  type SqliteStoreOptions,
} from "./sqlite/open.js";
export type { Reclaimed } from "./sqlite/reclaim.js";
export type { SqliteInspection, SqliteStore } from "./sqlite/store.js";
