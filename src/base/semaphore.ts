export interface SemaphoreOptions {
  /** In use at once, of all keys together. Default: no limit. */
  readonly limit?: number;
  /** In use at once, of one key. Default: no limit. */
  readonly perKey?: number;
}

/** Gives back what was acquired; further calls do nothing. */
export type Release = () => void;

interface Waiter {
  readonly key: string;
  readonly weight: number;
  readonly enter: (release: Release) => void;
}

/** Bounds what is in use at once, in all and by key, so that one key alone cannot exhaust the limit (law 5). */
export class Semaphore {
  readonly #limit: number;
  readonly #perKey: number;
  readonly #byKey = new Map<string, number>();
  readonly #waiting: Waiter[] = [];
  #inUse = 0;

  constructor({ limit = Number.POSITIVE_INFINITY, perKey = Number.POSITIVE_INFINITY }: SemaphoreOptions) {
    this.#limit = limit;
    this.#perKey = perKey;
  }

  get inUse(): number {
    return this.#inUse;
  }

  inUseBy(key: string): number {
    return this.#byKey.get(key) ?? 0;
  }

  /** Undefined when there is no room. */
  tryAcquire(key = "", weight = 1): Release | undefined {
    return this.#fits(key, weight) ? this.#enter(key, weight) : undefined;
  }

  /**
   * Waits for room, after those of the same key that wait already.
   * @throws the signal's reason
   */
  acquire(
    key = "",
    { weight = 1, signal }: { weight?: number; signal?: AbortSignal } = {},
  ): Promise<Release> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#fits(key, weight) && !this.#waiting.some((waiter) => waiter.key === key)) {
        resolve(this.#enter(key, weight));
        return;
      }
      const abort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      const enter = (release: Release): void => {
        signal?.removeEventListener("abort", abort);
        resolve(release);
      };
      const waiter: Waiter = { key, weight, enter };
      this.#waiting.push(waiter);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Runs some work when there is room for it. */
  async run<Result>(work: () => Promise<Result>, key?: string): Promise<Result> {
    const release = await this.acquire(key);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #fits(key: string, weight: number): boolean {
    return this.#inUse + weight <= this.#limit && this.inUseBy(key) + weight <= this.#perKey;
  }

  #enter(key: string, weight: number): Release {
    this.#inUse += weight;
    this.#byKey.set(key, this.inUseBy(key) + weight);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#inUse -= weight;
      const left = this.inUseBy(key) - weight;
      if (left > 0) this.#byKey.set(key, left);
      else this.#byKey.delete(key);
      this.#admit();
    };
  }

  /** Admits the waiters that fit now, in order and synchronously, so that a new caller cannot overtake them. */
  #admit(): void {
    for (let index = 0; index < this.#waiting.length && this.#inUse < this.#limit; ) {
      const waiter = this.#waiting[index];
      if (waiter !== undefined && this.#fits(waiter.key, waiter.weight)) {
        this.#waiting.splice(index, 1);
        waiter.enter(this.#enter(waiter.key, waiter.weight));
      } else index += 1;
    }
  }
}
