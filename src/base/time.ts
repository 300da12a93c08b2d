/** Time and timers. Tests inject their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after `ms`; the returned function cancels it. Never keeps the process alive. */
  after(ms: number, callback: () => void): () => void;
}

/** The part of a clock that waits. */
export type Timers = Pick<Clock, "after">;

/** `setTimeout` counts in 32 bits; a longer wait is made of several. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

function createClock(keepsProcessAlive: boolean): Clock {
  return {
    now: () => Date.now(),
    after: (ms, callback) => {
      let timer: ReturnType<typeof setTimeout>;
      const wait = (left: number) => {
        timer = setTimeout(
          () => (left > LONGEST_TIMEOUT ? wait(left - LONGEST_TIMEOUT) : callback()),
          Math.min(left, LONGEST_TIMEOUT),
        );
        // A browser's timer is a number.
        if (!keepsProcessAlive && typeof timer === "object") timer.unref();
      };
      wait(ms);
      return () => clearTimeout(timer);
    },
  };
}

export const systemClock: Clock = createClock(false);

/** For waits that have to end before the process may: a write or a call that is tried again is work in progress. */
export const urgentClock: Clock = createClock(true);

/** @throws the signal's reason, when that fires first */
export function sleep(clock: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const abort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** A promise that is settled from outside. (`Promise.withResolvers` came with Node 22.) */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
