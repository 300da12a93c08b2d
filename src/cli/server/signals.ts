/** Stops in good order at the first signal, at once at the second. */

const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;

/** Resolves at the first SIGINT or SIGTERM. */
export function untilStopped(onFirst: () => void): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        // What was acknowledged is durable, so there is nothing that ending now could lose.
        if (stopping) process.exit(128 + NUMBERS[signal]);
        stopping = true;
        onFirst();
        resolve();
      });
    }
  });
}
