/** Native conversations as a source of events. */
import type { JournalRow } from "../../engine/ports.js";
import type { ConversationEntry } from "../domain/entries.js";
import { eventOf, isToldAgain, isToldLive } from "../domain/events.js";
import { mailFactsOf } from "../domain/mail-facts.js";
import { journalEventId, type MapEvent } from "../log/event.js";
import type { JournalSource } from "../log/event-log.js";
import { conversationEntries, type LiveConversation } from "./live.js";

const PREFIX = "conv-";

export class ConversationSource implements JournalSource {
  readonly #peek: (id: string) => LiveConversation | undefined;
  readonly #get: (id: string) => Promise<LiveConversation | undefined>;
  /** What a writer has just committed need not be parsed again. */
  readonly #fresh = new WeakMap<JournalRow, readonly ConversationEntry[]>();

  constructor(
    peek: (id: string) => LiveConversation | undefined,
    get: (id: string) => Promise<LiveConversation | undefined>,
  ) {
    this.#peek = peek;
    this.#get = get;
  }

  owns(journal: string): boolean {
    return journal.startsWith(PREFIX);
  }

  remember(row: JournalRow, entries: readonly ConversationEntry[]): void {
    this.#fresh.set(row, entries);
  }

  eventsOf(row: JournalRow): readonly MapEvent[] | Promise<readonly MapEvent[]> {
    const live = this.#peek(row.journal);
    if (live !== undefined && live.committed >= row.last) return this.#events(row, live);
    return this.#get(row.journal).then((loaded) => (loaded === undefined ? [] : this.#events(row, loaded)));
  }

  #events(row: JournalRow, live: LiveConversation): MapEvent[] {
    const entries = this.#fresh.get(row) ?? conversationEntries(row);
    const { state } = live;
    const events: MapEvent[] = [];
    for (const [index, entry] of entries.entries()) {
      const event = eventOf(row.journal, entry);
      if (event === undefined) continue;
      const number = row.first + index;
      // Every turn comes through here, so nothing is spread together.
      events.push({
        id: journalEventId(row.position, index),
        type: event.type,
        timestamp: event.timestamp,
        source: event.source,
        data: event.data,
        mail: mailFactsOf(state, entry),
        causedBy: causeOf(row, entries, index),
        toldLive: (caller) => isToldLive(state, caller, number, entry),
        toldAgain: (caller) => isToldAgain(state, caller, number, entry, live.committed),
      });
    }
    return events;
  }
}

/** What came with a creation was caused by it; an intercepted turn by the message. */
function causeOf(
  row: JournalRow,
  entries: readonly ConversationEntry[],
  index: number,
): readonly string[] | undefined {
  const entry = entries[index];
  if (entry?.t === "turn" && entry.causedBy !== undefined) return entry.causedBy;
  return index > 0 && entries[0]?.t === "created" ? [journalEventId(row.position, 0)] : undefined;
}
