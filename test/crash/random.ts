/** Random numbers from a seed, so that a failure can be reproduced. */
export interface Random {
  /** At least 0, less than 1. */
  next(): number;
  /** An integer from `low` to `high`, inclusive. */
  whole(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly [T, ...T[]]): T;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  // Mulberry32: small, and good enough to choose moments and plans.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const whole = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    whole,
    chance: (probability) => next() < probability,
    pick: (items) => items[whole(0, items.length - 1)] ?? items[0],
  };
}
