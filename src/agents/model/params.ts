/** Parameters of a model agent: `agent_params` of a swarm file, or the options of `modelAgent` in code. */

import { z } from "zod";
import type { UnplacedProblem } from "../../mail/index.js";
import { zodFindings } from "../../mail/index.js";
import { badAgentParams } from "../errors.js";

const Price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  /** Tokens read from the provider's cache. Default: the price of input. */
  cached_input: z.number().nonnegative().exactOptional(),
  /** Tokens written to the provider's cache. Default: the price of input. */
  cache_write: z.number().nonnegative().exactOptional(),
});
/** Per million tokens, in the operator's currency. */
export type Price = z.infer<typeof Price>;

const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

const ModelParams = z.strictObject({
  /** `provider/model`, or several: the next one is called when one is overloaded or refuses to answer. */
  llm: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(5)]),
  system: z.string().default(""),
  reasoning_effort: z.enum(REASONING_EFFORTS).nullable().default(null),
  /** Maximum tokens for thinking. Enables thinking. */
  thinking_budget: z.int().positive().nullable().default(null),
  /** Maximum tokens of one answer, including thinking. */
  max_tokens: z.int().positive().nullable().default(null),
  temperature: z.number().min(0).max(2).nullable().default(null),
  top_p: z.number().gt(0).max(1).nullable().default(null),
  /** Overrides the runtime's tool choice, except where the runtime forces a tool. */
  default_tool_choice: z.enum(["required", "auto"]).nullable().default(null),
  /** `true` requires a proxy, `false` never uses one. By default a configured proxy is used. */
  use_proxy: z.boolean().nullable().default(null),
  stream_tokens: z.boolean().default(false),
  /** Prints the model's text on standard error, if that is a terminal. */
  print_llm_streams: z.boolean().default(false),
  base_url: z.url({ protocol: /^https?$/ }).exactOptional(),
  /** Name of the environment variable that holds the key. Swarm files must not contain keys. */
  api_key_env: z.string().min(1).exactOptional(),
  /** Milliseconds for one call of the model. */
  time_limit_ms: z.number().positive().default(300_000),
  max_retries: z.int().min(0).max(20).default(4),
  /** Size of the model's context in tokens. */
  context_window: z.int().min(1_000).default(128_000),
  /** The share of the context window at which older history is replaced by a summary; 0 disables it. */
  compact_at: z.number().min(0).max(1).default(0.75),
  prompt_caching: z.boolean().default(true),
  /** Explains to the model how mail works. Disable it if `system` does. */
  mail_primer: z.boolean().default(true),
  prices: Price.exactOptional(),
  /** Passed to the AI SDK unchanged, by provider. */
  provider_options: z.record(z.string(), z.record(z.string(), z.json())).default({}),
  /** Accepted because swarm files of the reference implementation contain it. It has no effect there either. */
  memory: z.boolean().exactOptional(),
});
/** With the first model as `llm`, and the others, in order. */
export type ModelParams = Omit<z.infer<typeof ModelParams>, "llm"> & {
  readonly llm: string;
  readonly fallbacks: readonly string[];
};

/** `warn` receives unknown keys, which the reference implementation ignores. */
export function readModelParams(
  params: Readonly<Record<string, unknown>>,
  warn: (finding: UnplacedProblem) => void = () => {},
): ModelParams {
  const parsed = ModelParams.safeParse(withOldNames(params));
  if (parsed.success) return withFallbacks(parsed.data);
  const unknown = parsed.error.issues.filter((issue) => issue.code === "unrecognized_keys");
  const wrong = parsed.error.issues.filter((issue) => issue.code !== "unrecognized_keys");
  if (wrong.length > 0) throw badAgentParams("a model agent", zodFindings(ModelParams, wrong));
  for (const finding of zodFindings(ModelParams, unknown)) warn(finding);
  const keys = new Set(unknown.filter(({ path }) => path.length === 0).flatMap(({ keys: extra }) => extra));
  if (keys.size === 0) throw badAgentParams("a model agent", zodFindings(ModelParams, unknown));
  return readModelParams(Object.fromEntries(Object.entries(params).filter(([key]) => !keys.has(key))), warn);
}

function withFallbacks(parsed: z.infer<typeof ModelParams>): ModelParams {
  const [llm = "", ...fallbacks] = typeof parsed.llm === "string" ? [parsed.llm] : parsed.llm;
  return { ...parsed, llm, fallbacks };
}

/** The direct OpenAI agents of the reference implementation write `model`; `tool_format` is a field of the agent. */
function withOldNames(params: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { model, tool_format: _ignored, ...rest } = params;
  if (typeof model !== "string" || rest.llm !== undefined) {
    return model === undefined ? rest : { ...rest, model };
  }
  return { ...rest, llm: model.includes("/") ? model : `openai/${model}` };
}
