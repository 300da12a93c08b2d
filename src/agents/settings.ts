/** Settings of model providers. */
import {
  defineSettings,
  httpUrl,
  integer,
  isTable,
  type Kind,
  numberKind,
  table,
  text,
} from "../base/index.js";

/** Per million tokens. The same fields as `prices` in `agent_params`. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_write?: number;
}

const priceKind: Kind<Price> = {
  name: "a table with 'input' and 'output', and optionally 'cached_input' and 'cache_write': numbers per million tokens",
  brief: "`input`, `output`, …",
  parse: (raw) => {
    const rejected = { problem: undefined };
    if (!isTable(raw)) return rejected;
    const { input, output, cached_input, cache_write, ...unknown } = raw;
    const optional = (value: unknown): value is number | undefined => value === undefined || isPrice(value);
    if (!isPrice(input) || !isPrice(output) || !optional(cached_input) || !optional(cache_write))
      return rejected;
    if (Object.keys(unknown).length > 0) return rejected;
    return {
      value: {
        input,
        output,
        ...(cached_input !== undefined && { cached_input }),
        ...(cache_write !== undefined && { cache_write }),
      },
    };
  },
  fromText: (given) => given,
  show: ({ input, output }) => `${input}/${output}`,
};

function isPrice(value: unknown): value is number {
  return "value" in numberKind.parse(value);
}

export const modelSettings = defineSettings({
  proxyUrl: httpUrl("models.proxy_url", {
    env: ["LITELLM_PROXY_API_BASE"],
    doc: "LiteLLM proxy for model calls.",
  }),
  proxyKey: text("models.proxy_key", {
    secret: true,
    env: ["LITELLM_PROXY_API_KEY"],
    doc: "Key for the proxy, used when the caller's own key is not available.",
  }),
  openaiKey: text("models.openai_key", { secret: true, env: ["OPENAI_API_KEY"], doc: "Key for OpenAI." }),
  anthropicKey: text("models.anthropic_key", {
    secret: true,
    env: ["ANTHROPIC_API_KEY"],
    doc: "Key for Anthropic.",
  }),
  defaultModel: text("models.default", {
    doc: "Model of the bundled example agents that name none, such as `openai/gpt-5-mini`. Without it, or without its key, they follow scripts.",
  }),
  concurrency: integer("models.concurrency", {
    min: 1,
    default: 64,
    doc: "Model calls at once with one key of one provider. Fewer while the provider limits us.",
  }),
  requestsPerMinute: integer("models.requests_per_minute", {
    default: 0,
    doc: "Model calls per minute with one key of one provider; 0 means no limit.",
  }),
  prices: table("models.prices", priceKind, {
    default: {},
    doc: 'Price of models per million tokens, by `llm`: `"openai/gpt-5" = { input = 1.25, output = 10 }`. Costs are counted only for models with a price.',
  }),
});
