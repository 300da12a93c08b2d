/**
 * Everything that happens in tasks, for all listeners of `GET /feed`. It follows the journals only while there are
 * listeners, and makes each event once. It sends tasks four times a second, and the entries of watched tasks twenty times.
 */
import type { Clock, Report } from "../../../base/index.js";
import {
  ALL_TASKS_CHANNEL,
  DeltaBuffer,
  type DeltaNotification,
  type Entry,
  type InstanceId,
  isTaskRemoval,
  type TaskRow,
  type TaskStatus,
  WATCH_CHANNEL,
} from "../../../engine/index.js";
import { eventText, formatEvent, type StatsSource, tokenData } from "../../../extension/index.js";
import {
  Feed,
  type JournalKey,
  type RowPlace,
  type Subscription,
  systemLoop,
} from "../../../journal/index.js";
import type { Mailroom } from "../../../library/index.js";
import type { Cursors, FeedPlace } from "../cursors.js";
import { entryText } from "../journal-page.js";
import { Chunk } from "./chunk.js";
import { addChange, audienceOf, changesStatus, noteOf, type TaskChange } from "./notes.js";

/** Milliseconds between two events of a task, and between two of a watched journal. */
const TASKS_EVERY = 250;
const ENTRIES_EVERY = 50;
const COUNTS_EVERY = 2_000;
/** Counting takes at most one part in 200 of the time. */
const COUNTING_SHARE = 200;
/** Tasks in one event, newest first. When more change, lists are read again now and then. */
const MOST_NOTES = 125;
const RESET_EVERY = 5_000;
const MOST_OWNERS = 50_000;

/** Sees every task. */
export const EVERYONE = "*";

export interface FeedListener {
  /** `role:id`, or `EVERYONE`. */
  readonly audience: string;
  readonly watched: JournalKey | undefined;
  /** Gets a row of figures each second. */
  readonly wantsStats: boolean;
  push(chunk: Chunk): void;
}

export interface FeedHubParts {
  readonly mailroom: Mailroom;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly report: Report;
  readonly stats: () => StatsSource | undefined;
}

interface Watched {
  readonly listeners: Set<FeedListener>;
  readonly deltas: Subscription;
  /** Rows since the last flush, each with the partial text before it. */
  rows: {
    readonly text: readonly DeltaNotification[];
    readonly place: RowPlace;
    readonly entries: readonly Entry[];
  }[];
  /** Partial text since the last row or flush. */
  readonly text: DeltaBuffer;
}

interface Counting {
  readonly instance: InstanceId | undefined;
  stale: boolean;
  last: Readonly<Record<TaskStatus, number>> | undefined;
  notBefore: number;
  running: boolean;
}

export class FeedHub {
  readonly #parts: FeedHubParts;
  readonly #feed: Feed;
  readonly #listeners = new Set<FeedListener>();
  readonly #watched = new Map<JournalKey, Watched>();
  readonly #counts = new Map<string, Counting>();
  #changes = new Map<JournalKey, TaskChange>();
  #taken = 0;
  /** Everything up to here was sent, of entries and of tasks. */
  #entriesSent = 0;
  #tasksSent = 0;
  #entriesTimer: (() => void) | undefined;
  #tasksTimer: (() => void) | undefined;
  #secondTimer: (() => void) | undefined;
  #removals: Subscription | undefined;
  #definition = "";
  #endStats: (() => void) | undefined;
  readonly #owners = new Map<JournalKey, string>();
  /** Audiences that were not told of every change. */
  readonly #overflown = new Set<string>();
  #resetAfter = 0;

  constructor(parts: FeedHubParts) {
    const { mailroom, report } = parts;
    this.#parts = parts;
    this.#feed = new Feed({
      store: mailroom.store,
      loop: systemLoop,
      wants: isTaskJournal,
      take: (row, entries) => this.#take(row, entries),
      report: (cause) => report({ code: "listener_failed", message: String(cause), cause }),
    });
  }

  /** Everything up to here has been told to listeners that keep up. */
  get sent(): FeedPlace {
    return { entries: this.#entriesSent, tasks: this.#tasksSent };
  }

  /** The listener gets everything after the position that is returned; the rest is for it to read. */
  async join(listener: FeedListener): Promise<number> {
    const { bus, runtime } = this.#parts.mailroom;
    if (this.#listeners.size === 0) await this.#feed.start();
    // Another listener may have come first.
    if (this.#listeners.size === 0) {
      this.#taken = this.#feed.position;
      this.#entriesSent = this.#taken;
      this.#tasksSent = this.#taken;
      this.#definition = runtime.definition.hash;
      this.#removals ??= bus.subscribe(ALL_TASKS_CHANNEL, (note) => this.#removed(note));
      this.#secondTimer ??= this.#everySecond();
    }
    this.#listeners.add(listener);
    if (listener.wantsStats) this.#endStats ??= this.#parts.stats()?.onRow((row) => this.#sendStats(row));
    if (listener.watched !== undefined) this.#watch(listener, listener.watched);
    return this.#feed.position;
  }

  leave(listener: FeedListener): void {
    if (!this.#listeners.delete(listener)) return;
    const { watched: key } = listener;
    const watched = key === undefined ? undefined : this.#watched.get(key);
    if (key !== undefined && watched?.listeners.delete(listener) === true && watched.listeners.size === 0) {
      watched.deltas.close();
      this.#watched.delete(key);
      this.#parts.mailroom.bus.publish(WATCH_CHANNEL, { key, watching: false });
    }
    if (!this.#hasAudience(listener.audience)) this.#counts.delete(listener.audience);
    if (![...this.#listeners].some(({ wantsStats }) => wantsStats)) {
      this.#endStats?.();
      this.#endStats = undefined;
    }
    if (this.#listeners.size > 0) return;
    this.#feed.stop();
    this.#removals?.close();
    this.#removals = undefined;
    for (const cancel of [this.#entriesTimer, this.#tasksTimer, this.#secondTimer]) cancel?.();
    this.#entriesTimer = this.#tasksTimer = this.#secondTimer = undefined;
    this.#changes = new Map();
  }

  close(): void {
    for (const listener of [...this.#listeners]) this.leave(listener);
    this.#feed.close();
  }

  /** The text of an event about a task, for a listener that reads what it missed. */
  note(row: TaskRow, change: TaskChange): string {
    return noteOf(this.#parts.mailroom, row, change);
  }

  /** Sends an audience its task counts, now and when they change. */
  count(audience: string, instance: InstanceId | undefined): void {
    const counting = this.#counts.get(audience);
    if (counting === undefined) {
      const fresh: Counting = { instance, stale: true, last: undefined, notBefore: 0, running: false };
      this.#counts.set(audience, fresh);
      this.#recount(audience, fresh);
    } else if (counting.last !== undefined) {
      this.#pushTo(audience, this.#passing("counts", counting.last));
    }
  }

  #watch(listener: FeedListener, key: JournalKey): void {
    const { bus, runtime } = this.#parts.mailroom;
    const known = this.#watched.get(key);
    if (known !== undefined) {
      known.listeners.add(listener);
      // It has missed the beginning of what is being written.
      runtime.watchText(key, (note) => listener.push(this.#token(note))).close();
      return;
    }
    const text = new DeltaBuffer();
    const deltas = runtime.watchText(key, (note) => {
      text.add(note);
      this.#scheduleEntries();
    });
    this.#watched.set(key, { listeners: new Set([listener]), deltas, rows: [], text });
    // Events of other swarms that work on the task are fetched while it is watched.
    bus.publish(WATCH_CHANNEL, { key, watching: true });
  }

  #take(place: RowPlace, entries: readonly object[]): void {
    const taken = areEntries(entries) ? entries : [];
    this.#taken = place.position;
    const [first] = taken;
    if (first?.t === "opened") this.#rememberOwner(place.journal, first.task.instance);
    addChange(this.#changes, place.journal, place.first, taken);
    const watched = this.#watched.get(place.journal);
    if (watched !== undefined) {
      watched.rows.push({ text: watched.text.take(), place, entries: taken });
      this.#scheduleEntries();
    }
    this.#tasksTimer ??= this.#parts.clock.after(TASKS_EVERY, () => void this.#sendTasks());
  }

  #scheduleEntries(): void {
    this.#entriesTimer ??= this.#parts.clock.after(ENTRIES_EVERY, () => this.#sendEntries());
  }

  #sendEntries(): void {
    this.#entriesTimer?.();
    this.#entriesTimer = undefined;
    const { cursors } = this.#parts;
    for (const [key, watched] of this.#watched) {
      const { rows, text, listeners } = watched;
      watched.rows = [];
      const chunks: Chunk[] = [];
      for (const { text: before, place, entries } of rows) {
        for (const note of before) chunks.push(this.#token(note));
        const json = entriesJson(key, place.first, entries);
        chunks.push(
          new Chunk(cursors, {
            place: { entries: place.position, tasks: this.#tasksSent },
            entries: true,
            size: json.length,
            text: (id) => eventText("entries", json, id),
          }),
        );
      }
      for (const note of text.take()) chunks.push(this.#token(note));
      for (const chunk of chunks) for (const listener of listeners) listener.push(chunk);
    }
    this.#entriesSent = this.#taken;
  }

  async #sendTasks(): Promise<void> {
    const changes = this.#changes;
    const upTo = this.#taken;
    this.#changes = new Map();
    try {
      const notes = await this.#notes(changes);
      // Entries first, so that one id stands for both.
      this.#sendEntries();
      this.#tasksSent = upTo;
      const place = { entries: this.#entriesSent, tasks: upTo };
      this.#sendOverflow(place);
      for (const [audience, texts] of notes) {
        const size = texts.reduce((sum, text) => sum + text.length, 0);
        const text = (id: string | undefined) =>
          texts.map((json, at) => eventText("task", json, at === texts.length - 1 ? id : undefined)).join("");
        this.#pushTo(audience, new Chunk(this.#parts.cursors, { place, size, text }));
      }
    } catch (cause) {
      this.#parts.report({ code: "listener_failed", message: `the feed failed: ${String(cause)}`, cause });
    }
    this.#tasksTimer = undefined;
    if ((this.#changes.size > 0 || this.#overflown.size > 0) && this.#listeners.size > 0) {
      this.#tasksTimer = this.#parts.clock.after(TASKS_EVERY, () => void this.#sendTasks());
    }
  }

  /** Makes audiences that missed changes read their lists again. Entries of watched tasks are never left out. */
  #sendOverflow(place: FeedPlace): void {
    const { clock, cursors } = this.#parts;
    if (this.#overflown.size === 0 || clock.now() < this.#resetAfter) return;
    this.#resetAfter = clock.now() + RESET_EVERY;
    const text = (id: string | undefined) => formatEvent({ event: "reset", id, data: { cursor: id ?? "" } });
    for (const audience of this.#overflown)
      this.#pushTo(audience, new Chunk(cursors, { place, size: 200, text }));
    this.#overflown.clear();
  }

  /** The texts of what has changed, by audience. */
  async #notes(changes: ReadonlyMap<JournalKey, TaskChange>): Promise<Map<string, string[]>> {
    const notes = new Map<string, string[]>();
    for (const [key, audiences] of await this.#told(changes)) {
      const change = changes.get(key);
      const row = await this.#parts.mailroom.store.tasks.byKey(key);
      // Removed meanwhile.
      if (row === undefined || change === undefined) continue;
      const note = this.note(row, change);
      for (const audience of audiences) {
        const texts = notes.get(audience);
        if (texts === undefined) notes.set(audience, [note]);
        else texts.push(note);
      }
    }
    return notes;
  }

  /** The tasks to send, with their audiences. Of an audience with too many changes, the newest. */
  async #told(changes: ReadonlyMap<JournalKey, TaskChange>): Promise<Map<JournalKey, string[]>> {
    const byAudience = new Map<string, JournalKey[]>();
    for (const { audience } of this.#listeners) byAudience.set(audience, []);
    for (const [key, change] of changes) {
      const owner = byAudience.size === 1 && byAudience.has(EVERYONE) ? EVERYONE : await this.#ownerOf(key);
      for (const audience of owner === EVERYONE ? [EVERYONE] : [EVERYONE, owner]) {
        byAudience.get(audience)?.push(key);
        if (changesStatus(change)) this.#markStale(audience);
      }
    }
    const told = new Map<JournalKey, string[]>();
    for (const [audience, keys] of byAudience) {
      if (keys.length > MOST_NOTES) this.#overflown.add(audience);
      for (const key of keys.slice(-MOST_NOTES)) {
        const others = told.get(key);
        if (others === undefined) told.set(key, [audience]);
        else others.push(audience);
      }
    }
    return told;
  }

  /** Known from the entry that opened the task, if that was seen. */
  async #ownerOf(key: JournalKey): Promise<string> {
    const known = this.#owners.get(key);
    if (known !== undefined) return known;
    const row = await this.#parts.mailroom.store.tasks.byKey(key);
    return row === undefined ? "" : this.#rememberOwner(key, row.instance);
  }

  #rememberOwner(key: JournalKey, instance: InstanceId): string {
    const owner = audienceOf(instance);
    if (this.#owners.size >= MOST_OWNERS) this.#owners.clear();
    this.#owners.set(key, owner);
    return owner;
  }

  #removed(note: unknown): void {
    if (!isTaskRemoval(note)) return;
    const { key, taskId, instance } = note;
    const chunk = this.#passing("removed", { key, task_id: taskId });
    for (const audience of [EVERYONE, audienceOf(instance)]) {
      this.#pushTo(audience, chunk);
      this.#markStale(audience);
    }
  }

  #everySecond(): () => void {
    return this.#parts.clock.after(1_000, () => {
      this.#secondTimer = this.#everySecond();
      const { definition } = this.#parts.mailroom.runtime;
      if (definition.hash !== this.#definition) {
        this.#definition = definition.hash;
        const chunk = this.#passing("swarm", { name: definition.name, definition: definition.hash });
        for (const listener of this.#listeners) listener.push(chunk);
      }
      for (const [audience, counting] of this.#counts) if (counting.stale) this.#recount(audience, counting);
    });
  }

  #sendStats(row: readonly (number | null)[]): void {
    const chunk = this.#passing("stats", { row });
    for (const listener of this.#listeners) if (listener.wantsStats) listener.push(chunk);
  }

  #markStale(audience: string): void {
    const counting = this.#counts.get(audience);
    if (counting !== undefined) counting.stale = true;
  }

  #recount(audience: string, counting: Counting): void {
    const { clock, mailroom, report } = this.#parts;
    const began = clock.now();
    if (counting.running || began < counting.notBefore) return;
    counting.running = true;
    counting.stale = false;
    mailroom.store.tasks
      .counts(counting.instance)
      .then((counts) => {
        const { last } = counting;
        counting.last = counts;
        if (JSON.stringify(last) !== JSON.stringify(counts))
          this.#pushTo(audience, this.#passing("counts", counts));
      })
      .catch((cause: unknown) => report({ code: "listener_failed", message: String(cause), cause }))
      .finally(() => {
        counting.running = false;
        const took = clock.now() - began;
        counting.notBefore = clock.now() + Math.max(COUNTS_EVERY, took * COUNTING_SHARE);
      });
  }

  #token(note: DeltaNotification): Chunk {
    return this.#passing("token", { key: note.key, ...tokenData(note) });
  }

  /** An event that is not repeated. */
  #passing(event: string, data: unknown): Chunk {
    const text = formatEvent({ event, data });
    return new Chunk(this.#parts.cursors, { size: text.length, text: () => text });
  }

  #pushTo(audience: string, chunk: Chunk): void {
    for (const listener of this.#listeners) if (listener.audience === audience) listener.push(chunk);
  }

  #hasAudience(audience: string): boolean {
    for (const listener of this.#listeners) if (listener.audience === audience) return true;
    return false;
  }
}

/** Journals of tasks are named by a bare UUID; others have a prefix. */
export function isTaskJournal(key: JournalKey): boolean {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(key);
}

export function entriesJson(key: JournalKey, first: number, entries: readonly Entry[]): string {
  const texts = entries.map((entry, index) => entryText(first + index, entry));
  return `{"key":${JSON.stringify(key)},"first":${first},"entries":[${texts.join(",")}]}`;
}

/** The writer's own objects, or parsed from what it wrote: the first tells for all. */
function areEntries(entries: readonly object[]): entries is readonly Entry[] {
  const [first] = entries;
  return first !== undefined && "t" in first;
}
