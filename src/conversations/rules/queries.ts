/**
 * Queries on a conversation. They return records; contents are read from the journal afterwards. Pure, and
 * all use the predicate of `visibility.ts`. `upTo` is the last committed number.
 */
import { requireThread, requireTurn } from "./checks.js";
import { MapError } from "./errors.js";
import {
  DEFAULT_PAGE,
  MAX_PAGE_BYTES,
  type ReplayParams,
  type ThreadListParams,
  type TurnsListParams,
} from "./params.js";
import { roughSize } from "./size.js";
import {
  activeCount,
  type ConversationState,
  participantAt,
  type ThreadRecord,
  type TurnRecord,
} from "./state.js";
import type { Participant, Thread } from "./types.js";
import { canReadHistory, sees, type Viewer } from "./visibility.js";

export interface ConversationView {
  readonly state: ConversationState;
  readonly viewer: Viewer;
  readonly upTo: number;
}

export interface TurnPage {
  readonly turns: readonly TurnRecord[];
  readonly hasMore: boolean;
}

type TurnTest = (turn: TurnRecord) => boolean;

const EVERYTHING = { after: 0, before: Number.POSITIVE_INFINITY };

/** Turns that the viewer can see, in order, after a number if one is given. */
export function* visibleTurns(
  { state: { turns }, viewer, upTo }: ConversationView,
  after = 0,
): Generator<TurnRecord, void, undefined> {
  for (let at = countUpTo(turns, after); at < turns.length; at++) {
    const turn = turns[at];
    if (turn === undefined || turn.number > upTo) return;
    if (sees(viewer, turn, "history")) yield turn;
  }
}

/** The number of turns up to and including `number`, by binary search. */
function countUpTo(turns: readonly TurnRecord[], number: number): number {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((turns[middle]?.number ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function listTurns(view: ConversationView, params: Omit<TurnsListParams, "conversationId">): TurnPage {
  const { filter = {}, limit = DEFAULT_PAGE, order = "asc", cursor } = params;
  const { state, viewer, upTo } = view;
  const numberOf = (id: string | undefined): number | undefined =>
    id === undefined ? undefined : requireTurn(state, viewer, id, upTo, "history").number;
  const inThread = threadTest(view, filter.threadId, filter.includeAllThreads);
  const after = Math.max(numberOf(filter.afterTurnId) ?? 0, order === "asc" ? (numberOf(cursor) ?? 0) : 0);
  const before = Math.min(
    numberOf(filter.beforeTurnId) ?? Number.POSITIVE_INFINITY,
    order === "desc" ? (numberOf(cursor) ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
  );
  const ofType = typeTest(filter.contentTypes);
  const matches: TurnTest = (turn) =>
    (filter.participantId === undefined || turn.author === filter.participantId) &&
    (filter.afterTimestamp === undefined || turn.at > filter.afterTimestamp) &&
    (filter.beforeTimestamp === undefined || turn.at < filter.beforeTimestamp) &&
    ofType(turn) &&
    inThread(turn);
  return page(view, matches, limit, order, { after, before });
}

export interface ReplayPage extends TurnPage {
  /** All visible, matching turns after the starting point, including this page. */
  readonly missedCount: number;
}

export function replayTurns(
  view: ConversationView,
  params: Omit<ReplayParams, "conversationId">,
): ReplayPage {
  const { fromTurnId, fromTimestamp, limit = DEFAULT_PAGE } = params;
  const inThread = threadTest(view, params.threadId, undefined);
  const ofType = typeTest(params.contentTypes);
  const after =
    fromTurnId === undefined
      ? 0
      : requireTurn(view.state, view.viewer, fromTurnId, view.upTo, "history").number;
  const since =
    fromTurnId === undefined ? (fromTimestamp ?? Number.NEGATIVE_INFINITY) : Number.NEGATIVE_INFINITY;
  const turns: TurnRecord[] = [];
  let missedCount = 0;
  for (const turn of visibleTurns(view, after)) {
    if (turn.at <= since || !ofType(turn) || !inThread(turn)) continue;
    missedCount++;
    if (turns.length < limit) turns.push(turn);
  }
  return { turns, hasMore: missedCount > turns.length, missedCount };
}

export interface CatchUp {
  readonly from?: number | string | undefined;
  readonly limit?: number | undefined;
}

/** For `mail/join`: turns after a time, after a turn, or the most recent ones; always ascending. */
export function catchUpTurns(
  view: ConversationView,
  { from = "recent", limit = DEFAULT_PAGE }: CatchUp,
): TurnPage {
  if (from === "recent") {
    const { turns } = page(view, () => true, limit, "desc");
    // These are the newest turns, so there are no more.
    return { turns: turns.toReversed(), hasMore: false };
  }
  return replayTurns(
    view,
    typeof from === "number" ? { fromTimestamp: from, limit } : { fromTurnId: from, limit },
  );
}

export function recentTurns(view: ConversationView, limit: number): readonly TurnRecord[] {
  return canReadHistory(view.viewer) ? page(view, () => true, limit, "desc").turns : [];
}

export interface Stats {
  readonly totalTurns: number;
  readonly turnsByContentType: Readonly<Record<string, number>>;
  readonly activeParticipants: number;
  readonly threadCount: number;
}

export function statsOf(view: ConversationView): Stats {
  const byType = new Map<string, number>();
  let totalTurns = 0;
  for (const turn of visibleTurns(view)) {
    totalTurns++;
    byType.set(turn.contentType, (byType.get(turn.contentType) ?? 0) + 1);
  }
  return {
    totalTurns,
    turnsByContentType: Object.fromEntries(byType),
    activeParticipants: activeCount(view.state, view.upTo),
    threadCount: [...visibleThreads(view)].length,
  };
}

export interface ParticipantPage {
  readonly participants: readonly Participant[];
  /** Present if more follow. */
  readonly participantsCursor?: string;
}

/** Current and former members, as many as fit into one response. */
export function participantsOf({ state, upTo }: ConversationView, after?: string): ParticipantPage {
  if (after !== undefined && !state.participants.has(after)) {
    throw new MapError("INVALID_PARAMS", "include.participantsAfter: not a participant of this conversation");
  }
  const participants: Participant[] = [];
  let skipping = after !== undefined;
  let size = 0;
  for (const [id, record] of state.participants) {
    const participant = skipping ? undefined : participantAt(record, upTo);
    if (id === after) skipping = false;
    if (participant === undefined) continue;
    const last = participants.at(-1);
    if (last !== undefined && size > MAX_PAGE_BYTES) return { participants, participantsCursor: last.id };
    participants.push(participant);
    size += roughSize(participant);
  }
  return { participants };
}

export function* visibleThreads({
  state,
  viewer,
  upTo,
}: ConversationView): Generator<ThreadRecord, void, undefined> {
  for (const thread of state.threads.values()) {
    if (thread.number > upTo) return;
    if (sees(viewer, thread.root, "history")) yield thread;
  }
}

/** A thread whose counts cover only what the viewer can see. */
function threadView({ viewer, upTo }: ConversationView, thread: ThreadRecord): Thread {
  const turns = thread.turns.filter((turn) => turn.number <= upTo && sees(viewer, turn, "history"));
  return {
    ...thread.header,
    turnCount: turns.length,
    participantCount: new Set(turns.map(({ author }) => author)).size,
    updatedAt: turns.at(-1)?.at ?? thread.header.createdAt,
  };
}

export interface ThreadPage {
  readonly threads: readonly Thread[];
  readonly hasMore: boolean;
  readonly nextCursor?: string;
}

export function listThreads(
  view: ConversationView,
  params: Omit<ThreadListParams, "conversationId">,
): ThreadPage {
  const { parentThreadId, limit = DEFAULT_PAGE, cursor } = params;
  if (parentThreadId !== undefined) {
    requireThread(view.state, view.viewer, parentThreadId, view.upTo, "history");
  }
  const after = cursor === undefined ? 0 : threadCursor(view, cursor);
  const threads: Thread[] = [];
  let size = 0;
  for (const thread of visibleThreads(view)) {
    if (thread.number <= after) continue;
    if (parentThreadId !== undefined && thread.header.parentThreadId !== parentThreadId) continue;
    const last = threads.at(-1);
    if (last !== undefined && (threads.length >= limit || size > MAX_PAGE_BYTES)) {
      return { threads, hasMore: true, nextCursor: last.id };
    }
    const shown = threadView(view, thread);
    threads.push(shown);
    size += roughSize(shown);
  }
  return { threads, hasMore: false };
}

function threadCursor({ state, viewer, upTo }: ConversationView, cursor: string): number {
  const thread = state.threads.get(cursor);
  if (thread === undefined || thread.number > upTo || !sees(viewer, thread.root, "history")) {
    throw new MapError("INVALID_PARAMS", "cursor: not a cursor of this list");
  }
  return thread.number;
}

/** Stops as soon as the page is full. */
function page(
  view: ConversationView,
  matches: TurnTest,
  limit: number,
  order: "asc" | "desc",
  { after, before }: { readonly after: number; readonly before: number } = EVERYTHING,
): TurnPage {
  const { state, viewer, upTo } = view;
  const { turns } = state;
  const found: TurnRecord[] = [];
  const first = countUpTo(turns, after);
  const end = countUpTo(turns, Math.min(before - 1, upTo));
  const step = order === "asc" ? 1 : -1;
  for (let at = order === "asc" ? first : end - 1; at >= first && at < end; at += step) {
    const turn = turns[at];
    if (turn === undefined) continue;
    if (!matches(turn) || !sees(viewer, turn, "history")) continue;
    found.push(turn);
    if (found.length > limit) break;
  }
  return { turns: found.slice(0, limit), hasMore: found.length > limit };
}

function typeTest(contentTypes: readonly string[] | undefined): TurnTest {
  if (contentTypes === undefined || contentTypes.length === 0) return () => true;
  const wanted = new Set(contentTypes);
  return (turn) => wanted.has(turn.contentType);
}

/**
 * Without a thread: all turns, or only the main line with `includeAllThreads: false`. With a thread: its
 * turns, and with `includeAllThreads: true` also those of nested threads.
 */
function threadTest(
  view: ConversationView,
  threadId: string | undefined,
  includeAllThreads: boolean | undefined,
): TurnTest {
  if (threadId === undefined) {
    return includeAllThreads === false ? (turn) => turn.threadId === undefined : () => true;
  }
  requireThread(view.state, view.viewer, threadId, view.upTo, "history");
  if (includeAllThreads !== true) return (turn) => turn.threadId === threadId;
  const family = new Set([threadId]);
  // A parent is always older than its children, so one pass finds all descendants.
  for (const { header } of view.state.threads.values()) {
    if (header.parentThreadId !== undefined && family.has(header.parentThreadId)) family.add(header.id);
  }
  return (turn) => turn.threadId !== undefined && family.has(turn.threadId);
}
