/** Durable storage: see README.md for what it promises. */
export { lockOf } from "./errors.js";
export type { FullStore } from "./full-store.js";
export { openStore, type StoreOptions } from "./open.js";
export type { A2aContext, A2aStore, MessagePut, StoredMessage, ThreadPut } from "./ports/a2a.js";
export type {
  HttpStore,
  IdempotencyExpire,
  IdempotencyPut,
  KeyScope,
  LoadedSwarmPut,
  LoadedSwarmRemove,
  WriteReference,
} from "./ports/http.js";
export type { FoundEntry, SearchableEntry, SearchIndex, SearchQuery } from "./ports/search.js";
export { assertNotLocked, type Durability, openSqliteStore } from "./sqlite/open.js";
