/**
 * All conversations of a server: takes requests, asks the domain, commits what it decides, and only then answers and
 * tells others (law 1). Knows nothing of connections.
 */
import { type Clock, type Ids, type JournalRow, StaleAppendError, type Store } from "../../engine/ports.js";
import { assertCapability, requireHistoryReader, requireReader, requireTurn } from "../domain/checks.js";
import {
  decideClose,
  decideCreate,
  decideInvite,
  decideJoin,
  decideLeave,
  decideStatus,
} from "../domain/decide-members.js";
import {
  decideInterception,
  decideThread,
  decideTurn,
  decideTurnStatus,
  type Interception,
} from "../domain/decide-turns.js";
import type { ConversationEntry, Joined, SummaryMade } from "../domain/entries.js";
import { denied, MapError } from "../domain/errors.js";
import { DEFAULT_RULES, type DomainRules, type Moment } from "../domain/moment.js";
import {
  type CloseParams,
  type CreateParams,
  DEFAULT_PAGE,
  type GetParams,
  type InviteParams,
  type JoinParams,
  type LeaveParams,
  type ListParams,
  type ReplayParams,
  type SummaryParams,
  type ThreadCreateParams,
  type ThreadListParams,
  type TurnParams,
  type TurnsListParams,
} from "../domain/params.js";
import {
  catchUpTurns,
  listThreads,
  listTurns,
  participantsOf,
  recentTurns,
  replayTurns,
  type Stats,
  statsOf,
  type ThreadPage,
  type TurnPage,
  threadView,
  type View,
  visibleThreads,
} from "../domain/queries.js";
import { beginState, conversationAt, evolve, type Stint, type TurnRecord } from "../domain/state.js";
import { extractiveSummariser, type Summariser } from "../domain/summary.js";
import type {
  Caller,
  Conversation,
  ConversationStatus,
  Identity,
  Participant,
  Thread,
  Turn,
  TurnStatus,
} from "../domain/types.js";
import { hasFullHistory, mayAskForHistory, viewerAt } from "../domain/visibility.js";
import type { EventLog } from "../log/event-log.js";
import type { ConversationIndex } from "../ports.js";
import { readTurns } from "./contents.js";
import {
  type CacheLimits,
  ConversationCache,
  conversationEntries,
  LiveConversation,
  loadConversation,
} from "./live.js";
import { conversationOf, rowsFor } from "./rows.js";
import { ConversationSource } from "./source.js";
import { cachedSummary, type SummaryResult, scopeKey, summaryResult, turnsInScope } from "./summaries.js";

export interface ConversationsParts {
  readonly store: Store;
  readonly index: ConversationIndex;
  readonly log: EventLog;
  readonly clock: Clock;
  readonly ids: Ids;
  /** What is known about the bearer of an id. */
  readonly identify: (id: string, space: string) => Identity;
  readonly rules?: Partial<DomainRules>;
  readonly cache?: Partial<CacheLimits>;
  readonly summariser?: Summariser;
  /** Whether a parent is a conversation that is kept elsewhere. Throws if the caller may not read it. */
  readonly isElsewhere?: (caller: Caller, id: string, turnId: string | undefined) => Promise<boolean>;
}

const DEFAULT_CACHE: CacheLimits = { maxConversations: 10_000, maxTurns: 500_000 };

/** How often a decision is made again because somebody else wrote first. */
const MOST_ATTEMPTS = 5;

/** The actor of what the server does by itself. */
const SERVER = "system";

export interface TurnList {
  readonly turns: readonly Turn[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

export class Conversations {
  readonly rules: DomainRules;
  readonly #parts: ConversationsParts;
  readonly #cache: ConversationCache;
  readonly #source: ConversationSource;
  readonly #summarise: Summariser;

  constructor(parts: ConversationsParts) {
    this.#parts = parts;
    this.rules = { ...DEFAULT_RULES, ...parts.rules };
    this.#summarise = parts.summariser ?? extractiveSummariser;
    this.#cache = new ConversationCache({ ...DEFAULT_CACHE, ...parts.cache }, (id) =>
      loadConversation(parts.store, id),
    );
    this.#source = new ConversationSource(
      (id) => this.#cache.peek(id),
      (id) => this.#cache.get(id),
    );
    parts.log.addSource(this.#source);
  }

  // --- writing --------------------------------------------------------------------------------------------------

  async create(
    caller: Caller,
    params: CreateParams,
  ): Promise<{ conversation: Conversation; participant: Participant; initialTurn?: Turn }> {
    assertCapability(caller, "canCreate");
    if (params.parentConversationId !== undefined) {
      await this.#checkParent(caller, params.parentConversationId, params.parentTurnId);
    }
    const { entries } = decideCreate(caller, params, this.#moment(caller.space));
    const [created, ...others] = entries;
    const live = new LiveConversation(beginState(created), 0);
    for (const entry of others) evolve(live.state, entry);
    this.#cache.add(live);
    await this.#commit(live, entries, 0);
    const [founder] = others;
    if (founder?.t !== "joined") throw new Error("a conversation begins with its initiator");
    const turn = others.find((entry) => entry.t === "turn");
    return {
      conversation: conversationAt(live.state, entries.length),
      participant: founder.participant,
      ...(turn !== undefined && { initialTurn: turn.turn }),
    };
  }

  async close(caller: Caller, params: CloseParams): Promise<{ conversation: Conversation }> {
    const { live, last } = await this.#write(params.conversationId, caller, (state, moment) => [
      decideClose(state, caller, params.reason, moment, this.rules),
    ]);
    return { conversation: conversationAt(live.state, last) };
  }

  async join(
    caller: Caller,
    params: JoinParams,
  ): Promise<{
    conversation: Conversation;
    participant: Participant;
    history?: readonly Turn[];
    historyCursor?: string;
    summary?: string;
  }> {
    const { catchUp } = params;
    const { live, entries, last } = await this.#write(params.conversationId, caller, (state, moment) => {
      const joined = decideJoin(state, caller, params, moment);
      if (catchUp !== undefined) {
        // Asked before anything is written: a catch-up that is refused refuses the join.
        assertCapability(caller, "canViewHistory");
        const view = viewOfNewcomer(caller, state, joined);
        if (!mayAskForHistory(view.viewer)) throw denied('the caller\'s history access is "none"');
        catchUpTurns(view, catchUp);
      }
      return [joined];
    });
    const [joined] = entries;
    const result = { conversation: conversationAt(live.state, last), participant: joined.participant };
    if (catchUp === undefined) return result;
    const view: View = { state: live.state, viewer: viewerAt(live.state, caller, last), upTo: last };
    const page = catchUpTurns(view, catchUp);
    const history = await this.#contents(view, page.turns);
    const cursor = page.hasMore ? page.turns.at(-1)?.id : undefined;
    return {
      ...result,
      history,
      ...(cursor !== undefined && { historyCursor: cursor }),
      ...(catchUp.includeSummary === true && {
        summary: (await this.summary(caller, { conversationId: params.conversationId })).summary,
      }),
    };
  }

  async leave(caller: Caller, params: LeaveParams): Promise<{ success: true; leftAt: number }> {
    const { entries } = await this.#write(params.conversationId, caller, (state, moment) => [
      decideLeave(state, caller, params, moment),
    ]);
    return { success: true, leftAt: entries[0].at };
  }

  async invite(caller: Caller, params: InviteParams): Promise<{ invited: true; participant: Participant }> {
    const { entries } = await this.#write(params.conversationId, caller, (state, moment) => [
      decideInvite(state, caller, params, moment),
    ]);
    return { invited: true, participant: entries[0].participant };
  }

  async turn(caller: Caller, params: TurnParams): Promise<{ turn: Turn }> {
    const { entries } = await this.#write(params.conversationId, caller, (state, moment) => [
      decideTurn(state, caller, params, moment),
    ]);
    return { turn: entries[0].turn };
  }

  /** MAP Mail, Turn Interception. */
  async intercept(caller: Caller, conversationId: string, message: Interception): Promise<Turn> {
    const { entries } = await this.#write(conversationId, caller, (state, moment) => {
      const [first, ...others] = decideInterception(state, caller, message, moment, this.rules);
      if (first === undefined) throw new Error("an interception records a turn");
      return [first, ...others];
    });
    const last = entries.at(-1);
    if (last?.t !== "turn") throw new Error("an interception ends with its turn");
    return last.turn;
  }

  async createThread(caller: Caller, params: ThreadCreateParams): Promise<{ thread: Thread }> {
    const { entries } = await this.#write(params.conversationId, caller, (state, moment) => [
      decideThread(state, caller, params, moment, this.rules),
    ]);
    const [{ thread, at }] = entries;
    return { thread: { ...thread, turnCount: 0, participantCount: 0, updatedAt: at } };
  }

  /** Decisions F7: for the server itself, not for callers. */
  async setStatus(id: string, status: ConversationStatus): Promise<void> {
    await this.#write(id, undefined, (state, moment) => [decideStatus(state, status, SERVER, moment)]);
  }

  async setTurnStatus(id: string, turnId: string, status: TurnStatus): Promise<void> {
    await this.#write(id, undefined, (state, moment) => [
      decideTurnStatus(state, turnId, status, SERVER, moment),
    ]);
  }

  // --- reading --------------------------------------------------------------------------------------------------

  async get(
    caller: Caller,
    { conversationId, include = {} }: GetParams,
  ): Promise<{
    conversation: Conversation;
    participants?: Participant[];
    threads?: Thread[];
    recentTurns?: Turn[];
    stats?: Stats;
  }> {
    const live = await this.#open(conversationId, caller);
    assertCapability(caller, "canViewHistory", "canJoin");
    const viewer = requireReader(live.state, caller, live.committed);
    const view: View = { state: live.state, viewer, upTo: live.committed };
    const readable = caller.capabilities.canViewHistory;
    return {
      conversation: conversationAt(live.state, view.upTo),
      ...(include.participants === true && { participants: participantsOf(view) }),
      ...(include.threads === true && {
        threads: [...visibleThreads(view)].map((thread) => threadView(view, thread)),
      }),
      ...(include.stats === true && { stats: statsOf(view) }),
      ...(include.recentTurns !== undefined && {
        recentTurns: readable ? await this.#contents(view, recentTurns(view, include.recentTurns)) : [],
      }),
    };
  }

  async list(
    caller: Caller,
    { filter = {}, limit = DEFAULT_PAGE, cursor }: ListParams,
  ): Promise<{ conversations: Conversation[]; hasMore: boolean; nextCursor?: string }> {
    assertCapability(caller, "canViewHistory", "canJoin");
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    const rows = await this.#parts.index.list({
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
    for (const row of page)
      conversations.push(conversationOf(row, await this.#updatedAt(row.id, row.createdAt)));
    const last = page.at(-1);
    const hasMore = rows.length > limit;
    return {
      conversations,
      hasMore,
      ...(hasMore && last !== undefined && { nextCursor: cursorOf(last.id) }),
    };
  }

  async listTurns(caller: Caller, params: TurnsListParams): Promise<TurnList> {
    const view = await this.#history(caller, params.conversationId);
    return this.#page(view, listTurns(view, params));
  }

  async replay(caller: Caller, params: ReplayParams): Promise<TurnList & { missedCount: number }> {
    const view = await this.#history(caller, params.conversationId);
    const page = replayTurns(view, params);
    return { ...(await this.#page(view, page)), missedCount: page.missedCount };
  }

  async listThreads(caller: Caller, params: ThreadListParams): Promise<ThreadPage> {
    const live = await this.#open(params.conversationId, caller);
    assertCapability(caller, "canViewHistory", "canJoin");
    const viewer = requireReader(live.state, caller, live.committed);
    return listThreads({ state: live.state, viewer, upTo: live.committed }, params);
  }

  async summary(caller: Caller, params: SummaryParams): Promise<SummaryResult> {
    const { scope = {}, include } = params;
    const view = await this.#history(caller, params.conversationId);
    const turns = turnsInScope(view, scope);
    const shared = hasFullHistory(view.viewer);
    const cached = shared && params.regenerate !== true ? cachedSummary(view, scope, turns) : undefined;
    if (cached !== undefined) {
      return summaryResult(cached.text, include, turns, { generated: false, cachedAt: cached.at });
    }
    const { subject } = view.state.header;
    const text = await this.#summarise({
      ...(subject !== undefined && { subject }),
      turns: await this.#contents(view, turns),
    });
    // One that is made for a narrow window is nobody else's business.
    if (shared) {
      await this.#write(params.conversationId, caller, (_state, { now }): [SummaryMade] => [
        { t: "summary", at: now, scope: scopeKey(scope), upTo: view.upTo, by: caller.acting, summary: text },
      ]);
    }
    return summaryResult(text, include, turns, { generated: true });
  }

  /** Whether the id is known, without asking the store, to be that of a conversation here. */
  isLoaded(id: string): boolean {
    return this.#cache.peek(id) !== undefined;
  }

  /** In memory now; for those who watch the process. */
  get loaded(): number {
    return this.#cache.size;
  }

  // --- inside ---------------------------------------------------------------------------------------------------

  #moment(space: string): Moment {
    const { clock, ids, identify } = this.#parts;
    return {
      now: clock.now(),
      id: (prefix) => `${prefix}-${ids.ordered()}`,
      identify: (id) => identify(id, space),
    };
  }

  async #checkParent(caller: Caller, id: string, turnId: string | undefined): Promise<void> {
    if (!this.isLoaded(id) && (await this.#parts.isElsewhere?.(caller, id, turnId)) === true) return;
    const parent = await this.#open(id, caller);
    const viewer = requireReader(parent.state, caller, parent.committed);
    if (turnId !== undefined) requireTurn(parent.state, viewer, turnId, parent.committed, "history");
  }

  /** @throws MapError CONVERSATION_NOT_FOUND */
  async #open(id: string, caller: Caller | undefined): Promise<LiveConversation> {
    const live = id.startsWith("conv-") ? await this.#cache.get(id) : undefined;
    const foreign = live !== undefined && caller !== undefined && live.state.header.space !== caller.space;
    if (live === undefined || live.committed === 0 || foreign) {
      throw new MapError("CONVERSATION_NOT_FOUND", undefined, { conversationId: id });
    }
    return live;
  }

  async #history(caller: Caller, id: string): Promise<View> {
    const live = await this.#open(id, caller);
    assertCapability(caller, "canViewHistory");
    const viewer = requireHistoryReader(live.state, caller, live.committed);
    return { state: live.state, viewer, upTo: live.committed };
  }

  /**
   * Decides, commits, and resolves when it is durable. The decision is made on what is about to be committed, too; so
   * one that is refused waits until that is certain, and is made again if it was not.
   */
  async #write<Entries extends readonly [ConversationEntry, ...ConversationEntry[]]>(
    id: string,
    caller: Caller | undefined,
    decide: (state: LiveConversation["state"], moment: Moment) => Entries,
  ): Promise<{ live: LiveConversation; entries: Entries; last: number }> {
    for (let attempt = 1; ; attempt++) {
      const live = await this.#open(id, caller);
      if (this.#cache.peek(id) !== live) continue;
      try {
        const entries = decide(live.state, this.#moment(live.state.header.space));
        const first = live.state.number;
        for (const entry of entries) evolve(live.state, entry);
        await this.#commit(live, entries, first);
        return { live, entries, last: first + entries.length };
      } catch (error) {
        const uncertain = error instanceof MapError && live.busy;
        if (uncertain) await live.settled;
        const again = error instanceof StaleAppendError || (uncertain && live.lost);
        if (!again || attempt >= MOST_ATTEMPTS) throw error;
      }
    }
  }

  /** The entries are in the state already: what is decided next builds on them. */
  #commit(live: LiveConversation, entries: readonly ConversationEntry[], expected: number): Promise<void> {
    const journal = live.state.header.id;
    const data = JSON.stringify(entries);
    const last = expected + entries.length;
    const append = { journal, expected, count: entries.length, data };
    const commit = this.#parts.store.commit({ appends: [append], rows: rowsFor(live.state, entries) }).then(
      ({ position }) => {
        live.committed = last;
        const row: JournalRow = { journal, first: expected + 1, last, position, data };
        this.#source.remember(row, entries);
        this.#parts.log.committed(row);
      },
      (error: unknown) => {
        this.#cache.forget(live);
        throw error;
      },
    );
    live.track(commit);
    this.#cache.grown();
    return commit;
  }

  #contents({ state, upTo }: View, records: readonly TurnRecord[]): Promise<Turn[]> {
    return readTurns(this.#parts.store, state.header.id, records, upTo);
  }

  /** The cursor is the last turn's id: callers hand it back as `afterTurnId`, `beforeTurnId` or `fromTurnId`. */
  async #page(view: View, page: TurnPage): Promise<TurnList> {
    const turns = await this.#contents(view, page.turns);
    const cursor = page.hasMore ? page.turns.at(-1)?.id : undefined;
    return { turns, hasMore: page.hasMore, ...(cursor !== undefined && { nextCursor: cursor }) };
  }

  /** Of the last entry, which need not be read for conversations in memory. */
  async #updatedAt(id: string, createdAt: number): Promise<number> {
    const live = this.#cache.peek(id);
    if (live !== undefined && live.committed > 0) return conversationAt(live.state, live.committed).updatedAt;
    const last = await this.#parts.store.lastNumber(id);
    const [row] = await this.#parts.store.read(id, { after: last - 1, limit: 1 });
    return row === undefined ? createdAt : (conversationEntries(row).at(-1)?.at ?? createdAt);
  }
}

/** What somebody will see who is about to join. */
function viewOfNewcomer(caller: Caller, state: LiveConversation["state"], { participant, at }: Joined): View {
  const stint: Stint = {
    joined: state.number + 1,
    joinedAt: at,
    role: participant.role,
    permissions: participant.permissions,
  };
  return {
    state,
    upTo: state.number,
    viewer: {
      kind: "member",
      memberships: [{ id: participant.id, stint }],
      identities: caller.identities,
    },
  };
}

export function cursorOf(id: string): string {
  return Buffer.from(id).toString("base64url");
}

/** @throws MapError INVALID_PARAMS */
export function parseCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString();
  if (!/^conv-[0-9a-f-]{36}$/.test(id)) {
    throw new MapError("INVALID_PARAMS", "cursor: not one that this list has given out");
  }
  return id;
}
