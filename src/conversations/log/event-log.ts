/**
 * The one order in which everybody is told what happened.
 *
 * Events of journals are published in commit order, each once, after their commit. Core events are kept in a ring in
 * memory only. Live and replay give the same events in the same order.
 */
import type { JournalRow, Store } from "../../engine/ports.js";
import { Feed, type RowPlace } from "../../journal/feed.js";
import { byNumber, byPosition, pages } from "../../journal/pages.js";
import { systemLoop } from "../../journal/system.js";
import { MapError } from "../domain/errors.js";
import { roughSize } from "../domain/size.js";
import type { Caller } from "../domain/types.js";
import { coreEventId, type MapEvent, parseEventId } from "./event.js";
import { EventRing } from "./event-ring.js";

/** Knows what the rows of some journals mean. */
export interface JournalSource<Entry extends object = object> {
  owns(journal: string): boolean;
  /** The events of one row, in order. The entries are as its journal's owner has written them. */
  eventsOf(row: RowPlace, entries: readonly Entry[]): readonly MapEvent[] | Promise<readonly MapEvent[]>;
}

export interface CoreEvent {
  readonly type: string;
  readonly source: string;
  readonly sourceRole?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly causedBy?: readonly string[];
  readonly isFor: (caller: Caller) => boolean;
  readonly dataFor?: (caller: Caller) => Readonly<Record<string, unknown>>;
  /** About how many bytes `dataFor` holds beyond `data`. */
  readonly size?: number;
}

export interface EventLogParts {
  readonly store: Store;
  readonly now: () => number;
  /** Names this process in the ids of core events. */
  readonly epoch: string;
  /** Core events that are kept for replay. */
  readonly ringSize: number;
  /** And their bytes, roughly. Default: as many as it takes. */
  readonly ringBytes?: number;
  readonly report: (error: unknown) => void;
}

export interface ReplayStart {
  readonly afterEventId?: string;
  readonly fromTimestamp?: number;
  /** Only events of this journal. */
  readonly journal?: string;
}

export type EventListener = (event: MapEvent) => void;

export class EventLog {
  readonly #parts: EventLogParts;
  readonly #sources: JournalSource[] = [];
  readonly #listeners = new Set<EventListener>();
  readonly #ring: EventRing;
  readonly #feed: Feed;
  #coreCounter = 0;

  constructor(parts: EventLogParts) {
    const { store, report } = parts;
    this.#parts = parts;
    this.#feed = new Feed({
      store,
      report,
      loop: systemLoop,
      wants: (journal) => this.#sourceOf(journal) !== undefined,
      take: async (row, entries) => {
        const events = this.#sourceOf(row.journal)?.eventsOf(row, entries) ?? [];
        for (const event of await events) this.#publish(event);
      },
    });
    this.#ring = new EventRing({ count: parts.ringSize, bytes: parts.ringBytes ?? Number.POSITIVE_INFINITY });
  }

  close(): void {
    this.#feed.close();
  }

  addSource(source: JournalSource): void {
    this.#sources.push(source);
  }

  /** Calls the listener with everything that happens from now on. */
  async listen(listener: EventListener): Promise<() => void> {
    await this.#feed.start();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#feed.stop();
    };
  }

  /** Publishes a core event. Returns its id, so that others can name it as their cause. */
  emit(event: CoreEvent): string {
    const { now, epoch } = this.#parts;
    const { isFor, dataFor, size = 0, ...facts } = event;
    const full: MapEvent = {
      ...facts,
      id: coreEventId(this.#feed.position, this.#coreCounter++, epoch),
      timestamp: now(),
      toldLive: isFor,
      toldAgain: isFor,
      ...(dataFor !== undefined && { dataFor }),
    };
    this.#ring.add(full, size + roughSize(facts));
    if (this.#listeners.size > 0) this.#feed.add(() => this.#publish(full));
    return full.id;
  }

  /**
   * Events after an id, or from a time on, oldest first, as they would be told live.
   * @throws MapError INVALID_PARAMS for an id that is unknown or no longer kept.
   */
  async *replay(from: ReplayStart): AsyncGenerator<MapEvent, void, undefined> {
    const { afterEventId, journal } = from;
    if (journal !== undefined) {
      if (afterEventId !== undefined) await this.#startAfter(afterEventId);
      yield* this.#replayJournal(journal, afterEventId);
      return;
    }
    const start =
      afterEventId === undefined
        ? await this.#positionBefore(from.fromTimestamp)
        : await this.#startAfter(afterEventId);
    // What the ring has now; what is emitted later is for the next call.
    const ring = this.#ring.after(afterEventId);
    let nextInRing = 0;
    const readPage = (after: number, limit: number) => this.#parts.store.readAll(after, limit);
    for await (const rows of pages(readPage, start, byPosition, systemLoop)) {
      for (const row of rows) {
        for (const event of await this.#read(row)) {
          if (afterEventId !== undefined && event.id <= afterEventId) continue;
          for (
            let core = ring[nextInRing];
            core !== undefined && core.id < event.id;
            core = ring[nextInRing]
          ) {
            nextInRing++;
            yield core;
          }
          yield event;
        }
      }
    }
    yield* ring.slice(nextInRing);
  }

  /** Where only one journal is asked about, the others need not be read. */
  async *#replayJournal(
    journal: string,
    after: string | undefined,
  ): AsyncGenerator<MapEvent, void, undefined> {
    const start = after === undefined ? 0 : await this.#numberBefore(journal, after);
    const readPage = (from: number, limit: number) => this.#parts.store.read(journal, { after: from, limit });
    for await (const rows of pages(readPage, start, byNumber, systemLoop)) {
      for (const row of rows) {
        for (const event of await this.#read(row)) if (after === undefined || event.id > after) yield event;
      }
    }
  }

  /** A number of the journal before everything that has happened after an event. Found by halving: positions grow. */
  async #numberBefore(journal: string, eventId: string): Promise<number> {
    const wanted = parseEventId(eventId)?.position ?? 0;
    const { store } = this.#parts;
    let low = 0;
    let high = await store.lastNumber(journal);
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [row] = await store.read(journal, { after: middle, limit: 1 });
      if (row === undefined || row.position >= wanted) high = middle;
      else low = row.last;
    }
    return low;
  }

  #publish(event: MapEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        // One subscriber's trouble is not another's.
        this.#parts.report(error);
      }
    }
  }

  #sourceOf(journal: string): JournalSource | undefined {
    return this.#sources.find((source) => source.owns(journal));
  }

  #read(row: JournalRow): readonly MapEvent[] | Promise<readonly MapEvent[]> {
    return this.#sourceOf(row.journal)?.eventsOf(row, JSON.parse(row.data)) ?? [];
  }

  async #startAfter(id: string): Promise<number> {
    const parsed = parseEventId(id);
    const expired = (reason: "event_unknown" | "event_expired"): MapError =>
      new MapError("INVALID_PARAMS", `afterEventId: ${reason.replace("_", " ")}`, { reason });
    if (parsed === undefined) throw expired("event_unknown");
    if (parsed.kind === "core") {
      if (!this.#ring.has(id)) throw expired("event_expired");
      return parsed.position;
    }
    const { store } = this.#parts;
    const [row] = await store.readAll(parsed.position - 1, 1);
    if (row?.position === parsed.position) {
      if (!(await this.#read(row)).some((event) => event.id === id)) throw expired("event_unknown");
      return parsed.position - 1;
    }
    // Retention has removed it. Its place in the order is still one to go on from, if there ever was such a place.
    if (row === undefined && (await store.position()) < parsed.position) {
      throw expired("event_unknown");
    }
    return parsed.position;
  }

  /** A position before everything that happened at or after a time, found by halving: times grow along the log. */
  async #positionBefore(timestamp: number | undefined): Promise<number> {
    if (timestamp === undefined) return 0;
    // A conversation's own time may be ahead of the clock by as much as the clock was set back.
    const wanted = timestamp - 60_000;
    let low = 0;
    let high = await this.#parts.store.position();
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [row] = await this.#parts.store.readAll(middle, 1);
      if (row === undefined || timeOf(row) >= wanted) high = middle;
      else low = row.position;
    }
    return low;
  }
}

function timeOf(row: JournalRow): number {
  const entries: unknown = JSON.parse(row.data);
  const first: unknown = Array.isArray(entries) ? entries[0] : undefined;
  const at = typeof first === "object" && first !== null && "at" in first ? first.at : undefined;
  return typeof at === "number" ? at : Number.POSITIVE_INFINITY;
}
