/** Randomness that can be had again: the same seed always gives the same numbers and ids. */
import type { Ids } from "../../src/engine/ports.js";

export interface Random {
  /** At least 0, less than 1. */
  next(): number;
  /** A whole number from 0 to `below` - 1. */
  int(below: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** Mulberry32: small, fast, and good enough to choose among cases. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (items) => items[int(items.length)] ?? items[0],
  };
}

/** Ids in the form of UUIDs that count: distinct, and in order where order is asked for. */
export function countingIds(): Ids {
  let count = 0;
  const tail = (): string => (++count).toString(16).padStart(12, "0");
  return {
    uuid: () => `00000000-0000-4000-8000-${tail()}`,
    ordered: () => `00000000-0000-7000-8000-${tail()}`,
  };
}
