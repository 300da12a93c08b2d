/** Summaries: from the journal while they hold, made anew otherwise, and made once however many ask. */
import type { Store } from "../../engine/ports.js";
import type { SummaryText } from "../domain/entries.js";
import type { SummaryParams } from "../domain/params.js";
import type { View } from "../domain/queries.js";
import type { TurnRecord } from "../domain/state.js";
import { extractSummary, type Summariser, type SummaryInput } from "../domain/summary.js";
import type { Caller } from "../domain/types.js";
import { hasFullHistory } from "../domain/visibility.js";
import { readTurns } from "./contents.js";
import type { ConversationKernel } from "./kernel.js";
import {
  cachedSummary,
  heldSummary,
  type Scope,
  type SummaryResult,
  scopeKey,
  summaryResult,
  turnsInScope,
} from "./summary-scope.js";

export class Summaries {
  readonly #kernel: ConversationKernel;
  readonly #store: Store;
  readonly #summariser: Summariser;
  readonly #underWay = new Map<string, Promise<SummaryText>>();

  constructor(kernel: ConversationKernel, store: Store, summariser: Summariser) {
    this.#kernel = kernel;
    this.#store = store;
    this.#summariser = summariser;
  }

  async summary(caller: Caller, params: SummaryParams): Promise<SummaryResult> {
    const { scope = {}, include } = params;
    const view = await this.#kernel.history(caller, params.conversationId);
    const turns = turnsInScope(view, scope);
    // One that is made for a narrow window is nobody else's business: it is neither kept nor told.
    if (!hasFullHistory(view.viewer)) {
      return summaryResult(await this.#make(view, turns), include, turns, { generated: true });
    }
    const cached =
      params.regenerate === true ? undefined : cachedSummary(view, scope, turns, this.#summariser.name);
    if (cached !== undefined) {
      return summaryResult(cached.text, include, turns, { generated: false, cachedAt: cached.at });
    }
    const text = await this.#makeOnce(caller, view, scope, turns);
    return summaryResult(text, include, turns, { generated: true });
  }

  /** At once, whoever else writes summaries: the kept one while it holds, else sentences that were said. Writes nothing. */
  async atHand(view: View): Promise<string> {
    const turns = turnsInScope(view, {});
    const cached = hasFullHistory(view.viewer)
      ? cachedSummary(view, {}, turns, this.#summariser.name)
      : undefined;
    return (cached?.text ?? extractSummary(await this.#input(view, turns))).summary;
  }

  /** Whoever has the whole history sees the same public turns, so one summary is for all of them. */
  #makeOnce(caller: Caller, view: View, scope: Scope, turns: readonly TurnRecord[]): Promise<SummaryText> {
    const key = JSON.stringify([view.state.header.id, scopeKey(scope), turns.at(-1)?.number ?? 0]);
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const making = this.#makeAndKeep(caller, view, scope, turns).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, making);
    return making;
  }

  async #makeAndKeep(
    caller: Caller,
    view: View,
    scope: Scope,
    turns: readonly TurnRecord[],
  ): Promise<SummaryText> {
    // Nobody asks a model for what cannot be kept: whoever is refused asks again.
    this.#kernel.assertWritable();
    const summary = await this.#make(view, turns);
    // A stand-in is kept once, and never in the place of what it stands in for: the next call may do better.
    if (summary.fallback !== undefined && heldSummary(view.state, scope, turns) !== undefined) return summary;
    await this.#kernel.submit(view.state.header.id, {
      type: "keep_summary",
      caller,
      made: { scope: scopeKey(scope), upTo: view.upTo, summary },
    });
    return summary;
  }

  async #make(view: View, turns: readonly TurnRecord[]): Promise<SummaryText> {
    return this.#summariser.summarise(await this.#input(view, turns));
  }

  async #input(view: View, turns: readonly TurnRecord[]): Promise<SummaryInput> {
    const { subject } = view.state.header;
    return {
      ...(subject !== undefined && { subject }),
      turns: await readTurns(this.#store, view, turns),
    };
  }
}
