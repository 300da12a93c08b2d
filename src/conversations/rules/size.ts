/**
 * The approximate size of a value in bytes. Cheaper than serializing it, because strings are not scanned. Not
 * recursive, because input can be nested deeper than the stack.
 */
export function roughSize(value: unknown): number {
  let size = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") size += next.length + 8;
    else if (typeof next !== "object" || next === null) size += 8;
    else {
      size += 16;
      for (const [key, part] of Object.entries(next)) {
        size += key.length + 8;
        open.push(part);
      }
    }
  }
  return size;
}
