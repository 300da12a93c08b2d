/** Stops cleanly at the first signal, immediately at the second. */

const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;

/** Resolves at the first SIGINT or SIGTERM. */
export function waitForStopSignal(onFirst: () => void): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        // Acknowledged data is durable, so an immediate exit loses nothing.
        if (stopping) process.exit(128 + NUMBERS[signal]);
        stopping = true;
        onFirst();
        resolve();
      });
    }
  });
}
