/** Waits for the end of a round on behalf of a request. */
import { type Clock, hasCode } from "../base/index.js";
import type { RoundOutcome } from "../engine/index.js";

/** Calls back when waiting is pointless. Returns a function that removes the callback. */
export type StopWaiting = (stop: () => void) => () => void;

/** Resolves with the outcome, or undefined on timeout, server shutdown or disconnect. */
export function waitFor(
  outcome: Promise<RoundOutcome>,
  options: { readonly clock: Clock; readonly ms: number; readonly stopWhen: readonly StopWaiting[] },
): Promise<RoundOutcome | undefined> {
  return new Promise((resolve, reject) => {
    const forget: (() => void)[] = [];
    const finish = (settle: () => void) => {
      for (const stop of forget) stop();
      settle();
    };
    const stop = () => finish(() => resolve(undefined));
    outcome.then(
      (ended) => finish(() => resolve(ended)),
      (error: unknown) => {
        // The task is durable and continues after a restart.
        if (hasCode(error, "closed")) stop();
        else finish(() => reject(error));
      },
    );
    forget.push(options.clock.after(options.ms, stop));
    for (const when of options.stopWhen) forget.push(when(stop));
  });
}
