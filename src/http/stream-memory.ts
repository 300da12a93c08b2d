/**
 * What the streams of one caller may make the server hold: pages of stored entries, and large events that wait for their
 * readers. A limit per stream is not enough, because a caller can open many. Beyond it, streams of that caller wait.
 */
import { type Release, Semaphore } from "../base/index.js";

/** Pages of stored entries that are held for one caller. A page has about 256 KB. */
const PAGES = 4;
/** Bytes of large events that wait for the readers of one caller. */
const LARGE_EVENTS = 8 * 1024 * 1024;
/** Smaller events do not count: the buffer of each stream limits them. */
const LARGE = 64 * 1024;

const NOTHING: Release = () => {};

export class StreamMemory {
  readonly #pages = new Semaphore({ perKey: PAGES });
  readonly #events = new Semaphore({ perKey: LARGE_EVENTS });

  /** Waits for a place to hold a page of stored entries, or until the signal aborts. */
  page(caller: string, signal: AbortSignal): Promise<Release> {
    return this.#pages.acquire(caller, { signal }).catch(() => NOTHING);
  }

  /** The same as `event` for a text that exists. */
  async text<Text extends string | Uint8Array>(
    caller: string,
    signal: AbortSignal,
    text: Text,
    write: (text: Text) => Promise<void>,
  ): Promise<void> {
    const release = text.length < LARGE ? NOTHING : await this.#room(caller, signal, text.length);
    try {
      await write(text);
    } finally {
      release();
    }
  }

  /**
   * Calls `write` with the text of an event when there is room for it, and holds the room until the text is written.
   * @param format creates the text; called again after a wait, so that waiting events take no memory
   */
  async event(
    caller: string,
    signal: AbortSignal,
    format: () => string,
    write: (text: string) => Promise<void>,
  ): Promise<void> {
    let text: string | undefined = format();
    if (text.length < LARGE) return write(text);
    const weight = Math.min(text.length, LARGE_EVENTS);
    let release = this.#events.tryAcquire(caller, weight);
    if (release === undefined) {
      text = undefined;
      release = await this.#room(caller, signal, weight);
    }
    try {
      await write(text ?? format());
    } finally {
      release();
    }
  }

  #room(caller: string, signal: AbortSignal, size: number): Promise<Release> {
    const weight = Math.min(size, LARGE_EVENTS);
    return this.#events.acquire(caller, { weight, signal }).catch(() => NOTHING);
  }
}
