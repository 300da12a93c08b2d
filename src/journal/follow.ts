/**
 * A journal as a stream: all entries after a number, then new ones, without loss or repetition. A slow reader uses
 * bounded memory: it reads the entries it missed from the store.
 */
import { byNumber, pages } from "./pages.js";
import type { Bus, JournalKey, JournalRow, Loop } from "./ports.js";

export interface Numbered<Entry> {
  readonly number: number;
  readonly entry: Entry;
}

/** Published when entries are durable. */
export interface CommitNotification<Entry> {
  readonly key: JournalKey;
  readonly first: number;
  readonly entries: readonly Entry[];
}

/** Published when the journal was removed: no entries follow. */
export interface RemovalNotification {
  readonly key: JournalKey;
  readonly removed: true;
}

export interface FollowOptions {
  /** The last number already seen. Default 0: from the beginning. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Stop at the current end instead of waiting for more entries. */
  readonly once?: boolean;
  /** Entries queued for this reader before it falls back to the store. */
  readonly backlog: number;
  /** Whether the reader takes nothing at the moment. New entries are then not queued, but read from the store later. */
  readonly isBehind?: () => boolean;
  /** Waits for a place to read stored entries. The place is released when a page of them has been taken. */
  readonly place?: () => Promise<() => void>;
}

/** Ends every reader when the process is closed. */
export class Followers {
  readonly #wakers = new Set<() => void>();
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  get size(): number {
    return this.#wakers.size;
  }

  add(wake: () => void): () => void {
    this.#wakers.add(wake);
    return () => this.#wakers.delete(wake);
  }

  close(): void {
    this.#closed = true;
    for (const wake of [...this.#wakers]) wake();
  }
}

export interface FollowParts {
  readonly read: (
    key: JournalKey,
    options: { after: number; limit: number; characters: number },
  ) => Promise<JournalRow[]>;
  /** 0 if the journal does not exist. */
  readonly lastNumber: (key: JournalKey) => Promise<number>;
  readonly bus: Bus;
  readonly loop: Loop;
  readonly channel: string;
  readonly key: JournalKey;
  readonly followers: Followers;
}

export async function* follow<Entry>(
  { read, lastNumber, bus, loop, channel, key, followers }: FollowParts,
  { after = 0, signal, once = false, backlog, isBehind, place }: FollowOptions,
): AsyncGenerator<Numbered<Entry>, void, undefined> {
  let seen = after;
  let release: (() => void) | undefined;
  const leavePlace = () => {
    release?.();
    release = undefined;
  };
  const readPage = async (from: number, limit: number, characters: number) => {
    leavePlace();
    release = await place?.();
    return stopped() ? [] : read(key, { after: from, limit, characters });
  };
  const live = new FollowerQueue<Entry>(backlog, isBehind);
  const subscription = once ? undefined : bus.subscribe(channel, (note) => live.add(note));
  const wake = () => live.wake();
  const leave = followers.add(wake);
  signal?.addEventListener("abort", wake, { once: true });
  const stopped = () => signal?.aborted === true || followers.closed;
  try {
    // Entries that are committed before that would be neither read nor announced.
    await subscription?.ready;
    while (!stopped()) {
      live.reset();
      for await (const rows of pages(readPage, seen, byNumber, loop)) {
        for (const row of rows) {
          const entries: Entry[] = JSON.parse(row.data);
          for (const [index, entry] of entries.entries()) {
            const number = row.first + index;
            if (number <= seen) continue;
            seen = number;
            yield { number, entry };
            if (stopped()) return;
          }
        }
      }
      leavePlace();
      // Removed before this follower subscribed: no notification will arrive.
      if (once || (await lastNumber(key)) === 0) return;
      // Live from here, until the reader falls behind.
      while (!live.overflown && !stopped()) {
        const note = live.take();
        if (note === undefined) {
          if (live.removed) return;
          await live.changed();
          continue;
        }
        if (note.first > seen + 1) break;
        for (const [index, entry] of note.entries.entries()) {
          const number = note.first + index;
          if (number <= seen) continue;
          seen = number;
          yield { number, entry };
          if (stopped()) return;
        }
      }
    }
  } finally {
    leavePlace();
    subscription?.close();
    leave();
    signal?.removeEventListener("abort", wake);
  }
}

class FollowerQueue<Entry> {
  overflown = false;
  removed = false;
  readonly #limit: number;
  readonly #isBehind: FollowOptions["isBehind"];
  #notes: CommitNotification<Entry>[] = [];
  #size = 0;
  #wake: (() => void) | undefined;

  constructor(limit: number, isBehind: FollowOptions["isBehind"]) {
    this.#limit = limit;
    this.#isBehind = isBehind;
  }

  add(note: unknown): void {
    if (isRemovalNote(note)) this.removed = true;
    else if (this.overflown || !isCommitNotification<Entry>(note)) return;
    else {
      this.#size += note.entries.length;
      if (this.#size > this.#limit || this.#isBehind?.() === true) {
        this.overflown = true;
        this.#notes = [];
      } else {
        this.#notes.push(note);
      }
    }
    this.wake();
  }

  take(): CommitNotification<Entry> | undefined {
    const note = this.#notes.shift();
    if (note !== undefined) this.#size -= note.entries.length;
    return note;
  }

  /** Drops the queued entries: the store is about to be read. */
  reset(): void {
    this.overflown = false;
    this.#notes = [];
    this.#size = 0;
  }

  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

export function isCommitNotification<Entry>(note: unknown): note is CommitNotification<Entry> {
  return typeof note === "object" && note !== null && "entries" in note && "first" in note;
}

function isRemovalNote(note: unknown): note is RemovalNotification {
  return typeof note === "object" && note !== null && "removed" in note;
}
