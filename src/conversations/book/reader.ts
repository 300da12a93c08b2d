/** What shows conversations: each method asks the one predicate what the caller may see, as of what is committed. */
import type { Store } from "../../engine/ports.js";
import { assertCapability, requireReader } from "../domain/checks.js";
import type { ConversationEntry } from "../domain/entries.js";
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
import type { ConversationIndex, ConversationRow } from "../ports.js";
import { readPage, readTurns, type TurnList } from "./contents.js";
import { cursorOf, parseCursor } from "./cursor.js";
import type { ConversationKernel } from "./kernel.js";
import { conversationOf } from "./rows.js";

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
  readonly #kernel: ConversationKernel;
  readonly #store: Store;
  readonly #index: ConversationIndex;

  constructor(kernel: ConversationKernel, store: Store, index: ConversationIndex) {
    this.#kernel = kernel;
    this.#store = store;
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
          ? await readTurns(this.#store, view, recentTurns(view, include.recentTurns), HEAVIEST_PAGE)
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
      conversations.push(conversationOf(row, await this.#updatedAt(row)));
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
    const view = await this.#kernel.history(caller, params.conversationId);
    return readPage(this.#store, view, listTurns(view, params));
  }

  async replay(caller: Caller, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const view = await this.#kernel.history(caller, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await readPage(this.#store, view, page)), missedCount: page.missedCount };
  }

  async listThreads(caller: Caller, params: ThreadListParams): Promise<ThreadPage> {
    return listThreads(await this.#view(caller, params.conversationId), params);
  }

  /** For members and those who may watch, whether or not the past is open to them. */
  #view(caller: Caller, id: string): Promise<View> {
    return this.#kernel.view(caller, id, (state, number) => {
      assertCapability(caller, "canViewHistory", "canJoin");
      return requireReader(state, caller, number);
    });
  }

  /** When the last entry was made. The journal need not be read for conversations in memory. */
  async #updatedAt({ id, createdAt }: ConversationRow): Promise<number> {
    const known = this.#kernel.updatedAt(id);
    if (known !== undefined) return known;
    const last = await this.#store.lastNumber(id);
    const [row] = await this.#store.read(id, { after: last - 1, limit: 1 });
    const entries: ConversationEntry[] = row === undefined ? [] : JSON.parse(row.data);
    return entries.at(-1)?.at ?? createdAt;
  }
}
