import { randomUUID } from "node:crypto";
import { uuidv7 } from "uuidv7";
import type { Clock, Ids } from "../engine/ports.js";

/** `setTimeout` counts in 32 bits; a longer wait is made of several. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    let timer: NodeJS.Timeout;
    const wait = (left: number) => {
      timer = setTimeout(
        () => (left > LONGEST_TIMEOUT ? wait(left - LONGEST_TIMEOUT) : callback()),
        Math.min(left, LONGEST_TIMEOUT),
      );
      timer.unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

export const systemIds: Ids = { uuid: () => randomUUID(), ordered: () => uuidv7() };
