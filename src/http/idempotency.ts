/**
 * A write that is requested twice under one key happens once (decision D4). The key is committed together with the
 * write, so after a crash either both exist or neither.
 */

import { type Clock, isPublicError, isRetryable, MailroomError, Once } from "../base/index.js";
import { digest } from "../base/node.js";
import type { Store } from "../engine/index.js";
import { RowConflictError, type RowWrite } from "../journal/index.js";
import type {
  HttpStore,
  IdempotencyExpire,
  IdempotencyPut,
  KeyScope,
  WriteReference,
} from "../store/index.js";

/** Lifetime of a key in milliseconds. */
export const KEY_LIFE = 24 * 60 * 60 * 1000;
const SWEEP_INTERVAL = 10 * 60 * 1000;

/** Returns the row that stores the write under its key; none without a key. */
export type Remember = (reference: WriteReference) => readonly RowWrite[];

export interface OnceRequest {
  readonly scope: KeyScope;
  /** Everything that identifies the request. */
  readonly content: unknown;
}

export interface IdempotencyParts {
  readonly state: HttpStore;
  readonly store: Store;
  readonly clock: Clock;
}

export class Idempotency<T> {
  readonly #parts: IdempotencyParts;
  readonly #once: Once<WriteReference, T>;

  /** `recall` recreates the result from the stored reference. */
  constructor(parts: IdempotencyParts, recall: (reference: WriteReference) => Promise<T>) {
    this.#parts = parts;
    this.#once = new Once({ recall, isConflict: mayBeSecond });
  }

  /**
   * Performs a write once. A second call while the first runs gets the first's result.
   * @throws MailroomError `idempotency_key_reused` when the key was used for another request
   */
  async once(
    request: OnceRequest | undefined,
    write: (remember: Remember) => Promise<T>,
  ): Promise<{ readonly result: T; readonly replayed: boolean }> {
    if (request === undefined) return { result: await write(() => []), replayed: false };
    const { scope, content } = request;
    const { state, clock } = this.#parts;
    const hash = digest(content);
    return this.#once.run({
      key: JSON.stringify([scope.role, scope.id, scope.route, scope.key]),
      digest: hash,
      reused,
      find: async () => {
        const kept = await state.storedWrite(scope, clock.now() - KEY_LIFE);
        return kept && { digest: kept.hash, reference: kept.reference };
      },
      write: () => write((reference) => [this.#row(scope, hash, reference)]),
    });
  }

  #row(scope: KeyScope, hash: string, reference: WriteReference): IdempotencyPut {
    const createdAt = this.#parts.clock.now();
    return {
      kind: "http.idempotency.put",
      scope,
      write: { hash, reference },
      createdAt,
      expires: createdAt - KEY_LIFE,
    };
  }
}

/**
 * Another listener may have written under the same key in the meantime: then the store rejects the key, or the engine
 * rejects the command. Both happen after that write is durable, so the key can be found.
 */
function mayBeSecond(error: unknown): boolean {
  return error instanceof RowConflictError || (isPublicError(error) && !isRetryable(error));
}

/** Removes expired keys periodically. Returns a function that stops it. */
export function sweepKeys(
  { store, clock }: IdempotencyParts,
  onTrouble: (error: unknown) => void,
): () => void {
  let cancel = () => {};
  const arm = () => {
    cancel = clock.after(SWEEP_INTERVAL, () => {
      const row: IdempotencyExpire = { kind: "http.idempotency.expire", before: clock.now() - KEY_LIFE };
      store.commit({ appends: [], rows: [row] }).catch(onTrouble);
      arm();
    });
  };
  arm();
  return () => cancel();
}

/** @throws MailroomError `bad_request` */
export function readIdempotencyKey(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== "string" || !/^[\x21-\x7e]{1,255}$/.test(header)) {
    throw new MailroomError(
      "bad_request",
      "Idempotency-Key must be 1 to 255 printable ASCII characters without spaces",
      {
        details: { field: "Idempotency-Key" },
      },
    );
  }
  return header;
}

function reused(): MailroomError {
  return new MailroomError(
    "idempotency_key_reused",
    "this Idempotency-Key was used with another request: use a new key for a new request",
  );
}
