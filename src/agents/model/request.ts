/** What a model is asked: tools, tool choice, thinking and caching, in the AI SDK's form. Pure. */
import type { OfferedTool, ToolChoice } from "../../engine/agent.js";
import { isMailToolName } from "../../mail/tool-table.js";
import type { WireFormat } from "./connection.js";
import type { CallOptions, Prompt, PromptMessage, ProviderOptions } from "./language-model.js";
import type { ModelParams } from "./params.js";

export type ProviderTools = NonNullable<CallOptions["tools"]>;

export interface RequestParts {
  readonly params: ModelParams;
  readonly format: WireFormat;
  /** The name under which the provider looks for its options. */
  readonly optionsName: string;
  readonly system: string;
  readonly messages: Prompt;
  readonly tools: ProviderTools;
  readonly toolChoice: ToolChoice;
  /** The caller's token, where the model is reached through a proxy. */
  readonly token?: string;
}

/** The reference's budgets for its efforts (mail.md 8.3). */
const BUDGETS = { none: undefined, minimal: 2_000, low: 4_000, medium: 8_000, high: 16_000, xhigh: 32_000 };

/** What is left for the answer when only a budget for thinking is given. */
const ANSWER_TOKENS = 4_000;

export function buildRequest(parts: RequestParts): CallOptions {
  const { params, format, tools, messages } = parts;
  const choice = chooseTools(parts);
  const forced = typeof choice === "object";
  const thinking = forced || !mayThink(parts) ? undefined : budgetOf(params, format);
  // Providers that think refuse to be told that a tool must be called.
  const toolChoice = thinking === undefined ? choice : "auto";
  const maxTokens = outputTokens(params, format, thinking);
  return {
    prompt: [systemMessage(parts), ...withCacheMark(messages, parts)],
    ...(tools.length > 0 && {
      tools,
      toolChoice:
        typeof toolChoice === "object" ? { type: "tool", toolName: toolChoice.name } : { type: toolChoice },
    }),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(params.temperature !== null && { temperature: params.temperature }),
    ...(params.top_p !== null && { topP: params.top_p }),
    ...(parts.token !== undefined && { headers: { authorization: `Bearer ${parts.token}` } }),
    providerOptions: merge(ownOptions(parts, thinking), params.provider_options),
  };
}

export function providerTools(tools: readonly OfferedTool[], format: WireFormat): ProviderTools {
  return tools.map((tool) => ({
    type: "function" as const,
    name: tool.name,
    description: tool.description,
    inputSchema: { ...tool.parameters },
    ...strictness(tool.name, format),
  }));
}

function chooseTools({ toolChoice, params }: RequestParts): ToolChoice {
  return typeof toolChoice === "object" ? toolChoice : (params.default_tool_choice ?? toolChoice);
}

/**
 * OpenAI checks arguments itself where a schema keeps to its subset, which those of the MAIL tools do. It must be told
 * for the others that they do not, or it changes them. Other providers are not asked: the word means other things there.
 */
function strictness(name: string, format: WireFormat): { strict?: boolean } {
  return format === "openai-chat" || format === "openai-responses" ? { strict: isMailToolName(name) } : {};
}

function budgetOf(params: ModelParams, format: WireFormat): number | undefined {
  if (format !== "anthropic" && format !== "google") return undefined;
  if (params.thinking_budget !== null) return params.thinking_budget;
  return params.reasoning_effort === null ? undefined : BUDGETS[params.reasoning_effort];
}

/**
 * Anthropic wants the signed thinking of the answer whose results it is shown. Where it is lost (another model gave
 * that answer), the model gives its next one without thinking.
 */
function mayThink({ format, messages }: RequestParts): boolean {
  if (format !== "anthropic") return true;
  const answer = messages.findLast((message) => message.role === "assistant");
  if (answer?.role !== "assistant") return true;
  const has = (type: string): boolean => answer.content.some((part) => part.type === type);
  return has("reasoning") || !has("tool-call");
}

/** The AI SDK counts an answer's tokens without those of Anthropic's thinking; we and the reference count them all. */
function outputTokens(
  params: ModelParams,
  format: WireFormat,
  thinking: number | undefined,
): number | undefined {
  if (thinking === undefined || format !== "anthropic") return params.max_tokens ?? undefined;
  return params.max_tokens === null ? ANSWER_TOKENS : Math.max(1, params.max_tokens - thinking);
}

function systemMessage({ system, format, params }: RequestParts): PromptMessage {
  const message: PromptMessage = { role: "system", content: system };
  return format === "anthropic" && params.prompt_caching ? { ...message, providerOptions: CACHED } : message;
}

const CACHED: ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** Everything up to the newest message will be asked again in the next turn, so it is worth keeping. */
function withCacheMark(messages: Prompt, { format, params }: RequestParts): Prompt {
  const last = messages.at(-1);
  if (format !== "anthropic" || !params.prompt_caching || last === undefined) return messages;
  return [...messages.slice(0, -1), { ...last, providerOptions: CACHED }];
}

function ownOptions(
  { params, format, optionsName }: RequestParts,
  thinking: number | undefined,
): ProviderOptions {
  const effort = params.reasoning_effort;
  switch (format) {
    case "openai-responses":
      // Histories are ours: nothing that a task needs is left with the provider.
      return { openai: { store: false, ...(effort !== null && { reasoningEffort: effort }) } };
    case "openai-chat":
      return effort === null ? {} : { openai: { reasoningEffort: effort } };
    case "compatible-chat":
      return effort === null ? {} : { [optionsName]: { reasoningEffort: effort } };
    case "anthropic":
      return thinking === undefined
        ? {}
        : { anthropic: { thinking: { type: "enabled", budgetTokens: thinking } } };
    case "google":
      return thinking === undefined ? {} : { google: { thinkingConfig: { thinkingBudget: thinking } } };
  }
}

function merge(own: ProviderOptions, given: ProviderOptions): ProviderOptions {
  const merged = { ...own };
  for (const [name, options] of Object.entries(given)) merged[name] = { ...merged[name], ...options };
  return merged;
}
