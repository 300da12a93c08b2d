/** A running request: its limits and its state. */
import { MailroomError, type Timers } from "../base/index.js";

/** The reason of an abort by the clock. */
export function timedOut(limit: number): MailroomError {
  return new MailroomError("timed_out", `no response within ${limit} ms`);
}

/** The state of a running request. */
export class OutgoingRequest {
  url: URL | undefined;
  /** Set just before the first byte is written. */
  sent = false;
  readonly #controller = new AbortController();
  readonly #cancelTimer: () => void;
  readonly #detach: () => void;

  constructor(clock: Timers, timeLimit: number, outer: AbortSignal | undefined) {
    this.#cancelTimer = clock.after(timeLimit, () => this.#controller.abort(timedOut(timeLimit)));
    const abort = (): void => this.#controller.abort(outer?.reason);
    if (outer?.aborted === true) abort();
    outer?.addEventListener("abort", abort, { once: true });
    this.#detach = () => outer?.removeEventListener("abort", abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Resolves like a promise, unless the request ends first; a late result is passed to `late`. The HTTP library acts on
   * an abort only once the request has a connection, which may never happen.
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

  /** Ends the time limit; the caller's signal still counts. */
  headArrived(): void {
    this.#cancelTimer();
  }

  end(): void {
    this.#cancelTimer();
    this.#detach();
  }
}
