/** Derives a model's URL and key from its name, the parameters and the environment. Pure. */
import { MailroomError } from "../../base/index.js";
import type { ModelParams } from "./params.js";

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>;

/** Supported wire formats. */
export type WireFormat = "openai-chat" | "openai-responses" | "anthropic" | "google" | "compatible-chat";

export interface Connection {
  readonly format: WireFormat;
  /** The provider's name for the model. */
  readonly model: string;
  /** Default: the provider's URL. */
  readonly baseUrl?: string;
  readonly credentials: Credentials;
}

export type Credentials =
  /** The operator's key; absent if the variable is not set. */
  | { readonly kind: "key"; readonly variable: string; readonly key: string | undefined }
  /** The caller's own token, passed with each turn (decision H1); `key` is the fallback. */
  | { readonly kind: "caller"; readonly key: string | undefined }
  | { readonly kind: "none" };

/** The parameters do not identify a model. */
function badModel(param: "llm" | "use_proxy" | "base_url" | "api_key_env", message: string): MailroomError {
  return new MailroomError("bad_model", message, { details: { param } });
}

export type Routing = Pick<ModelParams, "llm" | "use_proxy" | "base_url" | "api_key_env"> & {
  readonly toolFormat: "completions" | "responses";
};

const PROXY_PREFIX = "litellm_proxy/";

/** Variables that may hold a provider's key, in order of precedence. */
const OPENAI_KEYS = ["OPENAI_API_KEY"] as const;
const ANTHROPIC_KEYS = ["ANTHROPIC_API_KEY"] as const;
const GOOGLE_KEYS = ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"] as const;
const KEYS = new Map<string, readonly string[]>([
  ["openai", OPENAI_KEYS],
  ["anthropic", ANTHROPIC_KEYS],
  ["google", GOOGLE_KEYS],
  ["gemini", GOOGLE_KEYS],
]);

/** @throws MailroomError `bad_model` */
export function planConnection(routing: Routing, env: EnvironmentVariables): Connection {
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
      throw badModel(
        "llm",
        `unknown provider '${provider}': use openai/…, anthropic/…, google/… or ollama/…, or set ` +
          "'base_url' for a server that speaks the OpenAI protocol (LiteLLM, vLLM, …)",
      );
  }
}

/**
 * For parameters that do not come from the operator: they may use a provider with its own key, but must not send that
 * key to another URL, nor any other environment variable.
 * @throws MailroomError `bad_model`
 */
export function assertUsualKey({ llm, base_url, api_key_env }: ModelParams): void {
  if (api_key_env === undefined) return;
  const [provider] = splitName(llm);
  if (base_url === undefined && KEYS.get(provider)?.includes(api_key_env) === true) return;
  throw badModel(
    "api_key_env",
    `'${api_key_env}' cannot be used in a swarm that the operator did not define: without it the provider gets its ` +
      "usual key, and a custom 'base_url' gets none",
  );
}

/** Whether a call is possible: the key is set, or none is needed. */
export function hasCredentials({ credentials }: Connection): boolean {
  return credentials.kind === "none" || credentials.kind === "caller" || credentials.key !== undefined;
}

interface Provider {
  readonly format: WireFormat;
  readonly model: string;
  readonly key: readonly [string, ...string[]];
  readonly url: string | undefined;
}

function direct(routing: Routing, env: EnvironmentVariables, provider: Provider): Connection {
  const { format, model } = provider;
  const baseUrl = routing.base_url ?? nonEmpty(provider.url);
  // A provider's key is sent only to that provider. A `base_url` in a swarm file must name its key.
  const foreign = routing.base_url !== undefined && routing.api_key_env === undefined;
  const credentials = foreign ? { kind: "none" as const } : keyFrom(env, routing.api_key_env, provider.key);
  return { format, model, ...(baseUrl !== undefined && { baseUrl }), credentials };
}

function compatible(routing: Routing, env: EnvironmentVariables, model: string, baseUrl: string): Connection {
  const { api_key_env: variable } = routing;
  return {
    format: "compatible-chat",
    model,
    baseUrl,
    credentials: variable === undefined ? { kind: "none" } : keyFrom(env, variable, [variable]),
  };
}

function throughProxy(routing: Routing, baseUrl: string | undefined, env: EnvironmentVariables): Connection {
  if (routing.base_url !== undefined) {
    // Callers' tokens are sent only to the operator's proxy, regardless of the swarm file.
    throw badModel(
      "base_url",
      "the operator sets the proxy's URL (LITELLM_PROXY_API_BASE): remove 'base_url', or do not use the proxy",
    );
  }
  if (baseUrl === undefined) {
    throw badModel(
      "use_proxy",
      "no proxy is configured: set LITELLM_PROXY_API_BASE, or set 'use_proxy' to false",
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
  env: EnvironmentVariables,
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
  throw badModel("llm", `'${llm}' names no provider: write provider/model, for example openai/${llm}`);
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text.trim();
}
