/** One request while it is under way: its limits, and what is known about it. */
/** The part of a clock that is needed here. */
export interface Timers {
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** The reason of an abort that the clock caused. */
export class TimeLimitReached extends Error {
  override readonly name = "TimeLimitReached";
  constructor(limit: number) {
    super(`no answer within ${limit} ms`);
  }
}

/** What is known about one call while it is under way. */
export class Call {
  url: URL | undefined;
  /** Set just before the first byte is written. */
  sent = false;
  readonly #controller = new AbortController();
  readonly #cancelTimer: () => void;
  readonly #detach: () => void;

  constructor(clock: Timers, timeLimit: number, outer: AbortSignal | undefined) {
    this.#cancelTimer = clock.after(timeLimit, () => this.#controller.abort(new TimeLimitReached(timeLimit)));
    const abort = (): void => this.#controller.abort(outer?.reason);
    if (outer?.aborted === true) abort();
    outer?.addEventListener("abort", abort, { once: true });
    this.#detach = () => outer?.removeEventListener("abort", abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * What comes of a promise, unless the call is over first: then what comes late is handed to `late`. The HTTP library
   * notes an abort but acts on it only when the request has a connection, which may never be.
   */
  whileItLasts<T>(pending: Promise<T>, late: (value: T) => void): Promise<T> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        reject(signal.reason);
        pending.then(late, () => undefined);
      };
      signal.addEventListener("abort", abort, { once: true });
      pending.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    });
  }

  /** From here on the time limit no longer counts; the caller's signal still does. */
  headArrived(): void {
    this.#cancelTimer();
  }

  end(): void {
    this.#cancelTimer();
    this.#detach();
  }
}
