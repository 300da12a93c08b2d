/** How far a server's heap may grow before V8 collects garbage. */
import { setFlagsFromString } from "node:v8";

/** In percent of what was in use after the last collection. */
const HEAP_GROWTH = 100;

/**
 * By default V8 lets the heap grow to a multiple of what is in use. Under an attack with large messages, most of a
 * server's memory would be garbage, which no limit counts.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`);
}
