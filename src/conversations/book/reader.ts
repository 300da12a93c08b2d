/** What shows conversations: each method asks the one predicate what the caller may see, as of what is committed. */
import { assertCapability, requireReader } from "../domain/checks.js";
import {
  DEFAULT_PAGE,
  type GetParams,
  HEAVIEST_PAGE,
  type ListParams,
  type ReplayParams,
  type ThreadListParams,
  type TurnsListParams,
} from "../domain/params.js";
import {
  listThreads,
  listTurns,
  participantsOf,
  recentTurns,
  replayTurns,
  type Stats,
  statsOf,
  type ThreadPage,
  threadView,
  type View,
  visibleThreads,
} from "../domain/queries.js";
import { conversationAt } from "../domain/state.js";
import type { Caller, Conversation, Participant, Thread, Turn } from "../domain/types.js";
import type { ConversationIndex } from "../ports.js";
import type { TurnList } from "./contents.js";
import { cursorOf, parseCursor } from "./cursor.js";
import { conversationOf } from "./rows.js";
import type { Shelf } from "./shelf.js";

export interface ConversationDetails {
  readonly conversation: Conversation;
  readonly participants?: readonly Participant[];
  readonly threads?: readonly Thread[];
  readonly recentTurns?: readonly Turn[];
  readonly stats?: Stats;
}

export interface ConversationPage {
  readonly conversations: readonly Conversation[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

export class ConversationReader {
  readonly #shelf: Shelf;
  readonly #index: ConversationIndex;

  constructor(shelf: Shelf, index: ConversationIndex) {
    this.#shelf = shelf;
    this.#index = index;
  }

  async get(caller: Caller, { conversationId, include = {} }: GetParams): Promise<ConversationDetails> {
    const view = await this.#view(caller, conversationId);
    const readable = caller.capabilities.canViewHistory;
    return {
      conversation: conversationAt(view.state, view.upTo),
      ...(include.participants === true && { participants: participantsOf(view) }),
      ...(include.threads === true && {
        threads: [...visibleThreads(view)].map((thread) => threadView(view, thread)),
      }),
      ...(include.stats === true && { stats: statsOf(view) }),
      ...(include.recentTurns !== undefined && {
        recentTurns: readable
          ? await this.#shelf.contents(view, recentTurns(view, include.recentTurns), HEAVIEST_PAGE)
          : [],
      }),
    };
  }

  async list(
    caller: Caller,
    { filter = {}, limit = DEFAULT_PAGE, cursor }: ListParams,
  ): Promise<ConversationPage> {
    assertCapability(caller, "canViewHistory", "canJoin");
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    const rows = await this.#index.list({
      space: caller.space,
      limit: limit + 1,
      ...(!caller.observer && { members: [...caller.identities] }),
      ...(after !== undefined && { after }),
      ...(filter.type !== undefined && { types: filter.type }),
      ...(filter.status !== undefined && { statuses: filter.status }),
      ...(filter.participantId !== undefined && { participantId: filter.participantId }),
      ...(filter.createdAfter !== undefined && { createdAfter: filter.createdAfter }),
      ...(filter.createdBefore !== undefined && { createdBefore: filter.createdBefore }),
      ...(filter.parentConversationId !== undefined && { parentId: filter.parentConversationId }),
    });
    const page = rows.slice(0, limit);
    const conversations: Conversation[] = [];
    for (const row of page) {
      conversations.push(conversationOf(row, await this.#shelf.updatedAt(row.id, row.createdAt)));
    }
    const last = page.at(-1);
    const hasMore = rows.length > limit;
    return {
      conversations,
      hasMore,
      ...(hasMore && last !== undefined && { nextCursor: cursorOf(last.id) }),
    };
  }

  async listTurns(caller: Caller, params: TurnsListParams): Promise<TurnList> {
    const view = await this.#shelf.history(caller, params.conversationId);
    return this.#shelf.page(view, listTurns(view, params));
  }

  async replay(caller: Caller, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const view = await this.#shelf.history(caller, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await this.#shelf.page(view, page)), missedCount: page.missedCount };
  }

  async listThreads(caller: Caller, params: ThreadListParams): Promise<ThreadPage> {
    return listThreads(await this.#view(caller, params.conversationId), params);
  }

  /** For members and those who may watch, whether or not the past is open to them. */
  async #view(caller: Caller, id: string): Promise<View> {
    const { state, committed } = await this.#shelf.open(id, caller);
    assertCapability(caller, "canViewHistory", "canJoin");
    return { state, viewer: requireReader(state, caller, committed), upTo: committed };
  }
}
