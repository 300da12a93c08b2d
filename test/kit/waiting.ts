/** Gates and counters that synchronize tests. */
import { until } from "../federation/until.js";

export { until };

export interface Gate {
  /** Resolves when the gate opens. */
  readonly passed: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** Waits for a number of turns of the event loop. */
export async function loopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Counts the turns of the event loop while `work` runs. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let over = false;
  const count = () => {
    if (over) return;
    turns++;
    setImmediate(count);
  };
  setImmediate(count);
  try {
    await work();
  } finally {
    over = true;
  }
  return turns;
}
