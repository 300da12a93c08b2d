/** What was stored with a write, so that it can be recognized and its result made again. */
export interface StoredWrite<Reference> {
  readonly digest: string;
  readonly reference: Reference;
}

export interface OnceOptions<Reference, Result> {
  /** Makes the result again from what was stored. */
  readonly recall: (reference: Reference) => Promise<Result>;
  /** Whether a failed write may mean that another process was first. Default: never. */
  readonly isConflict?: (error: unknown) => boolean;
}

export interface OnceRequest<Reference, Result> {
  readonly key: string;
  /** Of everything that makes the request what it is. */
  readonly digest: string;
  readonly find: () => Promise<StoredWrite<Reference> | undefined>;
  /** The error for a key that was used for something else. */
  readonly reused: () => Error;
  /** Stores the digest and the reference in the same commit as the write. */
  readonly write: () => Promise<Result>;
}

/**
 * A write that is requested twice under one key happens once. Its key is committed together with the write, so that
 * after a crash either both exist or neither.
 */
export class Once<Reference, Result> {
  readonly #options: OnceOptions<Reference, Result>;
  readonly #inFlight = new Map<string, { readonly digest: string; readonly result: Promise<Result> }>();

  constructor(options: OnceOptions<Reference, Result>) {
    this.#options = options;
  }

  /** A second call while the first is in flight gets the result of the first. */
  async run(
    request: OnceRequest<Reference, Result>,
  ): Promise<{ readonly result: Result; readonly replayed: boolean }> {
    const { key, digest, reused } = request;
    const first = this.#inFlight.get(key);
    if (first !== undefined) {
      if (first.digest !== digest) throw reused();
      return { result: await first.result, replayed: true };
    }
    let replayed = true;
    const work = async (): Promise<Result> => {
      const stored = await this.#stored(request);
      if (stored !== undefined) return stored.result;
      try {
        const result = await request.write();
        replayed = false;
        return result;
      } catch (error) {
        if (this.#options.isConflict?.(error) !== true) throw error;
        const other = await this.#stored(request);
        if (other === undefined) throw error;
        return other.result;
      }
    };
    const result = work().finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, { digest, result });
    return { result: await result, replayed };
  }

  async #stored({
    digest,
    find,
    reused,
  }: OnceRequest<Reference, Result>): Promise<{ result: Result } | undefined> {
    const stored = await find();
    if (stored === undefined) return undefined;
    if (stored.digest !== digest) throw reused();
    return { result: await this.#options.recall(stored.reference) };
  }
}
