/** What the HTTP door keeps beside the journals. The store implements it. */
import type { JournalKey, RowWrite, Store } from "../engine/ports.js";

/** Decisions D4: a key belongs to a caller and a route. */
export interface KeyScope {
  readonly role: string;
  readonly id: string;
  readonly route: string;
  readonly key: string;
}

/** What a write made: the round of a task, or the answer itself. */
export type WriteReference =
  | {
      readonly kind: "round";
      readonly key: JournalKey;
      readonly taskId: string;
      readonly messageId: string;
      readonly number: number;
    }
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown };

export interface KeptWrite {
  /** Of what the caller sent, to recognise the same key with another body. */
  readonly hash: string;
  readonly reference: WriteReference;
}

/**
 * Refused when the key is in use by a write at or after `expires`; an older one is replaced. Committed together with
 * the write itself.
 */
export interface IdempotencyPut extends RowWrite {
  readonly kind: "http.idempotency.put";
  readonly scope: KeyScope;
  readonly write: KeptWrite;
  readonly createdAt: number;
  readonly expires: number;
}

export interface IdempotencyExpire extends RowWrite {
  readonly kind: "http.idempotency.expire";
  readonly before: number;
}

/** A swarm that an admin loaded in place of the configured one. */
export interface LoadedSwarmText {
  readonly swarm: string;
  readonly text: string;
  /** Hash of the configured definition that it stands in for: when that changes, it is no longer in force. */
  readonly replaces: string;
}

export interface LoadedSwarmPut extends RowWrite {
  readonly kind: "http.swarm.put";
  readonly loaded: LoadedSwarmText;
}

export interface LoadedSwarmRemove extends RowWrite {
  readonly kind: "http.swarm.remove";
  readonly swarm: string;
}

export type HttpRowWrite = IdempotencyPut | IdempotencyExpire | LoadedSwarmPut | LoadedSwarmRemove;

export interface HttpState {
  keptWrite(scope: KeyScope, expires: number): Promise<KeptWrite | undefined>;
  loadedSwarm(swarm: string): Promise<LoadedSwarmText | undefined>;
}

/** A store with the tables of this room. */
export interface HttpStore extends Store {
  readonly http: HttpState;
}

/** @throws Error when the store has no tables for this room */
export function httpStateOf(store: Store): HttpState {
  if (isHttpStore(store)) return store.http;
  throw new Error("the store keeps nothing for the HTTP server: it needs the property 'http' (HttpStore)");
}

function isHttpStore(store: Store): store is HttpStore {
  return "http" in store && typeof store.http === "object" && store.http !== null;
}
