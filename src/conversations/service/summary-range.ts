/** The range of turns that a summary covers, stored summaries that are still current, and the result. */
import { requireThread, requireTurn } from "../rules/checks.js";
import type { SummaryFallback, SummaryText } from "../rules/entries.js";
import type { SummaryParams } from "../rules/params.js";
import { type ConversationView, visibleTurns } from "../rules/queries.js";
import type { TurnRecord } from "../rules/state.js";
import { EXTRACTIVE } from "../rules/summary.js";
import { isPublic } from "../rules/visibility.js";

export type SummaryRange = NonNullable<SummaryParams["scope"]>;

/** Summaries whose turns are being read, in total and of one conversation. */
export const SUMMARY_READS = { limit: 4, perKey: 1 };

/** The maximum number of turns in a summary, the newest first. */
const MAX_TURNS = 2000;

export function rangeKey({ fromTurnId, toTurnId, threadId }: SummaryRange): string {
  return JSON.stringify([fromTurnId ?? "", toTurnId ?? "", threadId ?? ""]);
}

/**
 * The turns of the range that every reader of the conversation can see: a summary must reveal nothing else.
 * @throws MapError TURN_NOT_FOUND, THREAD_NOT_FOUND
 */
export function turnsInRange(view: ConversationView, scope: SummaryRange): TurnRecord[] {
  const { state, viewer, upTo } = view;
  const { fromTurnId, toTurnId, threadId } = scope;
  if (threadId !== undefined) requireThread(state, viewer, threadId, upTo, "history");
  const from = fromTurnId === undefined ? 0 : requireTurn(state, viewer, fromTurnId, upTo, "history").number;
  const to =
    toTurnId === undefined
      ? Number.POSITIVE_INFINITY
      : requireTurn(state, viewer, toTurnId, upTo, "history").number;
  const turns: TurnRecord[] = [];
  for (const turn of visibleTurns(view)) {
    if (turn.number < from || turn.number > to || !isPublic(turn)) continue;
    if (threadId === undefined || turn.threadId === threadId) turns.push(turn);
  }
  return turns.slice(-MAX_TURNS);
}

export interface CachedSummary {
  readonly at: number;
  readonly text: SummaryText;
}

/** A stored summary that no turn of the range has followed, by any summarizer. */
export function heldSummary(
  state: ConversationView["state"],
  scope: SummaryRange,
  turns: readonly TurnRecord[],
): (CachedSummary & { readonly number: number }) | undefined {
  const cached = state.summaries.get(rangeKey(scope));
  if (cached === undefined || (turns.at(-1)?.number ?? 0) > cached.upTo) return undefined;
  return { at: cached.at, text: cached.summary, number: cached.number };
}

/** A stored summary that the viewer may see and that the current summarizer wrote. */
export function cachedSummary(
  view: ConversationView,
  scope: SummaryRange,
  turns: readonly TurnRecord[],
  summariser: string,
): CachedSummary | undefined {
  const held = heldSummary(view.state, scope, turns);
  if (held === undefined || held.number > view.upTo) return undefined;
  // A fallback does not count.
  return (held.text.summariser ?? EXTRACTIVE) === summariser ? held : undefined;
}

export interface SummaryResult {
  readonly summary: string;
  readonly keyPoints?: readonly string[];
  readonly keyDecisions?: readonly string[];
  readonly openQuestions?: readonly string[];
  readonly participants?: readonly string[];
  readonly generated: boolean;
  readonly cachedAt?: number;
  /** When a model is configured: which summarizer wrote it, and why it was not the model. */
  readonly _meta?: { readonly summariser: string; readonly fallback?: SummaryFallback };
}

export function summaryResult(
  text: SummaryText,
  include: SummaryParams["include"],
  turns: readonly TurnRecord[],
  origin: { readonly generated: true } | { readonly generated: false; readonly cachedAt: number },
): SummaryResult {
  const { summariser, fallback } = text;
  return {
    summary: text.summary,
    ...(include?.keyPoints === true && { keyPoints: text.keyPoints }),
    ...(include?.keyDecisions === true && { keyDecisions: text.keyDecisions }),
    ...(include?.openQuestions === true && { openQuestions: text.openQuestions }),
    ...(include?.participants === true && { participants: [...new Set(turns.map(({ author }) => author))] }),
    ...origin,
    ...(summariser !== undefined && {
      _meta: { summariser, ...(fallback !== undefined && { fallback }) },
    }),
  };
}
