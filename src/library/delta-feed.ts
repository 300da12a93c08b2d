/** The text that agents stream for a task, in pieces that a reader can keep up with. */
import type { Clock } from "../base/index.js";
import { DeltaBuffer, type DeltaNotification, type Entry, type Runtime } from "../engine/index.js";
import type { JournalKey, Subscription } from "../journal/index.js";

/** Milliseconds in which pieces are joined. */
const EVERY = 25;

export interface DeltaFeedParts {
  readonly runtime: Pick<Runtime, "watchText">;
  readonly key: JournalKey;
  readonly clock: Clock;
  /** Whether the reader keeps up. Meanwhile pieces are joined, and left out if they are too many. */
  readonly isReady: () => boolean;
  readonly send: (pieces: readonly DeltaNotification[]) => void;
}

export class DeltaFeed {
  readonly #parts: DeltaFeedParts;
  readonly #waiting = new DeltaBuffer();
  readonly #subscription: Subscription;
  #cancelTimer: (() => void) | undefined;

  constructor(parts: DeltaFeedParts) {
    this.#parts = parts;
    this.#subscription = parts.runtime.watchText(parts.key, (note) => {
      this.#waiting.add(note);
      this.#schedule();
    });
  }

  /** The reader gets this entry next: the text before it comes first, or not at all. */
  before(entry: Entry): void {
    if (this.#waiting.isEmpty) return;
    if (this.#parts.isReady()) this.#send();
    else this.#waiting.replaceBy(entry);
  }

  close(): void {
    this.#subscription.close();
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #schedule(): void {
    this.#cancelTimer ??= this.#parts.clock.after(EVERY, () => {
      this.#cancelTimer = undefined;
      if (this.#parts.isReady()) this.#send();
      else if (!this.#waiting.isEmpty) this.#schedule();
    });
  }

  #send(): void {
    if (!this.#waiting.isEmpty) this.#parts.send(this.#waiting.take());
  }
}
