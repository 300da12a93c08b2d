/** Ways for a test to hold something back, and to know that it has come so far. */
import { until } from "../federation/until.js";

export { until };

export interface Gate {
  /** Resolves when the gate is opened. */
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

/** Lets everything else have so many turns of the event loop. */
export async function loopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Counts the turns that the event loop makes while something goes on. */
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
