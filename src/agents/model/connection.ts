/** Where a model is reached: from its name, the parameters and the environment to an address and a key. Pure. */
import type { ModelParams } from "./params.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The wire formats that are spoken. */
export type WireFormat = "openai-chat" | "openai-responses" | "anthropic" | "google" | "compatible-chat";

export interface Connection {
  readonly format: WireFormat;
  /** As the provider calls it. */
  readonly model: string;
  /** The provider's own where it is left out. */
  readonly baseUrl?: string;
  readonly credentials: Credentials;
}

export type Credentials =
  /** A key of the operator's; absent if the variable is not set. */
  | { readonly kind: "key"; readonly variable: string; readonly key: string | undefined }
  /** The caller's own token, which comes with each turn (decisions H1); `key` stands in when there is none. */
  | { readonly kind: "caller"; readonly key: string | undefined }
  | { readonly kind: "none" };

/** The parameters cannot lead to a model. The message says what to write. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code = "bad_model";
  readonly param: "llm" | "use_proxy" | "base_url" | "api_key_env";
  constructor(param: ConnectionError["param"], message: string) {
    super(message);
    this.param = param;
  }
}

export type Routing = Pick<ModelParams, "llm" | "use_proxy" | "base_url" | "api_key_env"> & {
  readonly toolFormat: "completions" | "responses";
};

const PROXY_PREFIX = "litellm_proxy/";

/** Variables that may hold a provider's key, in the order in which they are looked at. */
const OPENAI_KEYS = ["OPENAI_API_KEY"] as const;
const ANTHROPIC_KEYS = ["ANTHROPIC_API_KEY"] as const;
const GOOGLE_KEYS = ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"] as const;
const KEYS = new Map<string, readonly string[]>([
  ["openai", OPENAI_KEYS],
  ["anthropic", ANTHROPIC_KEYS],
  ["google", GOOGLE_KEYS],
  ["gemini", GOOGLE_KEYS],
]);

/** @throws ConnectionError */
export function planConnection(routing: Routing, env: Environment): Connection {
  const proxyAsked = routing.use_proxy === true || routing.llm.startsWith(PROXY_PREFIX);
  const proxyUrl = nonEmpty(env.LITELLM_PROXY_API_BASE);
  if (
    proxyAsked ||
    (routing.use_proxy !== false && routing.base_url === undefined && proxyUrl !== undefined)
  ) {
    return throughProxy(routing, proxyUrl, env);
  }
  const [provider, model] = splitName(routing.llm);
  switch (provider) {
    case "openai": {
      const format = routing.toolFormat === "responses" ? "openai-responses" : "openai-chat";
      return direct(routing, env, { format, model, key: OPENAI_KEYS, url: env.OPENAI_BASE_URL });
    }
    case "anthropic":
      return direct(routing, env, {
        format: "anthropic",
        model,
        key: ANTHROPIC_KEYS,
        url: env.ANTHROPIC_BASE_URL,
      });
    case "google":
    case "gemini":
      return direct(routing, env, {
        format: "google",
        model,
        key: GOOGLE_KEYS,
        url: env.GOOGLE_GEMINI_BASE_URL,
      });
    case "ollama": {
      const host = nonEmpty(env.OLLAMA_HOST) ?? "http://127.0.0.1:11434";
      return compatible(routing, env, model, routing.base_url ?? `${host.replace(/\/+$/, "")}/v1`);
    }
    default:
      if (routing.base_url !== undefined) return compatible(routing, env, model, routing.base_url);
      throw new ConnectionError(
        "llm",
        `'${provider}' is no provider that is known here: write openai/…, anthropic/…, google/… or ollama/…, or give ` +
          "'base_url' for a server that speaks the OpenAI protocol (LiteLLM, vLLM, …)",
      );
  }
}

/**
 * For parameters that somebody else than the operator wrote: they may have a provider asked with its own key, and must
 * not have other variables of the environment sent anywhere, nor that key to another address.
 * @throws ConnectionError
 */
export function assertUsualKey({ llm, base_url, api_key_env }: ModelParams): void {
  if (api_key_env === undefined) return;
  const [provider] = splitName(llm);
  if (base_url === undefined && KEYS.get(provider)?.includes(api_key_env) === true) return;
  throw new ConnectionError(
    "api_key_env",
    `'${api_key_env}' may not be used where this swarm comes from: leave it out, and the provider is asked with its ` +
      "usual key, an address of your own ('base_url') with none",
  );
}

/** Whether a call could be made now: a key is there, or none is needed. */
export function hasCredentials({ credentials }: Connection): boolean {
  return credentials.kind === "none" || credentials.kind === "caller" || credentials.key !== undefined;
}

interface Provider {
  readonly format: WireFormat;
  readonly model: string;
  readonly key: readonly [string, ...string[]];
  readonly url: string | undefined;
}

function direct(routing: Routing, env: Environment, provider: Provider): Connection {
  const { format, model } = provider;
  const baseUrl = routing.base_url ?? nonEmpty(provider.url);
  // A provider's key goes to that provider only: an address from a swarm file must name the key that it is to get.
  const foreign = routing.base_url !== undefined && routing.api_key_env === undefined;
  const credentials = foreign ? { kind: "none" as const } : keyFrom(env, routing.api_key_env, provider.key);
  return { format, model, ...(baseUrl !== undefined && { baseUrl }), credentials };
}

function compatible(routing: Routing, env: Environment, model: string, baseUrl: string): Connection {
  const { api_key_env: variable } = routing;
  return {
    format: "compatible-chat",
    model,
    baseUrl,
    credentials: variable === undefined ? { kind: "none" } : keyFrom(env, variable, [variable]),
  };
}

function throughProxy(routing: Routing, baseUrl: string | undefined, env: Environment): Connection {
  if (routing.base_url !== undefined) {
    // Callers' tokens are for the operator's proxy, whatever a swarm file says.
    throw new ConnectionError(
      "base_url",
      "the proxy's address is the operator's word (LITELLM_PROXY_API_BASE): leave 'base_url' out, or do not use the proxy",
    );
  }
  if (baseUrl === undefined) {
    throw new ConnectionError(
      "use_proxy",
      "there is no proxy to send this to: set LITELLM_PROXY_API_BASE, or 'use_proxy' to false",
    );
  }
  return {
    format: routing.toolFormat === "responses" ? "openai-responses" : "compatible-chat",
    model: routing.llm.startsWith(PROXY_PREFIX) ? routing.llm.slice(PROXY_PREFIX.length) : routing.llm,
    baseUrl,
    credentials: { kind: "caller", key: nonEmpty(env.LITELLM_PROXY_API_KEY) },
  };
}

function keyFrom(
  env: Environment,
  named: string | undefined,
  usual: readonly [string, ...string[]],
): Extract<Credentials, { kind: "key" }> {
  const variables = named === undefined ? usual : [named];
  const variable = variables.find((name) => nonEmpty(env[name]) !== undefined) ?? variables[0] ?? usual[0];
  return { kind: "key", variable, key: nonEmpty(env[variable]) };
}

function splitName(llm: string): [string, string] {
  const slash = llm.indexOf("/");
  const model = llm.slice(slash + 1);
  if (slash > 0 && model !== "") return [llm.slice(0, slash), model];
  throw new ConnectionError(
    "llm",
    `'${llm}' does not say whose model it is: write provider/model, like openai/${llm}`,
  );
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}
