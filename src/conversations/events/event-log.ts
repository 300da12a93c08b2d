/**
 * The global order of events.
 *
 * Events of journals are published in commit order, each once, after their commit. Core events are kept in
 * memory only. Live delivery and replay give the same events in the same order.
 */
import type { Store } from "../../engine/index.js";
import type { JournalRow } from "../../journal/index.js";
import { byNumber, byPosition, Feed, pages, type RowPlace, systemLoop } from "../../journal/index.js";
import { MapError } from "../rules/errors.js";
import { roughSize } from "../rules/size.js";
import type { Actor } from "../rules/types.js";
import { coreEventId, eventMark, type MapEvent, parseEventId, positionIn } from "./event.js";
import { EventRing } from "./event-ring.js";

/** Turns the rows of some journals into events. */
export interface JournalEvents<Entry extends object = object> {
  owns(journal: string): boolean;
  /** The events of one row, in order. `entries` are as the journal's owner wrote them. */
  eventsOf(row: RowPlace, entries: readonly Entry[]): readonly MapEvent[] | Promise<readonly MapEvent[]>;
}

export interface CoreEvent {
  readonly type: string;
  readonly source: string;
  readonly sourceRole?: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly causedBy?: readonly string[];
  readonly isFor: (actor: Actor) => boolean;
  readonly dataFor?: (actor: Actor) => Readonly<Record<string, unknown>>;
  /** Approximate bytes that `dataFor` holds beyond `data`. */
  readonly size?: number;
}

export interface EventLogParts {
  readonly store: Store;
  readonly now: () => number;
  /** Identifies this process in the ids of core events. */
  readonly epoch: string;
  /** The number of core events kept for replay. */
  readonly ringSize: number;
  /** Their approximate size in bytes. Default: unlimited. */
  readonly ringBytes?: number;
  readonly report: (error: unknown) => void;
}

export interface ReplayStart {
  readonly afterEventId?: string;
  /** A value of `EventLog.mark`, or the id of an event that was seen. Never unknown, and never expired. */
  readonly afterMark?: string;
  readonly fromTimestamp?: number;
  /** Only events of this journal. */
  readonly journal?: string;
}

export type EventListener = (event: MapEvent) => void;

export class EventLog {
  readonly #parts: EventLogParts;
  readonly #sources: JournalEvents[] = [];
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

  addSource(source: JournalEvents): void {
    this.#sources.push(source);
  }

  /** Calls the listener with every event from now on. */
  async listen(listener: EventListener): Promise<() => void> {
    await this.#feed.start();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#feed.stop();
    };
  }

  /** Sorts after all events so far and before all later ones. */
  mark(): string {
    return eventMark(this.#feed.position, this.#coreCounter);
  }

  /** Publishes a core event. Returns its id, so that other events can name it as their cause. */
  emit(event: CoreEvent): string {
    const { now, epoch } = this.#parts;
    const { isFor, dataFor, size = 0, ...facts } = event;
    const full: MapEvent = {
      ...facts,
      id: coreEventId(this.#feed.position, this.#coreCounter++, epoch),
      timestamp: now(),
      visibleLive: isFor,
      visibleInReplay: isFor,
      ...(dataFor !== undefined && { dataFor }),
    };
    this.#ring.add(full, size + roughSize(facts));
    if (this.#listeners.size > 0) this.#feed.add(() => this.#publish(full));
    return full.id;
  }

  /**
   * Events after an id or from a time on, oldest first, as they are delivered live.
   * @throws MapError INVALID_PARAMS if the id is unknown or has expired
   */
  async *replay(from: ReplayStart): AsyncGenerator<MapEvent, void, undefined> {
    const { afterEventId, journal } = from;
    if (journal !== undefined) {
      if (afterEventId !== undefined) await this.#startAfter(afterEventId);
      yield* this.#replayJournal(journal, afterEventId);
      return;
    }
    const { afterMark } = from;
    const start =
      afterMark !== undefined
        ? Math.max(0, positionIn(afterMark) - 1)
        : afterEventId === undefined
          ? await this.#positionBefore(from.fromTimestamp)
          : await this.#startAfter(afterEventId);
    const last = afterMark ?? afterEventId;
    // Take the ring's events now; later ones belong to the next call.
    const ring = this.#ring.after(last);
    let nextInRing = 0;
    const readPage = (after: number, limit: number, characters: number) =>
      this.#parts.store.readAll(after, limit, characters);
    for await (const rows of pages(readPage, start, byPosition, systemLoop)) {
      for (const row of rows) {
        for (const event of await this.#read(row)) {
          if (last !== undefined && event.id <= last) continue;
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

  /** Reads a single journal instead of all of them. */
  async *#replayJournal(
    journal: string,
    after: string | undefined,
  ): AsyncGenerator<MapEvent, void, undefined> {
    const start = after === undefined ? 0 : await this.#numberBefore(journal, after);
    const readPage = (from: number, limit: number, characters: number) =>
      this.#parts.store.read(journal, { after: from, limit, characters });
    for await (const rows of pages(readPage, start, byNumber, systemLoop)) {
      for (const row of rows) {
        for (const event of await this.#read(row)) if (after === undefined || event.id > after) yield event;
      }
    }
  }

  /** A number in the journal before all events that follow `eventId`, by binary search on positions. */
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
        // A failing listener must not affect the others.
        this.#parts.report(error);
      }
    }
  }

  #sourceOf(journal: string): JournalEvents | undefined {
    return this.#sources.find((source) => source.owns(journal));
  }

  #read(row: JournalRow): readonly MapEvent[] | Promise<readonly MapEvent[]> {
    return this.#sourceOf(row.journal)?.eventsOf(row, JSON.parse(row.data)) ?? [];
  }

  async #startAfter(id: string): Promise<number> {
    const parsed = parseEventId(id);
    const expired = (reason: "event_unknown" | "event_expired", position?: string): MapError =>
      new MapError("INVALID_PARAMS", `afterEventId: ${reason.replace("_", " ")}`, {
        reason,
        ...(position !== undefined && { position }),
      });
    const isAhead = async (position: number): Promise<boolean> =>
      (await this.#parts.store.position()) < position;
    if (parsed === undefined) throw expired("event_unknown");
    if (parsed.kind === "core") {
      if (this.#ring.has(id)) return parsed.position;
      // Events of journals are still there: the reader can continue with those.
      throw expired(
        "event_expired",
        (await isAhead(parsed.position)) ? undefined : eventMark(parsed.position, 0),
      );
    }
    // Whether there is such an event must not be visible to callers who may not see it: every earlier position is accepted.
    if (await isAhead(parsed.position)) throw expired("event_unknown");
    return Math.max(0, parsed.position - 1);
  }

  /** A position before everything at or after a time, by binary search: times never decrease in the log. */
  async #positionBefore(timestamp: number | undefined): Promise<number> {
    if (timestamp === undefined) return 0;
    // A conversation's time can be ahead of the clock by as much as the clock was set back.
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
