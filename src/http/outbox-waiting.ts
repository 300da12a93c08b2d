/** How much mail waits for other servers. Read from the store now and then, because it costs a query per queue. */
import type { Clock } from "../base/index.js";
import type { OutboxQueue } from "../extension/index.js";
import type { FullStore } from "../store/index.js";

/** Milliseconds between two readings. */
const EVERY = 5_000;

export class OutboxWaiting {
  readonly #store: object;
  readonly #queues: () => readonly OutboxQueue[];
  readonly #clock: Pick<Clock, "now">;
  #readAt = 0;
  #waiting: number | null = null;

  constructor(store: object, queues: () => readonly OutboxQueue[], clock: Pick<Clock, "now">) {
    this.#store = store;
    this.#queues = queues;
    this.#clock = clock;
  }

  /** The last number that was read. */
  read(): number | null {
    const now = this.#clock.now();
    const store = this.#store;
    if (now - this.#readAt >= EVERY && hasOutbox(store)) {
      this.#readAt = now;
      this.#count(store).catch(() => {
        // The store was closed meanwhile.
      });
    }
    return this.#waiting;
  }

  async #count({ outbox }: Pick<FullStore, "outbox">): Promise<void> {
    let sum = 0;
    for (const { queue } of this.#queues()) {
      for (const waiting of (await outbox.waitingByTarget(queue)).values()) sum += waiting;
    }
    this.#waiting = sum;
  }
}

function hasOutbox(store: object): store is Pick<FullStore, "outbox"> {
  return "outbox" in store;
}
