/** Tasks as a source of events. */
import type { JournalRow } from "../../engine/ports.js";
import type { ConversationEntry } from "../domain/entries.js";
import { eventOf } from "../domain/events.js";
import { mailFactsOf } from "../domain/mail-facts.js";
import { journalEventId, type MapEvent } from "../log/event.js";
import type { JournalSource } from "../log/event-log.js";
import { type TaskConversationCache, taskEntries } from "./live.js";
import { maySeeTask } from "./viewer.js";

/** Names of tasks' journals are bare UUIDs; those of conversations have a prefix. */
const TASK_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class TaskSource implements JournalSource {
  readonly #cache: TaskConversationCache;

  constructor(cache: TaskConversationCache) {
    this.#cache = cache;
  }

  owns(journal: string): boolean {
    return TASK_KEY.test(journal);
  }

  async eventsOf(row: JournalRow): Promise<readonly MapEvent[]> {
    const conversation = await this.#cache.upTo(row.journal, row.last);
    if (conversation === undefined) return [];
    const { state, instance } = conversation;
    const derived: ConversationEntry[] = [];
    for (const [index, entry] of taskEntries(row).entries()) {
      derived.push(...(await this.#cache.derive(conversation, row.first + index, entry)));
    }
    const events: MapEvent[] = [];
    for (const [index, entry] of derived.entries()) {
      const event = eventOf(state.header.id, entry);
      if (event === undefined) continue;
      events.push({
        ...event,
        id: journalEventId(row.position, index),
        mail: mailFactsOf(state, entry),
        toldLive: (caller) => maySeeTask(caller, instance),
        toldAgain: (caller) => maySeeTask(caller, instance),
      });
    }
    return events;
  }
}
