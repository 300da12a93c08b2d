/**
 * Decisions D4: a write that is asked for twice under one key happens once. The key is committed together with the
 * write, so that also after a crash either both are there or neither.
 */
import { type Clock, RowConflictError, type RowWrite, type Store } from "../engine/ports.js";
import { isForLater, RuntimeError } from "../engine/runtime/index.js";
import { hashOf } from "../swarm/hash.js";
import { HttpError } from "./errors.js";
import type { HttpState, IdempotencyExpire, IdempotencyPut, KeyScope, WriteReference } from "./state.js";

/** Milliseconds that a key is remembered. */
export const KEY_LIFE = 24 * 60 * 60 * 1000;
const SWEEP_INTERVAL = 10 * 60 * 1000;

/** Makes the row that remembers the write under its key; without a key there is nothing to remember. */
export type Remember = (reference: WriteReference) => readonly RowWrite[];

export interface OnceRequest {
  readonly scope: KeyScope;
  /** Everything that makes the request what it is. */
  readonly content: unknown;
}

interface UnderWay<T> {
  readonly hash: string;
  readonly result: Promise<T>;
}

export interface IdempotencyParts {
  readonly state: HttpState;
  readonly store: Store;
  readonly clock: Clock;
}

export class Idempotency<T> {
  readonly #parts: IdempotencyParts;
  readonly #recall: (reference: WriteReference) => Promise<T>;
  readonly #underWay = new Map<string, UnderWay<T>>();

  /** `recall` makes the result again from the reference that was kept. */
  constructor(parts: IdempotencyParts, recall: (reference: WriteReference) => Promise<T>) {
    this.#parts = parts;
    this.#recall = recall;
  }

  /**
   * Does a write once. A second call while the first is under way gets the result of the first.
   * @throws HttpError `idempotency_key_reused` when the key was used for something else
   */
  async once(
    request: OnceRequest | undefined,
    write: (remember: Remember) => Promise<T>,
  ): Promise<{ readonly result: T; readonly replayed: boolean }> {
    if (request === undefined) return { result: await write(() => []), replayed: false };
    const { scope } = request;
    const digest = hashOf(request.content);
    const name = JSON.stringify([scope.role, scope.id, scope.route, scope.key]);
    const underWay = this.#underWay.get(name);
    if (underWay !== undefined) {
      if (underWay.hash !== digest) throw reused();
      return { result: await underWay.result, replayed: true };
    }
    let replayed = true;
    const work = async (): Promise<T> => {
      const before = await this.#kept(scope, digest);
      if (before !== undefined) return before;
      try {
        const written = await write((reference) => [this.#row(scope, digest, reference)]);
        replayed = false;
        return written;
      } catch (error) {
        if (!mayBeSecond(error)) throw error;
        const first = await this.#kept(scope, digest);
        if (first === undefined) throw error;
        return first;
      }
    };
    const result = work().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, { hash: digest, result });
    return { result: await result, replayed };
  }

  /** What was written under the key before. */
  async #kept(scope: KeyScope, digest: string): Promise<T | undefined> {
    const { state, clock } = this.#parts;
    const kept = await state.keptWrite(scope, clock.now() - KEY_LIFE);
    if (kept === undefined) return undefined;
    if (kept.hash !== digest) throw reused();
    return this.#recall(kept.reference);
  }

  #row(scope: KeyScope, digest: string, reference: WriteReference): IdempotencyPut {
    const createdAt = this.#parts.clock.now();
    return {
      kind: "http.idempotency.put",
      scope,
      write: { hash: digest, reference },
      createdAt,
      expires: createdAt - KEY_LIFE,
    };
  }
}

/**
 * Another door may have done the same under the same key in between: then the store refuses the key, or the engine what
 * the first one has changed already. Either is told when that is durable, so the key can be found.
 */
function mayBeSecond(error: unknown): boolean {
  return error instanceof RowConflictError || (error instanceof RuntimeError && !isForLater(error));
}

/** Forgets old keys now and then. The returned function stops it. */
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

/** @throws HttpError `bad_request` */
export function readIdempotencyKey(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header !== "string" || !/^[\x21-\x7e]{1,255}$/.test(header)) {
    throw new HttpError(
      "bad_request",
      "Idempotency-Key must be 1 to 255 printable ASCII characters without spaces",
      {
        details: { field: "Idempotency-Key" },
      },
    );
  }
  return header;
}

function reused(): HttpError {
  return new HttpError(
    "idempotency_key_reused",
    "this Idempotency-Key was used with another request: take a new key for a new request",
  );
}
