/** `modelAgent`: an agent that uses a model. */

import { hasCode, type Random, type Report, type RetryPolicy } from "../../base/index.js";
import { type AgentFunction, type Turn, TurnHeldError } from "../../engine/index.js";
import { badAgentParams } from "../errors.js";
import { type MailFunction, starting } from "../function.js";
import { boundedFetch } from "./bounded.js";
import { type Connection, type EnvironmentVariables, planConnection, type WireFormat } from "./connection.js";
import { DEFAULT_GATE_LIMITS, type GateLimits, Gates } from "./gate.js";
import { connect, optionsName, type SdkModel } from "./language-model.js";
import { type ModelParams, type Price, readModelParams } from "./params.js";
import { PromptCache } from "./prompt-cache.js";
import { MODEL_BACKOFF } from "./retry.js";
import { traitsOf } from "./traits.js";
import { type Candidate, type ModelSetup, takeTurn } from "./turn.js";

/** Dependencies that belong to the process, not to one agent. */
export interface ModelEnvironment {
  /** Variables with keys and URLs. Default: the process's environment. */
  readonly env?: EnvironmentVariables;
  /** Prices by `llm`, for agents without prices of their own (decision H4). */
  readonly prices?: Readonly<Record<string, Price>>;
  /** Calls providers. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Output of `print_llm_streams`. Default: standard error, if it is a terminal. */
  readonly print?: (text: string) => void;
  readonly now?: () => number;
  readonly random?: Random;
  /** Delays between attempts when the provider specifies none. */
  readonly backoff?: RetryPolicy;
  /** Limits for all calls with one key of one provider. */
  readonly limits?: Partial<GateLimits>;
  /** Default: one for the process. */
  readonly gates?: Gates;
  /** Receives failed calls in the provider's words, for the operator's log. */
  readonly report?: Report;
  /** Addresses outside the public internet that models of distrusted swarms may have. Default: none. */
  readonly allow?: readonly string[];
}

/** Creates an agent from parsed `agent_params`. @throws MailroomError when they identify no model */
export function agentFromParams(
  params: ModelParams,
  toolFormat: "completions" | "responses",
  environment: ModelEnvironment,
): ModelAgent {
  return agentOf(
    [params.llm, ...params.fallbacks].map((llm) => candidateOf({ ...params, llm }, toolFormat, environment)),
  );
}

function candidateOf(
  params: ModelParams,
  toolFormat: "completions" | "responses",
  environment: ModelEnvironment,
): Candidate {
  const connection = planFor(params, toolFormat, environment.env ?? process.env);
  const { credentials } = connection;
  const key = credentials.kind === "none" ? undefined : credentials.key;
  const createSetup = async (): Promise<ModelSetup> => {
    const model = await connect(connection, boundedFetch(environment.fetch ?? fetch));
    return toModelSetup(
      {
        name: params.llm,
        model,
        format: connection.format,
        modelName: connection.model,
        optionsName: optionsName(connection),
        provider: `${connection.format} ${connection.baseUrl ?? ""} ${key ?? ""}`,
        secrets: key === undefined ? [] : [key],
      },
      params,
      environment,
    );
  };
  let setup: Promise<ModelSetup> | undefined;
  return {
    token: (turn) => tokenFor(connection, turn, params.llm),
    // Lazy: a swarm that is only inspected loads no provider.
    load: () => {
      setup ??= createSetup();
      return setup;
    },
  };
}

export type ModelAgent = AgentFunction & Pick<MailFunction, "speculate">;

/** A call is slow and costs money, and its text may be streamed immediately, so it waits until the mail is durable. */
function agentOf(candidates: readonly Candidate[]): ModelAgent {
  return starting((turn) => takeTurn(candidates, turn), false);
}

/** Creates a candidate from a model of an AI SDK provider. */
function candidateWithModel(
  model: LanguageModel,
  params: ModelParams,
  environment: ModelEnvironment,
): Candidate {
  if (!isSdkModel(model)) {
    throw badAgentParams("a model agent", [
      { at: ["llm"], message: "the model must implement version 3 of the AI SDK's specification" },
    ]);
  }
  const setup = toModelSetup(
    {
      name: nameOf(model),
      model,
      format: formatOf(model.provider),
      modelName: model.modelId,
      optionsName: model.provider.split(".")[0] ?? model.provider,
      provider: model.provider,
      secrets: [],
    },
    params,
    environment,
  );
  return { token: () => undefined, load: async () => setup };
}

interface SetupParts extends Pick<ModelSetup, "name" | "model" | "format" | "optionsName" | "secrets"> {
  /** The provider's name for the model. */
  readonly modelName: string;
  /** Identifies the provider and the key. */
  readonly provider: string;
}

/** Agents of one process share the limits of a provider, unless the environment has its own. */
const gatesOfProcess = new Gates();

function toModelSetup(parts: SetupParts, params: ModelParams, environment: ModelEnvironment): ModelSetup {
  const { provider, modelName, ...rest } = parts;
  const { now = Date.now, random = Math.random, limits = {}, gates = gatesOfProcess } = environment;
  const isFirst = params.fallbacks.length === 0 || params.llm === parts.name;
  const price = (isFirst ? params.prices : undefined) ?? environment.prices?.[parts.name];
  const { prices: _ofFirst, ...unpriced } = params;
  const print =
    environment.print ?? (process.stderr.isTTY ? (text: string) => process.stderr.write(text) : undefined);
  return {
    ...rest,
    traits: traitsOf(parts.format, modelName),
    params: price === undefined ? unpriced : { ...params, prices: price },
    prompts: new PromptCache(params, parts.format),
    print: params.print_llm_streams ? print : undefined,
    now,
    random,
    backoff: environment.backoff ?? MODEL_BACKOFF,
    gate: (token) =>
      gates.of(`${provider} ${token ?? ""}`, { limits: { ...DEFAULT_GATE_LIMITS, ...limits }, now, random }),
    report: environment.report,
  };
}

export function planFor(
  params: ModelParams,
  toolFormat: "completions" | "responses",
  env: EnvironmentVariables,
): Connection {
  return asFindings(() => planConnection({ ...params, toolFormat }, env));
}

/** @throws MailroomError `bad_agent_params`, with the path of a `bad_model` */
export function asFindings<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!hasCode(error, "bad_model")) throw error;
    throw badAgentParams("a model agent", [{ at: [String(error.details.param)], message: error.message }]);
  }
}

/** @throws TurnHeldError without credentials: the task waits for them (decision H1) */
function tokenFor({ credentials }: Connection, turn: Turn, llm: string): string | undefined {
  switch (credentials.kind) {
    case "none":
      return undefined;
    case "key":
      if (credentials.key !== undefined) return undefined;
      throw new TurnHeldError(
        "credentials",
        `no key for ${llm}: set ${credentials.variable} and restart the server to resume the task`,
      );
    case "caller": {
      const token = turn.params.user_token;
      if (typeof token === "string" && token !== "") return token;
      if (credentials.key !== undefined) return undefined;
      throw new TurnHeldError(
        "credentials",
        `${llm} is called through the proxy with the caller's token, which is not available (it is kept in memory ` +
          "only). The task resumes when its owner calls again, or when LITELLM_PROXY_API_KEY is set",
      );
    }
  }
}

function formatOf(provider: string): WireFormat {
  if (provider.startsWith("anthropic")) return "anthropic";
  if (provider.startsWith("google")) return "google";
  if (provider.startsWith("openai.responses")) return "openai-responses";
  if (provider.startsWith("openai.")) return "openai-chat";
  return "compatible-chat";
}

/**
 * A model of an AI SDK provider (`LanguageModelV3`). Declares only the identifying members, so that this package's
 * types do not depend on the SDK.
 */
export interface LanguageModel {
  readonly specificationVersion: "v3";
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

function isSdkModel(model: LanguageModel): model is SdkModel {
  return model.specificationVersion === "v3";
}

/** How an agent uses a model: see `docs/models.md`. */
export interface ModelAgentOptions {
  /** `provider/model` or a model of the AI SDK, or several: the next is called when one is overloaded or refuses. */
  readonly llm: string | LanguageModel | readonly (string | LanguageModel)[];
  /** The system prompt. */
  readonly system?: string;
  /** How much the model thinks, where it can. Default: the model's. */
  readonly reasoningEffort?: ModelParams["reasoning_effort"];
  /** Maximum tokens for thinking. Enables thinking. */
  readonly thinkingBudget?: number;
  /** Maximum tokens of one answer, including thinking. */
  readonly maxTokens?: number;
  /** Default: the model's. */
  readonly temperature?: number;
  /** Default: the model's. */
  readonly topP?: number;
  /** Overrides the runtime's tool choice, except where the runtime forces a tool. */
  readonly defaultToolChoice?: "required" | "auto";
  /** `responses` (default) or `completions`, where the provider has both. */
  readonly toolFormat?: "completions" | "responses";
  /** Whether to call the model through `LITELLM_PROXY_API_BASE`. Default: if that variable is set. */
  readonly useProxy?: boolean;
  /** Streams the model's text to the clients that follow the task. Default: false. */
  readonly streamTokens?: boolean;
  /** Prints the model's text while it is written. Default: false. */
  readonly printLlmStreams?: boolean;
  /** Default: the provider's. */
  readonly baseUrl?: string;
  /** Name of the environment variable that holds the key. */
  readonly apiKeyEnv?: string;
  /** Milliseconds for one call of the model. Default: 5 minutes. */
  readonly timeLimit?: number;
  /** Retries after transient failures. Default: 4. */
  readonly maxRetries?: number;
  /** Tokens. Default: 128,000. */
  readonly contextWindow?: number;
  /** The share of the context window at which older history is summarized; 0 disables it. Default: 0.75. */
  readonly compactAt?: number;
  /** Default: true. */
  readonly promptCaching?: boolean;
  /** Explains to the model how mail works. Default: true. */
  readonly mailPrimer?: boolean;
  /** Per million tokens. */
  readonly prices?: { input: number; output: number; cachedInput?: number; cacheWrite?: number };
  /** Passed to the AI SDK unchanged, by provider. */
  readonly providerOptions?: ModelParams["provider_options"];
}

/**
 * Creates an agent that uses a model, for `defineAgent({ run: modelAgent({ … }) })`. Its turns start on durable mail
 * unless the agent is defined with `speculate: true`.
 * @throws MailroomError `bad_agent_params` when the options identify no model.
 * @example
 * defineAgent({ name: "writer", run: modelAgent({ llm: "anthropic/claude-sonnet-4-5", system: "You write poems." }) });
 */
export function modelAgent(options: ModelAgentOptions, environment: ModelEnvironment = {}): ModelAgent {
  const { llm, toolFormat = "responses", timeLimit, prices, ...rest } = options;
  const models = Array.isArray(llm) ? llm : [llm];
  const params = readModelParams({
    ...inSnakeCase(rest),
    llm: models.map((model) => (typeof model === "string" ? model : nameOf(model))),
    ...(timeLimit !== undefined && { time_limit_ms: timeLimit }),
    ...(prices !== undefined && { prices: inSnakeCase(prices) }),
  });
  return agentOf(
    models.map((model) =>
      typeof model === "string"
        ? candidateOf({ ...params, llm: model }, toolFormat, environment)
        : candidateWithModel(model, params, environment),
    ),
  );
}

function nameOf({ provider, modelId }: LanguageModel): string {
  return `${provider}/${modelId}`;
}

function inSnakeCase(options: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  );
}
