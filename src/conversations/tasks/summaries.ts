/**
 * Summaries of tasks. Readers write nothing into a task's journal, so summaries are kept in memory until a
 * turn is added.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, Semaphore } from "../../base/index.js";
import type { SummaryText } from "../rules/entries.js";
import { MAX_PAGE_BYTES, type SummaryParams } from "../rules/params.js";
import type { ConversationView } from "../rules/queries.js";
import type { TurnRecord } from "../rules/state.js";
import type { Summarizer } from "../rules/summary.js";
import {
  type CachedSummary,
  rangeKey,
  SUMMARY_READS,
  type SummaryRange,
  type SummaryResult,
  summaryResult,
  turnsInRange,
} from "../service/summary-range.js";
import type { TaskConversation, TaskProjection } from "./projection.js";

/** The oldest summaries beyond this number are dropped. */
const MAX_KEPT = 1000;

export class TaskSummaries {
  readonly #conversations: TaskProjection;
  readonly #summarizer: Summarizer;
  readonly #clock: Pick<Clock, "now">;
  readonly #kept = new Map<string, CachedSummary>();
  readonly #running = new Map<string, Promise<SummaryText>>();
  readonly #reads = new Semaphore(SUMMARY_READS);

  constructor(conversations: TaskProjection, summarizer: Summarizer, clock: Pick<Clock, "now">) {
    this.#conversations = conversations;
    this.#summarizer = summarizer;
    this.#clock = clock;
  }

  async summary(
    conversation: TaskConversation,
    view: ConversationView,
    title: string | undefined,
    { scope = {}, include, regenerate }: SummaryParams,
  ): Promise<SummaryResult> {
    const turns = turnsInRange(view, scope);
    const key = keyOf(conversation, scope, turns, title);
    const kept = regenerate === true ? undefined : this.#kept.get(key);
    if (kept !== undefined) {
      return summaryResult(kept.text, include, turns, { generated: false, cachedAt: kept.at });
    }
    const making = this.#running.get(key) ?? this.#make(key, conversation, turns, title);
    return summaryResult(await making, include, turns, { generated: true });
  }

  #make(
    key: string,
    conversation: TaskConversation,
    turns: readonly TurnRecord[],
    title: string | undefined,
  ): Promise<SummaryText> {
    const make = async (): Promise<SummaryText> => {
      const newest = await this.#reads.run(async () => {
        const read = await this.#conversations.contents(conversation, turns.toReversed(), MAX_PAGE_BYTES);
        // Summarizing takes as long as reading: other requests get their turn before each summary.
        await nextTurn();
        return read;
      }, conversation.key);
      const text = await this.#summarizer.summarize({
        ...(title !== undefined && { subject: title }),
        turns: newest.reverse(),
      });
      if (text.fallback === undefined) this.#keep(key, { at: this.#clock.now(), text });
      return text;
    };
    const making = make().finally(() => this.#running.delete(key));
    this.#running.set(key, making);
    return making;
  }

  #keep(key: string, summary: CachedSummary): void {
    this.#kept.delete(key);
    this.#kept.set(key, summary);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** The key covers the input of a summary, so a stale summary is never found. */
function keyOf(
  { key }: TaskConversation,
  scope: SummaryRange,
  turns: readonly TurnRecord[],
  title: string | undefined,
): string {
  return JSON.stringify([key, rangeKey(scope), turns.at(-1)?.number ?? 0, title ?? null]);
}
