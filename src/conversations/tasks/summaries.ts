/**
 * Summaries of tasks. Nothing is written into a task's journal by those who read it, so they are kept in memory only,
 * while nothing has been said since.
 */
import type { Clock } from "../../engine/ports.js";
import {
  type CachedSummary,
  type Scope,
  type SummaryResult,
  scopeKey,
  summaryResult,
  turnsInScope,
} from "../book/summary-scope.js";
import type { SummaryText } from "../domain/entries.js";
import type { SummaryParams } from "../domain/params.js";
import type { View } from "../domain/queries.js";
import type { TurnRecord } from "../domain/state.js";
import type { Summariser } from "../domain/summary.js";
import type { TaskConversation, TaskConversations } from "./live.js";

/** Of more than that, those that were made first are dropped. */
const MOST_KEPT = 1000;

export class TaskSummaries {
  readonly #conversations: TaskConversations;
  readonly #summariser: Summariser;
  readonly #clock: Pick<Clock, "now">;
  readonly #kept = new Map<string, CachedSummary>();
  readonly #underWay = new Map<string, Promise<SummaryText>>();

  constructor(conversations: TaskConversations, summariser: Summariser, clock: Pick<Clock, "now">) {
    this.#conversations = conversations;
    this.#summariser = summariser;
    this.#clock = clock;
  }

  async summary(
    conversation: TaskConversation,
    view: View,
    title: string | undefined,
    { scope = {}, include, regenerate }: SummaryParams,
  ): Promise<SummaryResult> {
    const turns = turnsInScope(view, scope);
    const key = keyOf(conversation, scope, turns, title);
    const kept = regenerate === true ? undefined : this.#kept.get(key);
    if (kept !== undefined) {
      return summaryResult(kept.text, include, turns, { generated: false, cachedAt: kept.at });
    }
    const making = this.#underWay.get(key) ?? this.#make(key, conversation, turns, title);
    return summaryResult(await making, include, turns, { generated: true });
  }

  #make(
    key: string,
    conversation: TaskConversation,
    turns: readonly TurnRecord[],
    title: string | undefined,
  ): Promise<SummaryText> {
    const make = async (): Promise<SummaryText> => {
      const text = await this.#summariser.summarise({
        ...(title !== undefined && { subject: title }),
        turns: await this.#conversations.contents(conversation, turns),
      });
      if (text.fallback === undefined) this.#keep(key, { at: this.#clock.now(), text });
      return text;
    };
    const making = make().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, making);
    return making;
  }

  #keep(key: string, summary: CachedSummary): void {
    this.#kept.delete(key);
    this.#kept.set(key, summary);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** What a summary was made from is part of its name, so that nothing old is ever found under it. */
function keyOf(
  { key }: TaskConversation,
  scope: Scope,
  turns: readonly TurnRecord[],
  title: string | undefined,
): string {
  return JSON.stringify([key, scopeKey(scope), turns.at(-1)?.number ?? 0, title ?? null]);
}
