/** What the HTTP server stores beside the journals. */
import type { JournalKey, RowWrite } from "../../journal/index.js";

/** A key belongs to a caller and a route (decision D4). */
export interface KeyScope {
  readonly role: string;
  readonly id: string;
  readonly route: string;
  readonly key: string;
}

/** What a write created: the round of a task, or the response itself. */
export type WriteReference =
  | {
      readonly kind: "round";
      readonly key: JournalKey;
      readonly taskId: string;
      readonly messageId: string;
      readonly number: number;
    }
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown };

export interface StoredWrite {
  /** Hash of what the caller sent, to detect the same key with another body. */
  readonly hash: string;
  readonly reference: WriteReference;
}

/**
 * Rejected when a write at or after `expires` uses the key; an older one is replaced. Committed together with the write
 * itself.
 */
export interface IdempotencyPut extends RowWrite {
  readonly kind: "http.idempotency.put";
  readonly scope: KeyScope;
  readonly write: StoredWrite;
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
  /** Hash of the configured definition that it replaces: when that changes, the loaded swarm no longer applies. */
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

export interface HttpStore {
  storedWrite(scope: KeyScope, expires: number): Promise<StoredWrite | undefined>;
  loadedSwarm(swarm: string): Promise<LoadedSwarmText | undefined>;
}
