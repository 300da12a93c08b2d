/**
 * Text of a few thousand brackets is parsed without trouble and then overflows the stack of whatever walks through the
 * value: `JSON.stringify` is the first to. So what others send is measured before it is kept.
 */
export const DEEPEST_JSON = 64;

/** Whether lists and objects stand in each other to more than this many levels. Looks no deeper than that itself. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  // `Object.values` would copy long lists.
  const parts = Array.isArray(value) ? value : Object.values(value);
  return parts.some((part) => isDeeperThan(levels - 1, part));
}
