import type { Ids } from "../base/index.js";

/**
 * Ids that repeat: the same seed gives the same UUIDs in the same order. Different seeds give different UUIDs.
 *
 * @param seed An integer from 0 to 4294967295.
 * @example
 * const mailroom = await openTestMailroom(swarm, { ids: seededIds(42) });
 */
export function seededIds(seed: number): Ids {
  const prefix = (seed >>> 0).toString(16).padStart(8, "0");
  let count = 0;
  const next = (): string => (++count).toString(16).padStart(12, "0");
  return {
    uuid: () => `${prefix}-0000-4000-8000-${next()}`,
    ordered: () => `${prefix}-0000-7000-8000-${next()}`,
  };
}
