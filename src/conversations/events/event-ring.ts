/** The newest core events, in memory only. Bounded by number and by size. */
import type { MapEvent } from "./event.js";

export interface RingLimits {
  readonly count: number;
  readonly bytes: number;
}

interface Kept {
  readonly event: MapEvent;
  readonly size: number;
}

export class EventRing {
  readonly #limits: RingLimits;
  /** Oldest first. Dropped events stay before `#first` until there are enough to compact the array. */
  #kept: (Kept | undefined)[] = [];
  #first = 0;
  #bytes = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  add(event: MapEvent, size: number): void {
    this.#kept.push({ event, size });
    this.#bytes += size;
    while (this.#kept.length - this.#first > this.#limits.count || this.#bytes > this.#limits.bytes) {
      const oldest = this.#kept[this.#first];
      if (oldest === undefined) break;
      this.#bytes -= oldest.size;
      this.#kept[this.#first++] = undefined;
    }
    if (this.#first <= this.#limits.count) return;
    this.#kept = this.#kept.slice(this.#first);
    this.#first = 0;
  }

  has(id: string): boolean {
    return this.#kept.some((kept) => kept?.event.id === id);
  }

  /** Events after an id, or all of them, oldest first. */
  after(id: string | undefined): MapEvent[] {
    return this.#kept
      .slice(this.#first)
      .flatMap((kept) =>
        kept === undefined || (id !== undefined && kept.event.id <= id) ? [] : [kept.event],
      );
  }
}
