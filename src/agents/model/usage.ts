/** What a turn used, and what that costs by the operator's own prices (decisions H4). */
import type { Usage } from "../../engine/agent.js";
import type { ModelUsage } from "./language-model.js";
import type { Price } from "./params.js";

const MILLION = 1_000_000;

/** Adds up the calls of one turn. */
export class UsageCount {
  #input = 0;
  #output = 0;
  #cached = 0;
  #written = 0;
  #calls = 0;

  add({ inputTokens, outputTokens }: ModelUsage): void {
    this.#calls++;
    this.#input += inputTokens.total ?? 0;
    this.#cached += inputTokens.cacheRead ?? 0;
    this.#written += inputTokens.cacheWrite ?? 0;
    this.#output += outputTokens.total ?? 0;
  }

  total(model: string, price: Price | undefined): Usage | undefined {
    if (this.#calls === 0) return undefined;
    return {
      model,
      inputTokens: this.#input,
      outputTokens: this.#output,
      ...(this.#cached > 0 && { cachedInputTokens: this.#cached }),
      ...(price !== undefined && { cost: this.#cost(price) }),
    };
  }

  #cost({ input, output, cached_input = input, cache_write = input }: Price): number {
    const fresh = Math.max(0, this.#input - this.#cached - this.#written);
    const cost =
      fresh * input + this.#cached * cached_input + this.#written * cache_write + this.#output * output;
    return cost / MILLION;
  }
}
