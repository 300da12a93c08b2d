/** The events of task conversations. */
import type { Entry } from "../../engine/index.js";
import type { RowPlace } from "../../journal/index.js";
import { journalEventId, type MapEvent } from "../events/event.js";
import type { JournalEvents } from "../events/event-log.js";
import { toMailEvent } from "../rules/events.js";
import { mailFactsOf } from "../rules/mail-facts.js";
import type { TaskProjection } from "./projection.js";
import { canSeeTask } from "./viewer.js";

/** Journals of tasks are named by a bare UUID; those of conversations have a prefix. */
const TASK_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class TaskJournalEvents implements JournalEvents<Entry> {
  readonly #conversations: TaskProjection;

  constructor(conversations: TaskProjection) {
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
      const event = toMailEvent(state.header.id, entry);
      events.push({
        ...event,
        id: journalEventId(position, index),
        sourceRole: state.participants.get(event.source)?.periods.at(-1)?.role,
        mail: mailFactsOf(state, entry),
        visibleLive: (actor) => canSeeTask(actor, instance),
        visibleInReplay: (actor) => canSeeTask(actor, instance),
      });
    }
    return events;
  }
}
