/** The AI SDK's side: its types under short names, and its providers, loaded when the first of their models is used. */
import type { LanguageModel as AnyLanguageModel } from "ai";
import type { Connection } from "./connection.js";

export type SdkModel = Extract<AnyLanguageModel, { readonly specificationVersion: "v3" }>;
export type CallOptions = Parameters<SdkModel["doGenerate"]>[0];
export type Prompt = CallOptions["prompt"];
export type PromptMessage = Prompt[number];
export type ProviderOptions = NonNullable<CallOptions["providerOptions"]>;
export type Generated = Awaited<ReturnType<SdkModel["doGenerate"]>>;
export type Content = Generated["content"][number];
export type FinishReason = Generated["finishReason"];
export type ModelUsage = Generated["usage"];
export type StreamPart =
  Awaited<ReturnType<SdkModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

/** Placeholder for providers that require a key, when the real one comes with each call or none is needed. */
const NO_KEY = "none";

/** The key of a provider's options and metadata. */
export function optionsName(connection: Pick<Connection, "format">): string {
  switch (connection.format) {
    case "openai-chat":
    case "openai-responses":
      return "openai";
    case "anthropic":
      return "anthropic";
    case "google":
      return "google";
    case "compatible-chat":
      return "compatible";
  }
}

export async function connect(connection: Connection, send: typeof fetch): Promise<SdkModel> {
  const { model, baseUrl, credentials } = connection;
  const apiKey = (credentials.kind === "none" ? undefined : credentials.key) ?? NO_KEY;
  const settings = {
    apiKey,
    ...(baseUrl !== undefined && { baseURL: baseUrl.replace(/\/+$/, "") }),
    fetch: send,
  };
  switch (connection.format) {
    case "openai-chat":
      return (await import("@ai-sdk/openai")).createOpenAI(settings).chat(model);
    case "openai-responses":
      return (await import("@ai-sdk/openai")).createOpenAI(settings).responses(model);
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(settings)(model);
    case "google":
      return (await import("@ai-sdk/google")).createGoogleGenerativeAI(settings)(model);
    case "compatible-chat": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const { apiKey: _placeholder, ...rest } = settings;
      return createOpenAICompatible({
        ...(apiKey === NO_KEY ? rest : settings),
        name: "compatible",
        baseURL: settings.baseURL ?? "",
        includeUsage: true,
      }).chatModel(model);
    }
  }
}
