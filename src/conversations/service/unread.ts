/** Read cursors: how far each caller has read each conversation, and how many turns of others are newer. */
import type { Store } from "../../engine/index.js";
import type { ConversationReads, ReadCursorPut } from "../ports.js";
import { requireTurn } from "../rules/checks.js";
import { visibleTurns } from "../rules/queries.js";
import type { Actor } from "../rules/types.js";
import type { ReadableConversation } from "./search.js";

/** Counting stops here: beyond it people only want to know that there are many. */
const MOST_COUNTED = 1000;

export interface Unread {
  readonly conversationId: string;
  readonly unread: number;
  /** True if there are more than were counted. */
  readonly more?: true;
}

export class ReadCursors {
  readonly #store: Store;
  readonly #index: ConversationReads;

  constructor(store: Store, index: ConversationReads) {
    this.#store = store;
    this.#index = index;
  }

  /** The actor has read everything up to this turn. Durable when it returns. */
  async mark(actor: Actor, { view }: ReadableConversation, turnId: string): Promise<Unread> {
    const { number } = requireTurn(view.state, view.viewer, turnId, view.upTo, "history");
    const conversation = view.state.header.id;
    const row: ReadCursorPut = { kind: "conversation.read", conversation, reader: readerOf(actor), number };
    await this.#store.commit({ appends: [], rows: [row] });
    return this.count(actor, { view });
  }

  async count(actor: Actor, { view }: Pick<ReadableConversation, "view">): Promise<Unread> {
    const conversationId = view.state.header.id;
    const cursors = await this.#index.readCursors(readerOf(actor), [conversationId]);
    let unread = 0;
    for (const { author } of visibleTurns(view, cursors.get(conversationId) ?? 0)) {
      if (actor.identities.has(author)) continue;
      if (++unread > MOST_COUNTED) return { conversationId, unread: MOST_COUNTED, more: true };
    }
    return { conversationId, unread };
  }
}

/** Cursors belong to the caller, whatever id it reads under. */
function readerOf({ principal, acting }: Actor): string {
  return principal ?? acting;
}
