/** The event loop of the process. */
import type { Loop } from "./ports.js";

export const systemLoop: Loop = {
  soon: (callback) => {
    setImmediate(callback);
  },
  micro: (callback) => queueMicrotask(callback),
};
