/** Token usage of a turn, and its cost at the operator's prices (decision H4). */
import type { FailedCall, Usage } from "../../engine/index.js";
import type { ModelUsage } from "./language-model.js";
import type { Price } from "./params.js";

const MILLION = 1_000_000;

/** Adds up the calls of one turn, also of several models. */
export class UsageCount {
  #input = 0;
  #output = 0;
  #cached = 0;
  #cost: number | undefined;
  #model: string | undefined;
  readonly #failures: FailedCall[] = [];

  add({ inputTokens, outputTokens }: ModelUsage, model: string, price: Price | undefined): void {
    const input = inputTokens.total ?? 0;
    const cached = inputTokens.cacheRead ?? 0;
    const output = outputTokens.total ?? 0;
    this.#model = model;
    this.#input += input;
    this.#cached += cached;
    this.#output += output;
    if (price === undefined) return;
    const written = inputTokens.cacheWrite ?? 0;
    this.#cost = (this.#cost ?? 0) + costOf({ input, cached, written, output }, price);
  }

  failed(call: FailedCall): void {
    this.#failures.push(call);
  }

  get total(): Usage | undefined {
    if (this.#model === undefined && this.#failures.length === 0) return undefined;
    return {
      ...(this.#model !== undefined && {
        model: this.#model,
        inputTokens: this.#input,
        outputTokens: this.#output,
      }),
      ...(this.#cached > 0 && { cachedInputTokens: this.#cached }),
      ...(this.#cost !== undefined && { cost: this.#cost }),
      ...(this.#failures.length > 0 && { failures: [...this.#failures] }),
    };
  }
}

interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  readonly output: number;
}

function costOf(tokens: Tokens, { input, output, cached_input = input, cache_write = input }: Price): number {
  const { cached, written } = tokens;
  const fresh = Math.max(0, tokens.input - cached - written);
  const cost = fresh * input + cached * cached_input + written * cache_write + tokens.output * output;
  return cost / MILLION;
}
