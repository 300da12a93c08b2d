/** `modelAgent`: an agent that thinks with a model. */
import { type AgentFunction, type Turn, TurnHeldError } from "../../engine/agent.js";
import type { BackoffPolicy, Random } from "../../net/index.js";
import { AgentParamsError } from "../errors.js";
import { type MailFunction, starting } from "../function.js";
import {
  type Connection,
  ConnectionError,
  type Environment,
  planConnection,
  type WireFormat,
} from "./connection.js";
import { connect, type LanguageModel, optionsName } from "./language-model.js";
import { type ModelParams, type Price, readModelParams } from "./params.js";
import { MODEL_BACKOFF } from "./retry.js";
import { Standings } from "./standing.js";
import { type Mind, ModelTurn } from "./turn.js";

/** What belongs to the process rather than to one agent. */
export interface ModelSurroundings {
  /** Where keys and addresses are looked up. Default: the process's environment. */
  readonly env?: Environment;
  /** Prices by `llm`, for agents that have none of their own (decisions H4). */
  readonly prices?: Readonly<Record<string, Price>>;
  /** How providers are called. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Where `print_llm_streams` prints. Default: standard error, if it is a terminal. */
  readonly print?: (text: string) => void;
  readonly now?: () => number;
  readonly random?: Random;
  /** Waits between attempts when the provider names none. */
  readonly backoff?: BackoffPolicy;
}

/** An agent from `agent_params` that were read already. @throws AgentParamsError when they lead to no model */
export function agentFromParams(
  params: ModelParams,
  toolFormat: "completions" | "responses",
  surroundings: ModelSurroundings,
): ModelAgent {
  const connection = planFor(params, toolFormat, surroundings.env ?? process.env);
  const awaken = async (): Promise<Mind> => {
    const model = await connect(connection, surroundings.fetch);
    return mindOf(model, connection.format, optionsName(connection), params, surroundings);
  };
  let mind: Promise<Mind> | undefined;
  return careful(async (turn) => {
    const token = tokenFor(connection, turn, params.llm);
    // Loaded late: a swarm that is only looked at needs no provider.
    mind ??= awaken();
    return new ModelTurn(await mind, turn, token).run();
  });
}

export type ModelAgent = AgentFunction & Pick<MailFunction, "speculate">;

/** A call costs money and seconds, and what the model writes may be shown at once: both are for mail that is durable. */
function careful(run: AgentFunction): ModelAgent {
  return starting(run, false);
}

/** An agent with a model of the AI SDK that somebody else has made. */
export function agentWithModel(
  model: LanguageModel,
  params: ModelParams,
  surroundings: ModelSurroundings,
): ModelAgent {
  const name = model.provider.split(".")[0] ?? model.provider;
  const mind = mindOf(model, formatOf(model.provider), name, params, surroundings);
  return careful((turn) => new ModelTurn(mind, turn, undefined).run());
}

function mindOf(
  model: LanguageModel,
  format: WireFormat,
  name: string,
  params: ModelParams,
  surroundings: ModelSurroundings,
): Mind {
  const price = params.prices ?? surroundings.prices?.[params.llm];
  const print =
    surroundings.print ?? (process.stderr.isTTY ? (text: string) => process.stderr.write(text) : undefined);
  return {
    model,
    format,
    optionsName: name,
    params: price === undefined ? params : { ...params, prices: price },
    standings: new Standings(params, format),
    print: params.print_llm_streams ? print : undefined,
    now: surroundings.now ?? Date.now,
    random: surroundings.random ?? Math.random,
    backoff: surroundings.backoff ?? MODEL_BACKOFF,
  };
}

export function planFor(
  params: ModelParams,
  toolFormat: "completions" | "responses",
  env: Environment,
): Connection {
  return asFindings(() => planConnection({ ...params, toolFormat }, env));
}

/** @throws AgentParamsError with the place of a ConnectionError */
export function asFindings<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new AgentParamsError("a model agent", [{ at: [error.param], message: error.message }]);
  }
}

/** @throws TurnHeldError when there are none: the task waits for them (decisions H1) */
function tokenFor({ credentials }: Connection, turn: Turn, llm: string): string | undefined {
  switch (credentials.kind) {
    case "none":
      return undefined;
    case "key":
      if (credentials.key !== undefined) return undefined;
      throw new TurnHeldError(
        "credentials",
        `there is no key for ${llm}. Set ${credentials.variable} and start the server again; the task then goes on`,
      );
    case "caller": {
      const token = turn.params.user_token;
      if (typeof token === "string" && token !== "") return token;
      if (credentials.key !== undefined) return undefined;
      throw new TurnHeldError(
        "credentials",
        `${llm} is reached through the proxy with the caller's token, which is not at hand (it is kept in memory ` +
          "only). The task goes on when its owner calls again, or when LITELLM_PROXY_API_KEY is set",
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

export interface ModelAgentOptions {
  /** `provider/model`, or a model of the AI SDK. */
  readonly llm: string | LanguageModel;
  /** The system prompt. */
  readonly system?: string;
  readonly reasoningEffort?: ModelParams["reasoning_effort"];
  /** Tokens that the model may spend on thinking; switches thinking on. */
  readonly thinkingBudget?: number;
  /** Of one answer, thinking included. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  /** In place of what the runtime asks for; a tool that the runtime forces stays forced. */
  readonly defaultToolChoice?: "required" | "auto";
  /** `responses` (default) or `completions`, where the provider has both. */
  readonly toolFormat?: "completions" | "responses";
  readonly useProxy?: boolean;
  /** Shows pieces of text to those who watch the task while the model writes them. Default: false. */
  readonly streamTokens?: boolean;
  readonly printLlmStreams?: boolean;
  readonly baseUrl?: string;
  /** Name of the environment variable that holds the key. */
  readonly apiKeyEnv?: string;
  /** Milliseconds for one call of the model. Default: 5 minutes. */
  readonly timeLimit?: number;
  /** After a call failed in a way that may pass. Default: 4. */
  readonly maxRetries?: number;
  /** Tokens. Default: 128,000. */
  readonly contextWindow?: number;
  /** The share of the context window at which older history is summarised; 0 never does. Default: 0.75. */
  readonly compactAt?: number;
  /** Default: true. */
  readonly promptCaching?: boolean;
  /** Explains to the model how mail works. Default: true. */
  readonly mailPrimer?: boolean;
  /** Per million tokens. */
  readonly prices?: { input: number; output: number; cachedInput?: number; cacheWrite?: number };
  /** Passed on to the AI SDK as it is, by provider. */
  readonly providerOptions?: ModelParams["provider_options"];
}

/**
 * An agent that thinks with a model, for `defineAgent({ run: modelAgent({ … }) })`. Its turns start on durable mail
 * unless the agent is defined with `speculate: true`.
 * @throws AgentParamsError (code `bad_agent_params`) when the options lead to no model.
 */
export function modelAgent(options: ModelAgentOptions, surroundings: ModelSurroundings = {}): ModelAgent {
  const { llm, toolFormat = "responses", timeLimit, prices, ...rest } = options;
  const params = readModelParams({
    ...inSnakeCase(rest),
    llm: typeof llm === "string" ? llm : `${llm.provider}/${llm.modelId}`,
    ...(timeLimit !== undefined && { time_limit_ms: timeLimit }),
    ...(prices !== undefined && { prices: inSnakeCase(prices) }),
  });
  return typeof llm === "string"
    ? agentFromParams(params, toolFormat, surroundings)
    : agentWithModel(llm, params, surroundings);
}

function inSnakeCase(options: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  );
}
