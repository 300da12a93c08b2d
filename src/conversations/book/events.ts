/** What the rows of native conversations tell the world. */
import type { RowPlace } from "../../journal/feed.js";
import type { ConversationEntry } from "../domain/entries.js";
import { eventOf, isToldAgain, isToldLive } from "../domain/events.js";
import { mailFactsOf } from "../domain/mail-facts.js";
import type { ConversationState } from "../domain/state.js";
import { journalEventId, type MapEvent } from "../log/event.js";
import type { JournalSource } from "../log/event-log.js";
import type { ConversationKernel } from "./kernel.js";

export function conversationSource(kernel: ConversationKernel): JournalSource<ConversationEntry> {
  return {
    owns: (journal) => kernel.owns(journal),
    eventsOf(row, entries) {
      const events = (state: ConversationState, durable: number): MapEvent[] =>
        eventsAt(row, entries, state, durable);
      return kernel.peek(row.journal, events) ?? kernel.read(row.journal, events).then((read) => read ?? []);
    },
  };
}

/** Who is told is judged at each entry's own number, so it does not matter how far the state is by now. */
function eventsAt(
  { journal, first, position }: RowPlace,
  entries: readonly ConversationEntry[],
  state: ConversationState,
  durable: number,
): MapEvent[] {
  const events: MapEvent[] = [];
  for (const [index, entry] of entries.entries()) {
    const event = eventOf(journal, entry);
    if (event === undefined) continue;
    const number = first + index;
    // Every turn comes through here, so nothing is spread together.
    events.push({
      id: journalEventId(position, index),
      type: event.type,
      timestamp: event.timestamp,
      source: event.source,
      data: event.data,
      mail: mailFactsOf(state, entry),
      causedBy: causeOf(position, entries, index),
      toldLive: (caller) => isToldLive(state, caller, number, entry),
      toldAgain: (caller) => isToldAgain(state, caller, number, entry, durable),
    });
  }
  return events;
}

/** What came with a creation was caused by it; an intercepted turn by the message. */
function causeOf(
  position: number,
  entries: readonly ConversationEntry[],
  index: number,
): readonly string[] | undefined {
  const entry = entries[index];
  if (entry?.t === "turn" && entry.causedBy !== undefined) return entry.causedBy;
  return index > 0 && entries[0]?.t === "created" ? [journalEventId(position, 0)] : undefined;
}
