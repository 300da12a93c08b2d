/** Queries on native conversations, as of the last commit. Visibility decides what each returns. */
import { WorkSlice } from "../../base/node.js";
import type { Store } from "../../engine/index.js";
import type { ConversationQuery, ConversationReads, ConversationRow } from "../ports.js";
import { assertCapability, requireReader } from "../rules/checks.js";
import type { ConversationEntry } from "../rules/entries.js";
import {
  DEFAULT_PAGE,
  type GetParams,
  type ListParams,
  MAX_PAGE,
  MAX_PAGE_BYTES,
  type ReplayParams,
  type ThreadListParams,
  type TurnsListParams,
} from "../rules/params.js";
import {
  type ConversationView,
  listThreads,
  listTurns,
  participantsOf,
  recentTurns,
  replayTurns,
  type Stats,
  statsOf,
  type ThreadPage,
} from "../rules/queries.js";
import { roughSize } from "../rules/size.js";
import { conversationAt } from "../rules/state.js";
import type { Actor, Conversation, Participant, Thread, Turn } from "../rules/types.js";
import { readPage, readTurns, type TurnList } from "./contents.js";
import { cursorOf, parseCursor } from "./cursor.js";
import type { ConversationKernel } from "./kernel.js";
import { toConversation } from "./rows.js";

export interface ConversationDetails {
  readonly conversation: Conversation;
  readonly participants?: readonly Participant[];
  /** Present if more participants follow: `include.participantsAfter` continues. */
  readonly participantsCursor?: string;
  readonly threads?: readonly Thread[];
  /** Present if more threads follow: `mail/thread/list` continues with it. */
  readonly threadsCursor?: string;
  readonly recentTurns?: readonly Turn[];
  readonly stats?: Stats;
  /** Parts that were too large to be returned as asked. */
  readonly _meta?: { readonly truncated: readonly string[] };
}

/** The most recent turns exceeded the size of a page. */
export const TRUNCATED = { _meta: { truncated: ["recentTurns"] } } as const;

export interface ConversationPage {
  readonly conversations: readonly Conversation[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

/** Rows per read when conversations are listed: each can have a long subject and metadata. */
const LIST_RUN = 64;

export class ConversationReader {
  readonly #kernel: ConversationKernel;
  readonly #store: Store;
  readonly #index: ConversationReads;

  constructor(kernel: ConversationKernel, store: Store, index: ConversationReads) {
    this.#kernel = kernel;
    this.#store = store;
    this.#index = index;
  }

  async get(actor: Actor, { conversationId, include = {} }: GetParams): Promise<ConversationDetails> {
    const view = await this.#view(actor, conversationId);
    const readable = actor.capabilities.canViewHistory;
    const recent =
      readable && include.recentTurns !== undefined ? recentTurns(view, include.recentTurns) : [];
    const turns = await readTurns(this.#store, view, recent, MAX_PAGE_BYTES);
    return {
      conversation: conversationAt(view.state, view.upTo),
      ...(include.participants === true && participantsOf(view, include.participantsAfter)),
      ...(include.threads === true && firstThreads(view)),
      ...(include.stats === true && { stats: statsOf(view) }),
      ...(include.recentTurns !== undefined && { recentTurns: turns }),
      ...(turns.length < recent.length && TRUNCATED),
    };
  }

  async list(
    actor: Actor,
    { filter = {}, limit = DEFAULT_PAGE, cursor, order = "asc" }: ListParams,
  ): Promise<ConversationPage> {
    assertCapability(actor, "canViewHistory", "canJoin");
    const query: Omit<ConversationQuery, "limit"> = {
      ...(actor.allSpaces !== true && { space: actor.space }),
      order,
      ...(!actor.observer && { members: [...actor.identities] }),
      ...(filter.type !== undefined && { types: filter.type }),
      ...(filter.status !== undefined && { statuses: filter.status }),
      ...(filter.participantId !== undefined && { participantId: filter.participantId }),
      ...(filter.createdAfter !== undefined && { createdAfter: filter.createdAfter }),
      ...(filter.createdBefore !== undefined && { createdBefore: filter.createdBefore }),
      ...(filter.parentConversationId !== undefined && { parentId: filter.parentConversationId }),
    };
    const slice = new WorkSlice();
    const conversations: Conversation[] = [];
    let after = cursor === undefined ? undefined : parseCursor(cursor);
    let size = 0;
    for (;;) {
      const run = Math.min(LIST_RUN, limit - conversations.length + 1);
      const rows = await this.#index.list({ ...query, limit: run, ...(after !== undefined && { after }) });
      for (const row of rows) {
        if (after !== undefined && (conversations.length >= limit || size > MAX_PAGE_BYTES)) {
          return { conversations, hasMore: true, nextCursor: cursorOf(after) };
        }
        const conversation = toConversation(row, await this.#updatedAt(row, slice));
        conversations.push(conversation);
        size += roughSize(conversation);
        after = row.id;
      }
      if (rows.length < run) return { conversations, hasMore: false };
    }
  }

  async listTurns(actor: Actor, params: TurnsListParams): Promise<TurnList> {
    const view = await this.#kernel.history(actor, params.conversationId);
    return readPage(this.#store, view, listTurns(view, params));
  }

  async replay(actor: Actor, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const view = await this.#kernel.history(actor, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await readPage(this.#store, view, page)), missedCount: page.missedCount };
  }

  async listThreads(actor: Actor, params: ThreadListParams): Promise<ThreadPage> {
    return listThreads(await this.#view(actor, params.conversationId), params);
  }

  /** For members and observers, independent of their history access. */
  #view(actor: Actor, id: string): Promise<ConversationView> {
    return this.#kernel.view(actor, id, (state, number) => {
      assertCapability(actor, "canViewHistory", "canJoin");
      return requireReader(state, actor, number);
    });
  }

  /** The time of the last entry. Conversations in memory need no read. */
  async #updatedAt({ id, createdAt }: ConversationRow, slice: WorkSlice): Promise<number> {
    const known = this.#kernel.updatedAt(id);
    if (known !== undefined) return known;
    const last = await this.#store.lastNumber(id);
    const [row] = await this.#store.read(id, { after: last - 1, limit: 1 });
    const entries: ConversationEntry[] = row === undefined ? [] : JSON.parse(row.data);
    await slice.did(row?.data.length);
    return entries.at(-1)?.at ?? createdAt;
  }
}

/** The first page of `mail/thread/list`, as large as it may be. */
function firstThreads(view: ConversationView): Pick<ConversationDetails, "threads" | "threadsCursor"> {
  const { threads, nextCursor } = listThreads(view, { limit: MAX_PAGE });
  return { threads, ...(nextCursor !== undefined && { threadsCursor: nextCursor }) };
}
