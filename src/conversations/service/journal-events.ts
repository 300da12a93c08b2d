/** The events of native conversations. */
import type { RowPlace } from "../../journal/index.js";
import { journalEventId, type MapEvent } from "../events/event.js";
import type { JournalEvents } from "../events/event-log.js";
import type { ConversationEntry } from "../rules/entries.js";
import { isVisibleInReplay, isVisibleLive, toMailEvent } from "../rules/events.js";
import { mailFactsOf } from "../rules/mail-facts.js";
import type { ConversationState } from "../rules/state.js";
import type { ConversationKernel } from "./kernel.js";

export function conversationJournalEvents(kernel: ConversationKernel): JournalEvents<ConversationEntry> {
  return {
    owns: (journal) => kernel.owns(journal),
    eventsOf(row, entries) {
      const events = (state: ConversationState, durable: number): MapEvent[] =>
        eventsAt(row, entries, state, durable);
      return kernel.peek(row.journal, events) ?? kernel.read(row.journal, events).then((read) => read ?? []);
    },
  };
}

/** Visibility is decided at each entry's own number, so a newer state gives the same result. */
function eventsAt(
  { journal, first, position }: RowPlace,
  entries: readonly ConversationEntry[],
  state: ConversationState,
  durable: number,
): MapEvent[] {
  const events: MapEvent[] = [];
  for (const [index, entry] of entries.entries()) {
    const event = toMailEvent(journal, entry);
    const number = first + index;
    // Hot path: avoid spreading objects.
    events.push({
      id: journalEventId(position, index),
      type: event.type,
      timestamp: event.timestamp,
      source: event.source,
      sourceRole: roleOf(state, event.source),
      data: event.data,
      mail: mailFactsOf(state, entry),
      causedBy: causeOf(position, entries, index),
      visibleLive: (actor) => isVisibleLive(state, actor, number, entry),
      visibleInReplay: (actor) => isVisibleInReplay(state, actor, number, entry, durable),
    });
  }
  return events;
}

/** The role of an agent, or else the role in the conversation, for `fromRoles`. */
function roleOf(state: ConversationState, source: string): string | undefined {
  const record = state.participants.get(source);
  return record?.agentInfo?.role ?? record?.periods.at(-1)?.role;
}

/** Entries of a creation are caused by it; an intercepted turn is caused by its message. */
function causeOf(
  position: number,
  entries: readonly ConversationEntry[],
  index: number,
): readonly string[] | undefined {
  const entry = entries[index];
  if (entry?.t === "turn" && entry.causedBy !== undefined) return entry.causedBy;
  return index > 0 && entries[0]?.t === "created" ? [journalEventId(position, 0)] : undefined;
}
