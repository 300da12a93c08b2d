/** The store room: see README.md for what it promises. */
export { createLocalBus, type LocalBusOptions } from "./bus.js";
export { type LockHolder, StoreDamagedError, StoreDirectoryError, StoreLockedError } from "./errors.js";
export type { FullStore } from "./full-store.js";
export { openStore, type StoreOptions } from "./open.js";
export { assertNotLocked, type Durability, openSqliteStore } from "./sqlite/open.js";
export type { SqliteStore } from "./sqlite/store.js";
