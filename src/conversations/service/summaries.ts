/** Summaries: reused from the journal while current, otherwise generated, once for concurrent requests. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Semaphore } from "../../base/index.js";
import type { Store } from "../../engine/index.js";
import type { SummaryText } from "../rules/entries.js";
import { MAX_PAGE_BYTES, type SummaryParams } from "../rules/params.js";
import type { ConversationView } from "../rules/queries.js";
import type { TurnRecord } from "../rules/state.js";
import { extractSummary, type Summarizer, type SummaryInput } from "../rules/summary.js";
import type { Actor } from "../rules/types.js";
import { hasFullHistory } from "../rules/visibility.js";
import { readTurns } from "./contents.js";
import type { ConversationKernel } from "./kernel.js";
import {
  cachedSummary,
  heldSummary,
  rangeKey,
  SUMMARY_READS,
  type SummaryRange,
  type SummaryResult,
  summaryResult,
  turnsInRange,
} from "./summary-range.js";

export class Summaries {
  readonly #kernel: ConversationKernel;
  readonly #store: Store;
  readonly #summarizer: Summarizer;
  readonly #running = new Map<string, Promise<SummaryText>>();
  readonly #reads = new Semaphore(SUMMARY_READS);

  constructor(kernel: ConversationKernel, store: Store, summarizer: Summarizer) {
    this.#kernel = kernel;
    this.#store = store;
    this.#summarizer = summarizer;
  }

  async summary(actor: Actor, params: SummaryParams): Promise<SummaryResult> {
    const { scope = {}, include } = params;
    const view = await this.#kernel.history(actor, params.conversationId);
    const turns = turnsInRange(view, scope);
    // A summary for limited history access is for this actor only: it is neither stored nor published.
    if (!hasFullHistory(view.viewer)) {
      return summaryResult(await this.#make(view, turns), include, turns, { generated: true });
    }
    const cached =
      params.regenerate === true ? undefined : cachedSummary(view, scope, turns, this.#summarizer.name);
    if (cached !== undefined) {
      return summaryResult(cached.text, include, turns, { generated: false, cachedAt: cached.at });
    }
    const text = await this.#makeOnce(actor, view, scope, turns);
    return summaryResult(text, include, turns, { generated: true });
  }

  /**
   * Returns without waiting for a model: the stored summary if it is current, else an extractive one. Stores
   * nothing.
   */
  async immediate(view: ConversationView): Promise<string> {
    const turns = turnsInRange(view, {});
    const cached = hasFullHistory(view.viewer)
      ? cachedSummary(view, {}, turns, this.#summarizer.name)
      : undefined;
    return (cached?.text ?? extractSummary(await this.#input(view, turns))).summary;
  }

  /** All actors with full history see the same public turns, so they share one summary. */
  #makeOnce(
    actor: Actor,
    view: ConversationView,
    scope: SummaryRange,
    turns: readonly TurnRecord[],
  ): Promise<SummaryText> {
    const key = JSON.stringify([view.state.header.id, rangeKey(scope), turns.at(-1)?.number ?? 0]);
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    const making = this.#createAndStore(actor, view, scope, turns).finally(() => this.#running.delete(key));
    this.#running.set(key, making);
    return making;
  }

  async #createAndStore(
    actor: Actor,
    view: ConversationView,
    scope: SummaryRange,
    turns: readonly TurnRecord[],
  ): Promise<SummaryText> {
    // Check first that the result can be stored: a rejected caller would retry and ask the model again.
    this.#kernel.assertWritable();
    const summary = await this.#make(view, turns);
    // A fallback is stored once, and never replaces a model's summary: the next call may succeed.
    if (summary.fallback !== undefined && heldSummary(view.state, scope, turns) !== undefined) return summary;
    await this.#kernel.submit(view.state.header.id, {
      type: "keep_summary",
      actor,
      made: { scope: rangeKey(scope), upTo: view.upTo, summary },
    });
    return summary;
  }

  async #make(view: ConversationView, turns: readonly TurnRecord[]): Promise<SummaryText> {
    return this.#summarizer.summarize(await this.#input(view, turns));
  }

  /** The newest turns, as many as a page has. */
  #input(view: ConversationView, turns: readonly TurnRecord[]): Promise<SummaryInput> {
    const { subject, id } = view.state.header;
    return this.#reads.run(async () => {
      const newest = await readTurns(this.#store, view, turns.toReversed(), MAX_PAGE_BYTES);
      // Summarizing takes as long as reading: other requests get their turn before each summary.
      await nextTurn();
      return { ...(subject !== undefined && { subject }), turns: newest.reverse() };
    }, id);
  }
}
