/** Numbers in the rail: what waits or is wrong, by screen. */
import { signal } from "@preact/signals";

export const attention = signal<ReadonlyMap<string, number>>(new Map());

export function setAttention(screen: string, count: number): void {
  if ((attention.value.get(screen) ?? 0) === count) return;
  attention.value = new Map(attention.value).set(screen, count);
}
