/** What a model agent is told: `agent_params` of a swarm file, or the options of `modelAgent` in code. */
import { z } from "zod";
import type { Finding } from "../../mail/swarm-file/problems.js";
import { zodFindings } from "../../mail/swarm-file/zod-findings.js";
import { AgentParamsError } from "../errors.js";

const Price = z.strictObject({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  /** What was read from the provider's cache. Default: the price of input. */
  cached_input: z.number().nonnegative().exactOptional(),
  /** What was written to it. Default: the price of input. */
  cache_write: z.number().nonnegative().exactOptional(),
});
/** Per million tokens, in whatever currency the operator counts. */
export type Price = z.infer<typeof Price>;

const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

const ModelParams = z.strictObject({
  /** `provider/model`. */
  llm: z.string().min(1),
  system: z.string().default(""),
  reasoning_effort: z.enum(REASONING_EFFORTS).nullable().default(null),
  /** Tokens that the model may spend on thinking; switches thinking on. */
  thinking_budget: z.int().positive().nullable().default(null),
  /** Of one answer, thinking included. */
  max_tokens: z.int().positive().nullable().default(null),
  temperature: z.number().min(0).max(2).nullable().default(null),
  top_p: z.number().gt(0).max(1).nullable().default(null),
  /** In place of what the runtime asks for; a tool that the runtime forces stays forced. */
  default_tool_choice: z.enum(["required", "auto"]).nullable().default(null),
  /** `true` needs a proxy, `false` never uses it; without it the proxy is used if there is one. */
  use_proxy: z.boolean().nullable().default(null),
  stream_tokens: z.boolean().default(false),
  /** Shows what the model writes on standard error, if that is a terminal. */
  print_llm_streams: z.boolean().default(false),
  base_url: z.url({ protocol: /^https?$/ }).exactOptional(),
  /** Name of the environment variable that holds the key. Keys themselves do not belong into swarm files. */
  api_key_env: z.string().min(1).exactOptional(),
  /** Milliseconds for one call of the model. */
  time_limit_ms: z.number().positive().default(300_000),
  max_retries: z.int().min(0).max(20).default(4),
  /** How many tokens fit into the model's context. */
  context_window: z.int().min(1_000).default(128_000),
  /** The share of the context window at which older history is replaced by a summary; 0 never does. */
  compact_at: z.number().min(0).max(1).default(0.75),
  prompt_caching: z.boolean().default(true),
  /** Explains to the model how mail works; switch it off if `system` does. */
  mail_primer: z.boolean().default(true),
  prices: Price.exactOptional(),
  /** Passed on to the AI SDK as it is, by provider. */
  provider_options: z.record(z.string(), z.record(z.string(), z.json())).default({}),
  /** Accepted because swarm files of the reference implementation have it; it never had a meaning there. */
  memory: z.boolean().exactOptional(),
});
export type ModelParams = z.infer<typeof ModelParams>;
export type ModelParamsInput = z.input<typeof ModelParams>;

/** `warn` is told about keys that mean nothing here, since the reference implementation passes over those. */
export function readModelParams(
  params: Readonly<Record<string, unknown>>,
  warn: (finding: Finding) => void = () => {},
): ModelParams {
  const parsed = ModelParams.safeParse(withOldNames(params));
  if (parsed.success) return parsed.data;
  const unknown = parsed.error.issues.filter((issue) => issue.code === "unrecognized_keys");
  const wrong = parsed.error.issues.filter((issue) => issue.code !== "unrecognized_keys");
  if (wrong.length > 0) throw new AgentParamsError("a model agent", zodFindings(ModelParams, wrong));
  for (const finding of zodFindings(ModelParams, unknown)) warn(finding);
  const keys = new Set(unknown.filter(({ path }) => path.length === 0).flatMap(({ keys: extra }) => extra));
  if (keys.size === 0) throw new AgentParamsError("a model agent", zodFindings(ModelParams, unknown));
  return readModelParams(Object.fromEntries(Object.entries(params).filter(([key]) => !keys.has(key))), warn);
}

/** The direct OpenAI agents of the reference implementation say `model`; `tool_format` stands beside the parameters. */
function withOldNames(params: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { model, tool_format: _ignored, ...rest } = params;
  if (typeof model !== "string" || rest.llm !== undefined) {
    return model === undefined ? rest : { ...rest, model };
  }
  return { ...rest, llm: model.includes("/") ? model : `openai/${model}` };
}
