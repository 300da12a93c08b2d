/**
 * Tokens and cost of a turn. Providers are not believed blindly: a number that is missing or that the size of prompt and
 * answer contradicts is replaced by an estimate, because budgets depend on it.
 */
import type { FailedCall, Usage } from "../../engine/index.js";
import { estimateTokens } from "./compaction.js";
import type { CallOptions, Content, ModelUsage } from "./language-model.js";
import type { Price } from "./params.js";

const MILLION = 1_000_000;

/** No tokenizer packs more bytes of a prompt into a token on average. */
const MOST_BYTES_PER_TOKEN = 10;
/** Nor does it make more tokens of a byte; providers add instructions of their own. */
const MOST_TOKENS_PER_BYTE = 4;
const MOST_ADDED_INPUT = 20_000;
/** Models think without showing it. */
const MOST_HIDDEN_OUTPUT = 1_000_000;

/** A model call before its end is known. */
export interface CallEstimate {
  readonly model: string;
  readonly price: Price | undefined;
  readonly promptBytes: number;
  readonly inputTokens: number;
  /** Of the input. */
  readonly cost?: number;
}

export function estimateCall(options: CallOptions, model: string, price: Price | undefined): CallEstimate {
  const promptBytes = bytesOf(options.prompt) + bytesOf(options.tools ?? []);
  const inputTokens = estimateTokens(promptBytes);
  return {
    model,
    price,
    promptBytes,
    inputTokens,
    ...(price !== undefined && { cost: costOf({ ...NONE, input: inputTokens }, price) }),
  };
}

/** Signed or encrypted parts are not billed by their size. */
function bytesOf(value: unknown): number {
  return Buffer.byteLength(
    JSON.stringify(value, (key, part: unknown) => (key === "providerOptions" ? undefined : part)) ?? "",
  );
}

function answerBytes(content: readonly Content[]): number {
  let bytes = 0;
  for (const part of content) {
    if (part.type === "text" || part.type === "reasoning") bytes += Buffer.byteLength(part.text);
    else if (part.type === "tool-call") bytes += Buffer.byteLength(part.toolName) + bytesOf(part.input);
  }
  return bytes;
}

/** Adds up the calls of one turn, also of several models. */
export class UsageCount {
  #calls = 0;
  #input = 0;
  #output = 0;
  #cached = 0;
  #cost: number | undefined;
  #model: string | undefined;
  #isEstimated = false;
  /** The call that is running. */
  #open: CallEstimate | undefined;
  readonly #failures: FailedCall[] = [];

  /** A call starts. Until its end is known it counts by estimate. */
  begin(call: CallEstimate): void {
    this.#settle();
    this.#calls++;
    this.#open = call;
  }

  answered(reported: ModelUsage, content: readonly Content[]): void {
    const call = this.#open;
    if (call === undefined) return;
    this.#open = undefined;
    this.#model = call.model;
    const input = this.#checked(reported?.inputTokens?.total, call.promptBytes, MOST_ADDED_INPUT);
    const output = this.#checked(reported?.outputTokens?.total, answerBytes(content), MOST_HIDDEN_OUTPUT);
    const cached = Math.min(input, positive(reported?.inputTokens?.cacheRead));
    const written = Math.min(input - cached, positive(reported?.inputTokens?.cacheWrite));
    this.#add({ input, cached, written, output }, call.price);
  }

  /** @param isCharged the provider may have worked on it */
  failed(failure: FailedCall, isCharged = false): void {
    this.#failures.push(failure);
    if (isCharged) this.#settle();
    this.#open = undefined;
  }

  get total(): Usage | undefined {
    if (this.#calls === 0 && this.#failures.length === 0) return undefined;
    const open = this.#open;
    const input = this.#input + (open?.inputTokens ?? 0);
    const cost =
      this.#cost === undefined && open?.cost === undefined
        ? undefined
        : (this.#cost ?? 0) + (open?.cost ?? 0);
    return {
      calls: this.#calls,
      ...(this.#model !== undefined && { model: this.#model }),
      ...((this.#model !== undefined || input > 0) && { inputTokens: input, outputTokens: this.#output }),
      ...(this.#cached > 0 && { cachedInputTokens: this.#cached }),
      ...(cost !== undefined && { cost }),
      ...((this.#isEstimated || open !== undefined) && { estimated: true }),
      ...(this.#failures.length > 0 && { failures: [...this.#failures] }),
    };
  }

  /** The end of the open call will not be known: its estimate stays. */
  #settle(): void {
    if (this.#open === undefined) return;
    this.#isEstimated = true;
    this.#add({ ...NONE, input: this.#open.inputTokens }, this.#open.price);
    this.#open = undefined;
  }

  #add(tokens: Tokens, price: Price | undefined): void {
    this.#input += tokens.input;
    this.#cached += tokens.cached;
    this.#output += tokens.output;
    if (price !== undefined) this.#cost = (this.#cost ?? 0) + costOf(tokens, price);
  }

  #checked(reported: number | undefined, bytes: number, added: number): number {
    const most = bytes * MOST_TOKENS_PER_BYTE + added;
    const least = Math.floor(bytes / MOST_BYTES_PER_TOKEN);
    if (typeof reported === "number" && reported >= least && reported <= most) return reported;
    this.#isEstimated = true;
    return typeof reported === "number" && reported > most ? most : estimateTokens(bytes);
  }
}

interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly output: number;
}

const NONE: Tokens = { input: 0, cached: 0, written: 0, output: 0 };

function positive(value: number | undefined): number {
  return typeof value === "number" && value > 0 ? value : 0;
}

function costOf(tokens: Tokens, { input, output, cached_input = input, cache_write = input }: Price): number {
  const { cached, written } = tokens;
  const fresh = Math.max(0, tokens.input - cached - written);
  const cost = fresh * input + cached * cached_input + written * cache_write + tokens.output * output;
  return cost / MILLION;
}
