/** Tasks as a source of events. */
import type { Entry } from "../../engine/entries.js";
import type { RowPlace } from "../../journal/feed.js";
import { eventOf } from "../domain/events.js";
import { mailFactsOf } from "../domain/mail-facts.js";
import { journalEventId, type MapEvent } from "../log/event.js";
import type { JournalSource } from "../log/event-log.js";
import type { TaskConversations } from "./live.js";
import { maySeeTask } from "./viewer.js";

/** Names of tasks' journals are bare UUIDs; those of conversations have a prefix. */
const TASK_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class TaskSource implements JournalSource<Entry> {
  readonly #conversations: TaskConversations;

  constructor(conversations: TaskConversations) {
    this.#conversations = conversations;
  }

  owns(journal: string): boolean {
    return TASK_KEY.test(journal);
  }

  async eventsOf(
    { journal, first, position }: RowPlace,
    entries: readonly Entry[],
  ): Promise<readonly MapEvent[]> {
    const conversation = await this.#conversations.including(journal, entries, first);
    if (conversation === undefined) return [];
    const { state, instance } = conversation;
    const events: MapEvent[] = [];
    const derived = await this.#conversations.derive(conversation, entries, first);
    for (const [index, entry] of derived.entries()) {
      const event = eventOf(state.header.id, entry);
      if (event === undefined) continue;
      events.push({
        ...event,
        id: journalEventId(position, index),
        mail: mailFactsOf(state, entry),
        toldLive: (caller) => maySeeTask(caller, instance),
        toldAgain: (caller) => maySeeTask(caller, instance),
      });
    }
    return events;
  }
}
