/**
 * A task's journal as a stream: everything after a number, then what happens, without loss or repetition. A slow
 * reader fills no memory: what it missed it reads from the store.
 */
import type { Entry } from "../entries.js";
import type { Bus, JournalKey, Store } from "../ports.js";
import { entriesOf } from "./loader.js";
import { withResolvers } from "./waiters.js";

export interface NumberedEntry {
  readonly number: number;
  readonly entry: Entry;
}

/** Published after each commit, on the task's channel and on the channel of all tasks. */
export interface CommitNote {
  readonly key: JournalKey;
  readonly first: number;
  readonly entries: readonly Entry[];
}

/** Pieces of an answer on their way; neither journaled nor replayed. */
export interface DeltaNote {
  readonly key: JournalKey;
  readonly agent: string;
  readonly delta: string;
}

/** Published when somebody begins or ceases to watch a task live. */
export interface WatchNote {
  readonly key: JournalKey;
  readonly watching: boolean;
}

export const WATCH_CHANNEL = "watch";
export const ALL_TASKS_CHANNEL = "tasks";
export const taskChannel = (key: JournalKey): string => `task:${key}`;
export const deltaChannel = (key: JournalKey): string => `delta:${key}`;

export interface FollowOptions {
  /** The last number already seen. Default 0: from the beginning. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Stop at the present end instead of waiting for more. */
  readonly once?: boolean;
  /** Entries kept for this reader before it reads the store again. */
  readonly backlog: number;
}

const PAGE = 200;

export async function* follow(
  store: Store,
  bus: Bus,
  key: JournalKey,
  { after = 0, signal, once = false, backlog }: FollowOptions,
): AsyncGenerator<NumberedEntry, void, undefined> {
  let seen = after;
  const live = new Backlog(backlog);
  const unsubscribe = once ? () => {} : subscribe(bus, key, (note) => live.add(note));
  const onAbort = () => live.wake();
  signal?.addEventListener("abort", onAbort, { once: true });
  const stopped = () => signal?.aborted === true;
  try {
    while (!stopped()) {
      live.reset();
      for (;;) {
        const rows = await store.read(key, { after: seen, limit: PAGE });
        for (const row of rows) {
          for (const [index, entry] of entriesOf(row).entries()) {
            const number = row.first + index;
            if (number <= seen) continue;
            seen = number;
            yield { number, entry };
            if (stopped()) return;
          }
        }
        if (rows.length < PAGE) break;
      }
      if (once) return;
      // Live from here, until the reader falls behind.
      while (!live.overflown && !stopped()) {
        const note = live.take();
        if (note === undefined) {
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
    unsubscribe();
    signal?.removeEventListener("abort", onAbort);
  }
}

function subscribe(bus: Bus, key: JournalKey, handler: (note: unknown) => void): () => void {
  const unsubscribe = bus.subscribe(taskChannel(key), handler);
  const tell = (watching: boolean) => bus.publish(WATCH_CHANNEL, { key, watching } satisfies WatchNote);
  tell(true);
  return () => {
    unsubscribe();
    tell(false);
  };
}

export function isWatchNote(note: unknown): note is WatchNote {
  return typeof note === "object" && note !== null && "watching" in note && "key" in note;
}

class Backlog {
  overflown = false;
  readonly #limit: number;
  #notes: CommitNote[] = [];
  #size = 0;
  #waiting: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(note: unknown): void {
    if (this.overflown || !isCommitNote(note)) return;
    this.#size += note.entries.length;
    if (this.#size > this.#limit) {
      this.overflown = true;
      this.#notes = [];
    } else {
      this.#notes.push(note);
    }
    this.wake();
  }

  take(): CommitNote | undefined {
    const note = this.#notes.shift();
    if (note !== undefined) this.#size -= note.entries.length;
    return note;
  }

  /** Forgets what came so far: the store is about to be read. */
  reset(): void {
    this.overflown = false;
    this.#notes = [];
    this.#size = 0;
  }

  changed(): Promise<void> {
    if (this.#waiting === undefined) {
      const { promise, resolve } = withResolvers<void>();
      this.#waiting = { promise, resolve };
    }
    return this.#waiting.promise;
  }

  wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}

export function isCommitNote(note: unknown): note is CommitNote {
  return typeof note === "object" && note !== null && "entries" in note && "first" in note;
}
