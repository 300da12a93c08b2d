/** One listener of the feed: what it missed comes from the store, the rest from the hub, without loss or repetition. */
import { entriesOf, type InstanceId, type Store } from "../../../engine/index.js";
import { type EventStream, eventText, formatEvent } from "../../../extension/index.js";
import { byNumber, type JournalKey, type JournalRow, pages, systemLoop } from "../../../journal/index.js";
import type { CursorForm, Cursors, FeedPlace } from "../cursors.js";
import type { Chunk } from "./chunk.js";
import { EVERYONE, entriesJson, type FeedHub, type FeedListener, isTaskJournal } from "./hub.js";
import { addChange, audienceOf, type TaskChange } from "./notes.js";

/** Commits that are read after a pause; a listener that missed more reads its lists again. */
const MOST_MISSED = 20_000;
/** What is read in one turn: rows of tasks, and characters of journals. */
const ROWS_AT_ONCE = 100;
const CHARACTERS_AT_ONCE = 256 * 1024;
/** Characters that may wait for a listener; one that is slower reads from the store what it missed. */
const MOST_WAITING = 4 * 1024 * 1024;

export interface FeedReaderOptions {
  readonly hub: FeedHub;
  readonly store: Store;
  readonly cursors: Cursors;
  readonly stream: EventStream;
  readonly form: CursorForm;
  /** Whose tasks; nothing for everyone's. */
  readonly instance: InstanceId | undefined;
  readonly watched: JournalKey | undefined;
  readonly stats: boolean;
}

export class FeedReader implements FeedListener {
  readonly audience: string;
  readonly watched: JournalKey | undefined;
  readonly wantsStats: boolean;
  readonly #options: FeedReaderOptions;
  #queue: Chunk[] = [];
  #waiting = 0;
  #overflown = false;
  #isLive = false;
  #wake: () => void = () => {};
  #place: FeedPlace = { entries: 0, tasks: 0 };

  constructor(options: FeedReaderOptions) {
    this.#options = options;
    this.audience = options.instance === undefined ? EVERYONE : audienceOf(options.instance);
    this.watched = options.watched;
    this.wantsStats = options.stats;
    options.stream.signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** A cursor for a client that hears nothing, so that it need not read much when it returns. */
  get cursor(): string | undefined {
    if (!this.#isLive || this.#queue.length > 0 || this.#overflown) return undefined;
    return this.#id(later(this.#options.hub.sent, this.#place));
  }

  push(chunk: Chunk): void {
    if (this.#overflown) return;
    this.#waiting += chunk.size;
    if (this.#waiting > MOST_WAITING) {
      this.#overflown = true;
      this.#queue = [];
      this.#waiting = 0;
    } else this.#queue.push(chunk);
    this.#wake();
  }

  /**
   * Resolves when the stream has ended.
   * @param after where the client is; `unknown` if its cursor is not of this server
   * @param hello called with the place from which the stream begins
   */
  async run(after: FeedPlace | "unknown" | undefined, hello: (place: FeedPlace) => string): Promise<void> {
    const { hub, stream, instance } = this.#options;
    let known = after;
    let greeted = false;
    try {
      while (!stream.signal.aborted) {
        this.#overflown = false;
        const joined = await hub.join(this);
        const from = known ?? { entries: joined, tasks: joined };
        if (!greeted) {
          greeted = true;
          await stream.write(hello(from === "unknown" ? { entries: joined, tasks: joined } : from));
          hub.count(this.audience, instance);
        }
        this.#place = await this.#catchUp(from, joined);
        this.#isLive = true;
        await this.#live();
        this.#isLive = false;
        hub.leave(this);
        this.#queue = [];
        this.#waiting = 0;
        known = this.#place;
      }
    } finally {
      hub.leave(this);
    }
  }

  async #live(): Promise<void> {
    const { stream, form } = this.#options;
    while (!stream.signal.aborted && !this.#overflown) {
      const chunk = this.#queue.shift();
      if (chunk === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      this.#waiting -= chunk.size;
      const { place } = chunk;
      // Read from the store before.
      if (chunk.entries && place !== undefined && place.entries <= this.#place.entries) continue;
      // A cursor never leads back to entries that were sent.
      const isBehind = place !== undefined && place.entries < this.#place.entries;
      await stream.write(chunk.textFor(isBehind ? "bare" : form));
      if (place !== undefined) this.#place = later(place, this.#place);
    }
  }

  /** Sends what was committed between a place and a position. */
  async #catchUp(from: FeedPlace | "unknown", upTo: number): Promise<FeedPlace> {
    const { stream } = this.#options;
    const end = { entries: upTo, tasks: upTo };
    if (from === "unknown" || from.entries > upTo || from.tasks > upTo) {
      await stream.write(this.#reset(end));
      return end;
    }
    if (upTo - from.tasks > MOST_MISSED) await stream.write(this.#reset({ ...from, tasks: upTo }));
    else await this.#missedTasks(from, upTo);
    const tasks = { ...from, tasks: upTo };
    await this.#missedEntries(tasks, upTo);
    return end;
  }

  #reset(place: FeedPlace): string {
    const id = this.#id(place);
    return formatEvent({ event: "reset", id, data: { cursor: id } });
  }

  /** Takes one of the caller's places: what many streams read at once would take much memory and time. */
  async #missedTasks(from: FeedPlace, upTo: number): Promise<void> {
    const { store, stream, hub } = this.#options;
    const leave = await stream.place();
    try {
      const changes = await this.#changesBetween(from.tasks, upTo);
      let looked = 0;
      let note: string | undefined;
      for (const [key, change] of changes) {
        if (++looked % ROWS_AT_ONCE === 0) await stream.turn();
        if (stream.signal.aborted) return;
        const row = await store.tasks.byKey(key);
        if (row === undefined) continue;
        if (this.audience !== EVERYONE && audienceOf(row.instance) !== this.audience) continue;
        if (note !== undefined) await stream.write(eventText("task", note));
        note = hub.note(row, change);
      }
      if (note !== undefined) await stream.write(eventText("task", note, this.#id({ ...from, tasks: upTo })));
    } finally {
      leave();
    }
  }

  async #changesBetween(after: number, upTo: number): Promise<Map<JournalKey, TaskChange>> {
    const { store, stream } = this.#options;
    const changes = new Map<JournalKey, TaskChange>();
    for (let place = after; place < upTo && !stream.signal.aborted; ) {
      await stream.turn();
      const rows = await store.readAll(place, ROWS_AT_ONCE, CHARACTERS_AT_ONCE);
      for (const row of rows) {
        if (row.position > upTo) return changes;
        if (isTaskJournal(row.journal)) addChange(changes, row.journal, row.first, entriesOf(row));
      }
      place = rows.at(-1)?.position ?? upTo;
    }
    return changes;
  }

  async #missedEntries(from: FeedPlace, upTo: number): Promise<void> {
    const { store, stream, watched: key } = this.#options;
    if (key === undefined || from.entries >= upTo) return;
    const start = await this.#numberAt(key, from.entries);
    let leave = () => {};
    const read = async (after: number, limit: number, characters: number) => {
      leave();
      leave = await stream.place();
      return stream.signal.aborted ? [] : store.read(key, { after, limit, characters });
    };
    try {
      for await (const rows of pages(read, start, byNumber, systemLoop)) {
        for (const row of rows) {
          if (row.position <= from.entries) continue;
          if (row.position > upTo) return;
          const id = this.#id({ ...from, entries: row.position });
          await stream.write(eventText("entries", entriesJson(key, row.first, entriesOf(row)), id));
        }
      }
    } finally {
      leave();
    }
  }

  /** A journal's last number at a position: rows that follow it have a later one. */
  async #numberAt(key: JournalKey, position: number): Promise<number> {
    const { store } = this.#options;
    let low = 0;
    let high = await store.lastNumber(key);
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [row]: (JournalRow | undefined)[] = await store.read(key, { after: middle, limit: 1 });
      if (row === undefined) return low;
      if (row.position <= position) low = row.last;
      else high = Math.min(middle, row.first - 1);
    }
    return low;
  }

  #id(place: FeedPlace): string {
    return this.#options.cursors.write(this.#options.form, place);
  }
}

function later(a: FeedPlace, b: FeedPlace): FeedPlace {
  return { entries: Math.max(a.entries, b.entries), tasks: Math.max(a.tasks, b.tasks) };
}
