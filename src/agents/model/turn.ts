/** One turn of a model agent: asks, asks again where that helps, and keeps the prompt within the model's context. */
import type { AgentAnswer, HistoryItem, Turn } from "../../engine/agent.js";
import type { BackoffPolicy, Random } from "../../net/index.js";
import { AgentError } from "../errors.js";
import { messageAtHand } from "../round.js";
import { complaint, type Flaw, type ReadAnswer, readAnswer, toCalls } from "./answer.js";
import { callModel, type ModelAnswer } from "./call.js";
import {
  chooseCut,
  estimateTokens,
  plainSummary,
  shortenItems,
  sizeOfAll,
  summaryPrompt,
} from "./compaction.js";
import type { WireFormat } from "./connection.js";
import type { CallOptions, LanguageModel, Prompt } from "./language-model.js";
import { memoOf } from "./memo.js";
import type { ModelParams } from "./params.js";
import { historyPrompt } from "./prompt.js";
import { buildRequest } from "./request.js";
import { ModelCallError, withRetries } from "./retry.js";
import type { Standing, Standings } from "./standing.js";
import { UsageCount } from "./usage.js";

export interface Mind {
  readonly model: LanguageModel;
  readonly format: WireFormat;
  readonly optionsName: string;
  readonly params: ModelParams;
  readonly standings: Standings;
  readonly print: ((text: string) => void) | undefined;
  readonly now: () => number;
  readonly random: Random;
  readonly backoff: BackoffPolicy;
}

/** How often a model is asked to mend an answer that cannot be read, before the engine tells it. */
const MENDS = 2;

/** How often a prompt that the provider calls too long is made smaller. */
const SQUEEZES = 3;

export class ModelTurn {
  readonly #mind: Mind;
  readonly #turn: Turn;
  readonly #token: string | undefined;
  readonly #standing: Standing;
  readonly #usage = new UsageCount();
  #history: readonly HistoryItem[];
  #compaction: AgentAnswer["compaction"];

  /** @param token the caller's, where the model is reached with it */
  constructor(mind: Mind, turn: Turn, token: string | undefined) {
    this.#mind = mind;
    this.#turn = turn;
    this.#token = token;
    this.#standing = mind.standings.of(turn);
    this.#history = turn.history;
  }

  async run(): Promise<AgentAnswer> {
    await this.#compactIfLong();
    let mending: Prompt = [];
    for (let mends = 0; ; mends++) {
      const answer = await this.#askWithinContext(mending);
      const read = readAnswer(answer);
      const flaw = this.#flawOf(answer, read);
      if (flaw === undefined || (flaw !== "empty" && mends >= MENDS)) return this.#answer(answer, read);
      if (mends >= MENDS) {
        const why = answer.finishReason.raw ?? answer.finishReason.unified;
        throw new AgentError("model_failed", `${this.#name} answered with nothing (it stopped for: ${why})`);
      }
      mending = [...mending, ...complaint(read, flaw)];
    }
  }

  /** @throws AgentError `model_refused` when there is no point in asking again */
  #flawOf({ finishReason }: ModelAnswer, read: ReadAnswer): Flaw | undefined {
    if (read.malformed) return "malformed";
    if (read.calls.length > 0) return undefined;
    if (read.text.trim() !== "") return this.#isForNobody() ? "unsent" : undefined;
    if (finishReason.unified !== "content-filter") return "empty";
    throw new AgentError("model_refused", `the provider of ${this.#name} refused to answer (content filter)`);
  }

  /**
   * Text without a call goes to the agent that asked. Where no agent asked (a user wrote, or an answer came in), it
   * would reach nobody or the wrong one. In manual mode text is what is wanted.
   */
  #isForNobody(): boolean {
    if (this.#turn.toolChoice === "auto") return false;
    const { msg_type: type, message } = messageAtHand(this.#turn);
    const asked = type === "request" || type === "interrupt";
    return !(asked && message.sender.address_type === "agent");
  }

  get #name(): string {
    return this.#mind.params.llm;
  }

  #answer(answer: ModelAnswer, read: ReadAnswer): AgentAnswer {
    const calls = toCalls(read);
    const memo = memoOf(
      answer.content,
      read.calls.map(({ part }) => part),
      this.#name,
    );
    const usage = this.#usage.total(this.#name, this.#mind.params.prices);
    return {
      calls,
      ...(read.text !== "" && { text: read.text }),
      ...(read.reasoning !== "" && { reasoning: read.reasoning }),
      ...(memo !== undefined && { memo }),
      ...(usage !== undefined && { usage }),
      ...(this.#compaction !== undefined && { compaction: this.#compaction }),
    };
  }

  /** A prompt that turns out to be too long is made smaller and sent again. */
  async #askWithinContext(mending: Prompt): Promise<ModelAnswer> {
    for (let squeezes = 0; ; squeezes++) {
      try {
        return await this.#ask(this.#request(mending));
      } catch (error) {
        const tooLong = error instanceof ModelCallError && error.failure.kind === "too_long";
        if (!tooLong || squeezes >= SQUEEZES) throw this.#explain(error);
        await this.#squeeze(squeezes);
      }
    }
  }

  #request(mending: Prompt): CallOptions {
    const { params, format, optionsName } = this.#mind;
    const { system, tools } = this.#standing;
    return buildRequest({
      params,
      format,
      optionsName,
      system,
      messages: [...historyPrompt(this.#history, this.#name), ...mending],
      tools,
      toolChoice: this.#turn.toolChoice,
      ...(this.#token !== undefined && { token: this.#token }),
    });
  }

  async #ask(options: CallOptions, quiet = false): Promise<ModelAnswer> {
    const { model, params, print, now, random, backoff } = this.#mind;
    const { signal } = this.#turn;
    const onText = (delta: string): void => {
      this.#turn.emitDelta(delta);
      print?.(delta);
    };
    const answer = await withRetries(
      () =>
        callModel({
          model,
          options,
          signal,
          timeLimit: params.time_limit_ms,
          ...(params.stream_tokens && !quiet && { onText }),
        }),
      { maxRetries: params.max_retries, signal, now, random, policy: backoff },
    );
    this.#usage.add(answer.usage);
    return answer;
  }

  // --- context window -------------------------------------------------------------------------------------------

  async #compactIfLong(): Promise<void> {
    const { context_window: window, compact_at: share } = this.#mind.params;
    if (share === 0) return;
    if (estimateTokens(this.#standing.size + sizeOfAll(this.#history)) <= window * share) return;
    await this.#compact(charactersOf(window * share) / 2);
  }

  /** Each time to a smaller part of what there is; at last, long texts are cut as well. */
  async #squeeze(squeezes: number): Promise<void> {
    const target = sizeOfAll(this.#history) / 2;
    const compacted = await this.#compact(target);
    if (compacted && squeezes < SQUEEZES - 1) return;
    const each = Math.max(500, target / Math.max(1, this.#history.length));
    this.#history = shortenItems(this.#history, Math.floor(each));
  }

  async #compact(keep: number): Promise<boolean> {
    const cut = chooseCut(this.#history, keep);
    if (cut === undefined) return false;
    const summary = await this.#summarise(cut.gone);
    this.#history = [{ kind: "summary", number: cut.upTo, text: summary }, ...cut.kept];
    this.#compaction = { upTo: cut.upTo, summary };
    return true;
  }

  async #summarise(gone: readonly HistoryItem[]): Promise<string> {
    const { params } = this.#mind;
    const options: CallOptions = {
      prompt: summaryPrompt(this.#turn.agent, gone, charactersOf(params.context_window * 0.6)),
      maxOutputTokens: 2_000,
      ...(this.#token !== undefined && { headers: { authorization: `Bearer ${this.#token}` } }),
      providerOptions: this.#mind.format === "openai-responses" ? { openai: { store: false } } : {},
    };
    try {
      const text = readAnswer(await this.#ask(options, true)).text.trim();
      return text === "" ? plainSummary(gone) : text;
    } catch (error) {
      // Worse than a summary, but the task goes on.
      if (error instanceof ModelCallError) return plainSummary(gone);
      throw error;
    }
  }

  #explain(error: unknown): unknown {
    if (!(error instanceof ModelCallError)) return error;
    const { failure, attempts } = error;
    const tried = attempts > 1 ? ` after ${attempts} attempts` : "";
    switch (failure.kind) {
      case "credentials":
        return new AgentError("no_credentials", `${this.#name}: ${failure.message}`);
      case "too_long":
        return new AgentError(
          "model_failed",
          `${this.#name}: the prompt does not fit into its context, though it was shortened: ${failure.message}`,
        );
      case "transient":
      case "final":
        return new AgentError("model_failed", `${this.#name} could not be asked${tried}: ${failure.message}`);
    }
  }
}

function charactersOf(tokens: number): number {
  return Math.floor(tokens * 3.5);
}
