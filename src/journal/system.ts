/** The clock and the event loop of the process itself. */
import type { Clock, Loop } from "./ports.js";

/** `setTimeout` counts in 32 bits; a longer wait is made of several. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

function createClock(keepsProcessAlive: boolean): Clock {
  return {
    now: () => Date.now(),
    after: (ms, callback) => {
      let timer: NodeJS.Timeout;
      const wait = (left: number) => {
        timer = setTimeout(
          () => (left > LONGEST_TIMEOUT ? wait(left - LONGEST_TIMEOUT) : callback()),
          Math.min(left, LONGEST_TIMEOUT),
        );
        if (!keepsProcessAlive) timer.unref();
      };
      wait(ms);
      return () => clearTimeout(timer);
    },
  };
}

export const systemClock: Clock = createClock(false);

/** For what has to happen before the process may end by itself: a write that is tried again is work under way. */
export const urgentClock: Clock = createClock(true);

export const systemLoop: Loop = {
  soon: (callback) => {
    setImmediate(callback);
  },
  micro: (callback) => queueMicrotask(callback),
};
