/** The part of a conversation that a summary is about, which kept one still holds for it, and how one is answered. */
import { requireThread, requireTurn } from "../domain/checks.js";
import type { SummaryFallback, SummaryText } from "../domain/entries.js";
import type { SummaryParams } from "../domain/params.js";
import { type View, visibleTurns } from "../domain/queries.js";
import type { TurnRecord } from "../domain/state.js";
import { EXTRACTIVE } from "../domain/summary.js";
import { isPublic } from "../domain/visibility.js";

export type Scope = NonNullable<SummaryParams["scope"]>;

/** The most recent turns that a summary is made from. */
const MOST_TURNS = 2000;

export function scopeKey({ fromTurnId, toTurnId, threadId }: Scope): string {
  return JSON.stringify([fromTurnId ?? "", toTurnId ?? "", threadId ?? ""]);
}

/**
 * The turns of the scope that are open to everybody who may look: what a summary says, all its readers may know.
 * @throws MapError TURN_NOT_FOUND, THREAD_NOT_FOUND
 */
export function turnsInScope(view: View, scope: Scope): TurnRecord[] {
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
  return turns.slice(-MOST_TURNS);
}

export interface CachedSummary {
  readonly at: number;
  readonly text: SummaryText;
}

/** A cached summary that no turn of the scope has come after, whoever made it. */
export function heldSummary(
  state: View["state"],
  scope: Scope,
  turns: readonly TurnRecord[],
): (CachedSummary & { readonly number: number }) | undefined {
  const cached = state.summaries.get(scopeKey(scope));
  if (cached === undefined || (turns.at(-1)?.number ?? 0) > cached.upTo) return undefined;
  return { at: cached.at, text: cached.summary, number: cached.number };
}

/** One of those that the viewer may know of, and that the present summariser has made. */
export function cachedSummary(
  view: View,
  scope: Scope,
  turns: readonly TurnRecord[],
  summariser: string,
): CachedSummary | undefined {
  const held = heldSummary(view.state, scope, turns);
  if (held === undefined || held.number > view.upTo) return undefined;
  // One that had to stand in for another does not count.
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
  /** Where a model is configured: who wrote it, and why it was not the model. */
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
