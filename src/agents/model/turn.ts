/**
 * One turn of a model agent: calls the model, retries and corrects, keeps the prompt within the model's context, and
 * calls the next model when one is overloaded or refuses to answer.
 */

import { hasCode, MailroomError, type Random, type Report, type RetryPolicy } from "../../base/index.js";
import { type HistoryItem, type Turn, TurnHeldError, type TurnResult } from "../../engine/index.js";
import { currentMessage } from "../open-work.js";
import { type AnswerProblem, correction, type ReadAnswer, readAnswer, toCalls } from "./answer.js";
import { AnswerStream } from "./answer-stream.js";
import { callModel, type ModelAnswer } from "./call.js";
import {
  chooseCompactionPoint,
  estimateTokens,
  fitItems,
  plainSummary,
  shortenItems,
  sizeOfAll,
  summaryPrompt,
} from "./compaction.js";
import type { WireFormat } from "./connection.js";
import type { Failure } from "./failures.js";
import type { Gate } from "./gate.js";
import type { CallOptions, SdkModel, StreamPart } from "./language-model.js";
import { type Correction, memoOf, reasonedOf } from "./memo.js";
import type { ModelParams } from "./params.js";
import { type HistoryPrompt, historyPrompt } from "./prompt.js";
import type { PromptCache, PromptPrefix } from "./prompt-cache.js";
import { buildRequest } from "./request.js";
import { failedBecause, withRetries } from "./retry.js";
import type { ModelTraits } from "./traits.js";
import { estimateCall, UsageCount } from "./usage.js";

export interface ModelSetup {
  /** `provider/model`. */
  readonly name: string;
  readonly model: SdkModel;
  readonly format: WireFormat;
  readonly traits: ModelTraits;
  readonly optionsName: string;
  readonly params: ModelParams;
  readonly prompts: PromptCache;
  readonly print: ((text: string) => void) | undefined;
  readonly now: () => number;
  readonly random: Random;
  readonly backoff: RetryPolicy;
  /** @param token the caller's token, when the model is called with it */
  readonly gate: (token: string | undefined) => Gate;
  /** Values that must not be logged. */
  readonly secrets: readonly string[];
  readonly report: Report | undefined;
}

/** A model that can be called in this turn. */
export interface Candidate {
  /** Loads the provider when it is first called. */
  load(): Promise<ModelSetup>;
  /** @throws TurnHeldError without credentials: the task waits for them (decision H1) */
  token(turn: Turn): string | undefined;
}

/** Corrections before an unusable answer is passed to the engine. */
const MAX_CORRECTIONS = 2;

/** Attempts to shorten a prompt that the provider rejects as too long. */
const MAX_REDUCTIONS = 3;

/** Retries of an overloaded model when another one can be called instead. */
const RETRIES_BEFORE_FALLBACK = 1;

/** With another model at hand, a provider that allows no call for this long is not waited for. Milliseconds. */
const LONGEST_PAUSE_BEFORE_FALLBACK = 2_000;

/** Takes the turn with the first model that answers. */
export async function takeTurn(candidates: readonly Candidate[], turn: Turn): Promise<TurnResult> {
  const usage = new UsageCount();
  const stream = new AnswerStream(turn);
  let held: TurnHeldError | undefined;
  let failed: unknown;
  for (const [index, candidate] of candidates.entries()) {
    const hasFallback = index + 1 < candidates.length;
    try {
      const token = candidate.token(turn);
      const setup = await candidate.load();
      return await new ModelTurn(setup, turn, { token, usage, hasFallback, stream }).run();
    } catch (error) {
      turn.signal.throwIfAborted();
      // No other model is cheaper than none.
      if (error instanceof TurnHeldError && error.reason === "budget") throw error;
      if (error instanceof TurnHeldError) held ??= error;
      else if (hasFallback && mayFallBack(error)) failed = error;
      else throw error;
    }
  }
  throw failed ?? held;
}

function mayFallBack(error: unknown): boolean {
  return hasCode(error, "model_refused") || failedBecause(error, "transient", "quota", "credentials");
}

interface TurnParts {
  readonly token: string | undefined;
  readonly usage: UsageCount;
  readonly hasFallback: boolean;
  readonly stream: AnswerStream;
}

class ModelTurn {
  readonly #setup: ModelSetup;
  readonly #turn: Turn;
  readonly #parts: TurnParts;
  readonly #gate: Gate;
  readonly #prefix: PromptPrefix;
  #history: readonly HistoryItem[];
  #compaction: TurnResult["compaction"];
  /** The provider rejected the reasoning of earlier answers. */
  #withoutReasoning = false;

  constructor(setup: ModelSetup, turn: Turn, parts: TurnParts) {
    this.#setup = setup;
    this.#turn = turn;
    this.#parts = parts;
    this.#gate = setup.gate(parts.token);
    this.#prefix = setup.prompts.of(turn);
    this.#history = fitItems(turn.history, charactersOf(setup.params.context_window));
  }

  async run(): Promise<TurnResult> {
    if (this.#parts.hasFallback && this.#gate.closedFor > LONGEST_PAUSE_BEFORE_FALLBACK) {
      throw this.#failed("its provider allows no calls at the moment", "transient");
    }
    await this.#compactIfLong();
    const corrections: Correction[] = [];
    for (;;) {
      const { answer, prompt } = await this.#askWithinContext(corrections);
      const read = readAnswer(answer);
      const problem = this.#problemWith(answer, read);
      if (problem === undefined) return this.#result(answer, read, prompt, corrections);
      if (corrections.length >= MAX_CORRECTIONS)
        return this.#lastResort(answer, read, prompt, corrections, problem);
      const reasoned = reasonedOf(answer.content, this.#setup.format, prompt.prefix);
      corrections.push(correction(read, problem, reasoned));
    }
  }

  /** @throws MailroomError `model_refused` when another attempt cannot help */
  #problemWith({ finishReason }: ModelAnswer, read: ReadAnswer): AnswerProblem | undefined {
    const { toolChoice } = this.#turn;
    const isRefusal = finishReason.unified === "content-filter";
    const hasText = read.text.trim() !== "";
    if (isRefusal && read.calls.length === 0 && (!hasText || this.#parts.hasFallback)) {
      throw this.#refused();
    }
    if (read.malformed) return "malformed";
    if (typeof toolChoice === "object" && !read.calls.some(({ part }) => part.toolName === toolChoice.name)) {
      return isRefusal ? undefined : { mustCall: toolChoice.name };
    }
    if (read.calls.length > 0) return undefined;
    if (!hasText) return "empty";
    if (finishReason.unified === "length") return "cut";
    return this.#hasNoRecipient() && !isRefusal ? "unsent" : undefined;
  }

  #refused(): MailroomError {
    const problem = "it refused to answer (content filter)";
    this.#note({ kind: "final", problem, detail: problem });
    return new MailroomError(
      "model_refused",
      `the provider of ${this.#setup.name} refused to answer (content filter)`,
    );
  }

  /** The answer remains unusable after all corrections. @throws MailroomError `model_failed` */
  #lastResort(
    answer: ModelAnswer,
    read: ReadAnswer,
    prompt: HistoryPrompt,
    corrections: readonly Correction[],
    problem: AnswerProblem,
  ): TurnResult {
    switch (problem) {
      case "empty": {
        const why = answer.finishReason.raw ?? answer.finishReason.unified;
        throw this.#failed(`returned an empty answer (finish reason: ${why})`);
      }
      case "cut":
        throw this.#failed("writes answers that are longer than their limit of tokens (max_tokens)");
      default:
        return this.#result(answer, read, prompt, corrections);
    }
  }

  #failed(message: string, reason?: Failure["kind"]): MailroomError {
    return new MailroomError("model_failed", `${this.#setup.name} ${message}`, {
      ...(reason !== undefined && { details: { reason } }),
    });
  }

  /**
   * Text without a call goes to the agent that sent the request. Without such an agent (a user wrote, or an answer
   * arrived) it has no recipient. In manual mode text is expected.
   */
  #hasNoRecipient(): boolean {
    if (this.#turn.toolChoice === "auto") return false;
    const { msg_type: type, message } = currentMessage(this.#turn);
    const asked = type === "request" || type === "interrupt";
    return !(asked && message.sender.address_type === "agent");
  }

  #result(
    answer: ModelAnswer,
    read: ReadAnswer,
    prompt: HistoryPrompt,
    corrections: readonly Correction[],
  ): TurnResult {
    const { name, format } = this.#setup;
    const memo = memoOf({
      content: answer.content,
      calls: read.calls.map(({ part }) => part),
      model: name,
      format,
      prefix: prompt.prefix,
      corrections,
      alone: this.#withoutReasoning,
    });
    const usage = this.#parts.usage.total;
    const delivered = this.#deliver(read);
    return {
      ...delivered,
      ...(read.reasoning !== "" && { reasoning: read.reasoning }),
      ...(memo !== undefined && { memo }),
      ...(usage !== undefined && { usage }),
      ...(this.#compaction !== undefined && { compaction: this.#compaction }),
    };
  }

  /**
   * A model that only writes text where a user waits, because it refuses or does not call a tool even after corrections,
   * has given its answer.
   */
  #deliver(read: ReadAnswer): Pick<TurnResult, "calls" | "text"> {
    const { toolChoice, tools } = this.#turn;
    const { text } = read;
    const completes = tools.some(({ name }) => name === "task_complete");
    const isForUser = typeof toolChoice === "object" || this.#hasNoRecipient();
    if (read.calls.length === 0 && text.trim() !== "" && isForUser && completes) {
      return { calls: [{ id: "text_answer", name: "task_complete", args: { finish_message: text } }] };
    }
    return { calls: toCalls(read), ...(text !== "" && { text }) };
  }

  /** Shortens a prompt that the provider rejects as too long, or leaves out reasoning that it rejects, and retries. */
  async #askWithinContext(
    corrections: readonly Correction[],
  ): Promise<{ readonly answer: ModelAnswer; readonly prompt: HistoryPrompt }> {
    for (let reductions = 0; ; ) {
      const prompt = this.#prompt(corrections);
      try {
        return { answer: await this.#ask(this.#request(prompt)), prompt };
      } catch (error) {
        if (failedBecause(error, "stale_reasoning") && !this.#withoutReasoning) {
          this.#withoutReasoning = true;
          continue;
        }
        if (!failedBecause(error, "too_long") || reductions >= MAX_REDUCTIONS) throw error;
        await this.#reduce(reductions++);
      }
    }
  }

  #prompt(corrections: readonly Correction[]): HistoryPrompt {
    const { name, traits } = this.#setup;
    const parts = {
      model: name,
      traits,
      prefix: this.#prefix.text,
      withoutReasoning: this.#withoutReasoning,
    };
    return historyPrompt(this.#history, parts, corrections);
  }

  #request({ messages }: HistoryPrompt): CallOptions {
    const { params, format, traits, optionsName } = this.#setup;
    const { token } = this.#parts;
    const { system, tools } = this.#prefix;
    return buildRequest({
      params,
      format,
      traits,
      optionsName,
      system,
      messages,
      tools,
      toolChoice: this.#turn.toolChoice,
      ...(token !== undefined && { token }),
    });
  }

  async #ask(options: CallOptions, quiet = false): Promise<ModelAnswer> {
    const { name, model, params, print, now, random, backoff } = this.#setup;
    const { usage, hasFallback, stream } = this.#parts;
    const { signal } = this.#turn;
    const isStreamed = params.stream_tokens && !quiet;
    const onPart = (part: StreamPart): void => {
      const added = stream.add(part);
      if (added !== "") print?.(added);
    };
    const estimate = estimateCall(options, name, params.prices);
    const call = async (): Promise<ModelAnswer> => {
      const { inputTokens, cost } = estimate;
      await this.#turn.beginCall({ model: name, inputTokens, ...(cost !== undefined && { cost }) });
      usage.begin(estimate);
      this.#reportUsage();
      if (!quiet) stream.begin();
      return callModel({
        model,
        options,
        signal,
        timeLimit: params.time_limit_ms,
        ...(isStreamed && { onPart }),
      });
    };
    const answer = await withRetries(() => this.#gate.run(call, signal), {
      name,
      maxRetries: hasFallback ? Math.min(RETRIES_BEFORE_FALLBACK, params.max_retries) : params.max_retries,
      signal,
      now,
      random,
      policy: backoff,
      onFailure: (failure) => this.#note(failure),
    });
    usage.answered(answer.usage, answer.content);
    this.#reportUsage();
    return answer;
  }

  /** Makes a failed call visible: in our words to users, in the provider's words to the operator. */
  #note({ problem, detail, isCharged }: Failure): void {
    const { name, secrets, report } = this.#setup;
    const { token, usage } = this.#parts;
    usage.failed({ model: name, problem }, isCharged);
    this.#reportUsage();
    const { agent, task } = this.#turn;
    const words = withoutSecrets(detail, token === undefined ? secrets : [...secrets, token]);
    report?.({
      code: "model_call_failed",
      message: `agent '${agent}': a call of ${name} failed: ${problem}${words === problem ? "" : ` (${words})`}`,
      task: task.key,
    });
  }

  #reportUsage(): void {
    const { total } = this.#parts.usage;
    if (total !== undefined) this.#turn.reportUsage(total);
  }

  // --- context window -------------------------------------------------------------------------------------------

  async #compactIfLong(): Promise<void> {
    const { context_window: window, compact_at: share } = this.#setup.params;
    if (share === 0) return;
    if (estimateTokens(this.#prefix.text.length + sizeOfAll(this.#history)) <= window * share) return;
    await this.#compact(charactersOf(window * share) / 2);
  }

  /** Halves the history each time. The last attempt also cuts long texts. */
  async #reduce(reductions: number): Promise<void> {
    const target = sizeOfAll(this.#history) / 2;
    const compacted = await this.#compact(target);
    if (compacted && reductions < MAX_REDUCTIONS - 1) return;
    const each = Math.max(500, target / Math.max(1, this.#history.length));
    this.#history = shortenItems(this.#history, Math.floor(each));
  }

  async #compact(keep: number): Promise<boolean> {
    const cut = chooseCompactionPoint(this.#history, keep);
    if (cut === undefined) return false;
    const { upTo, gone, requests, kept } = cut;
    const summary = await this.#summarize(gone);
    this.#history = [...requests, { kind: "summary", number: upTo, text: summary }, ...kept];
    this.#compaction = { upTo, summary, keep: requests.map(({ message }) => message.id) };
    return true;
  }

  async #summarize(gone: readonly HistoryItem[]): Promise<string> {
    const { params, format } = this.#setup;
    const { token } = this.#parts;
    const options: CallOptions = {
      prompt: summaryPrompt(this.#turn.agent, gone, charactersOf(params.context_window * 0.6)),
      maxOutputTokens: 4_000,
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
      providerOptions: format === "openai-responses" ? { openai: { store: false } } : {},
    };
    try {
      const text = readAnswer(await this.#ask(options, true)).text.trim();
      return text === "" ? plainSummary(gone) : text;
    } catch (error) {
      // Worse than a model's summary, but the task continues.
      if (hasCode(error, "model_failed", "no_credentials")) return plainSummary(gone);
      throw error;
    }
  }
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => (secret === "" ? left : left.replaceAll(secret, "[key]")), text);
}

function charactersOf(tokens: number): number {
  return Math.floor(tokens * 3.5);
}
