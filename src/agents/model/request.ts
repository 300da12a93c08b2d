/** Builds the AI SDK's call options: tools, tool choice, thinking and caching. Pure. */
import { isRecord } from "../../base/index.js";
import type { OfferedTool, ToolChoice } from "../../engine/index.js";
import { isMailToolName } from "../../mail/index.js";
import type { WireFormat } from "./connection.js";
import type { CallOptions, Prompt, PromptMessage, ProviderOptions } from "./language-model.js";
import type { ModelParams } from "./params.js";
import { EFFORTS, type Effort, type ModelTraits, nearestEffort } from "./traits.js";

export type ProviderTools = NonNullable<CallOptions["tools"]>;

export interface RequestParts {
  readonly params: ModelParams;
  readonly format: WireFormat;
  readonly traits: ModelTraits;
  /** The key of the provider's options. */
  readonly optionsName: string;
  readonly system: string;
  readonly messages: Prompt;
  readonly tools: ProviderTools;
  readonly toolChoice: ToolChoice;
  /** The caller's token, when the model is called through a proxy. */
  readonly token?: string;
}

/** The thinking budgets of the reference for each effort (REF-20). */
const BUDGETS: Readonly<Record<Effort, number | undefined>> = {
  none: undefined,
  minimal: 2_000,
  low: 4_000,
  medium: 8_000,
  high: 16_000,
  xhigh: 32_000,
  max: 64_000,
};

/** Tokens for the answer when only a thinking budget is given. */
const ANSWER_TOKENS = 4_000;

/** Tokens for answer and thinking together, of models that decide themselves how much they think. */
const ADAPTIVE_TOKENS = 64_000;

/** How a model is asked to think in one request. `forbidsForce`: it rejects a forced tool meanwhile. */
type Thinking =
  | { readonly kind: "default"; readonly forbidsForce: boolean }
  | { readonly kind: "off" }
  | { readonly kind: "budget"; readonly tokens: number }
  | { readonly kind: "effort"; readonly effort: Effort };

export function buildRequest(parts: RequestParts): CallOptions {
  const { params, tools, messages } = parts;
  const choice = chooseTools(parts);
  const thinking = thinkingOf(parts, typeof choice === "object");
  const toolChoice = allowsForce(parts, thinking) ? choice : "auto";
  const maxTokens = outputTokens(parts, thinking);
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
    inputSchema: withoutTitles(tool.parameters),
    ...strictness(tool.name, format),
  }));
}

/** The name and the description of a tool stand beside its schema; repeating them costs tokens in every prompt. */
function withoutTitles(schema: OfferedTool["parameters"]): Record<string, unknown> {
  const { title: _title, description: _description, ...rest } = schema;
  if (!isRecord(rest.properties)) return rest;
  const properties = Object.entries(rest.properties).map(([name, property]): [string, unknown] => {
    if (!isRecord(property)) return [name, property];
    const { title: _repeated, ...described } = property;
    return [name, described];
  });
  return { ...rest, properties: Object.fromEntries(properties) };
}

function chooseTools({ toolChoice, params }: RequestParts): ToolChoice {
  return typeof toolChoice === "object" ? toolChoice : (params.default_tool_choice ?? toolChoice);
}

/**
 * OpenAI validates arguments against schemas in its subset, such as those of the MAIL tools. For other schemas it must
 * be switched off, or OpenAI changes them. Other providers give `strict` another meaning, so it is omitted.
 */
function strictness(name: string, format: WireFormat): { strict?: boolean } {
  return format === "openai-chat" || format === "openai-responses" ? { strict: isMailToolName(name) } : {};
}

/** @param forced a tool is forced, which most models accept only without thinking. */
function thinkingOf(parts: RequestParts, forced: boolean): Thinking {
  const { params, traits } = parts;
  const effort = params.reasoning_effort;
  const budget = params.thinking_budget;
  const standard = { kind: "default", forbidsForce: traits.freeToolChoice === true } as const;
  switch (traits.thinking) {
    case "none":
      return standard;
    case "budget": {
      const tokens = budget ?? (effort === null ? undefined : BUDGETS[effort]);
      return tokens === undefined || forced || !mayThink(parts)
        ? { kind: "off" }
        : { kind: "budget", tokens };
    }
    case "level":
      if (budget !== null && parts.format === "google") return { kind: "budget", tokens: budget };
      return atEffort(traits, effort) ?? standard;
    case "adaptive":
      if (effort === null && budget === null) return standard;
      if (effort === "none" || forced) return { kind: "off" };
      return atEffort(traits, effort ?? effortOf(budget)) ?? standard;
    case "always":
      return atEffort(traits, effort ?? effortOf(budget)) ?? standard;
  }
}

function atEffort(traits: ModelTraits, wanted: Effort | null): Thinking | undefined {
  const effort = wanted === null ? undefined : nearestEffort(traits, wanted);
  return effort === undefined ? undefined : { kind: "effort", effort };
}

/** The effort whose budget comes closest, for models that accept no budget. */
function effortOf(budget: number | null): Effort | null {
  if (budget === null) return null;
  return EFFORTS.findLast((effort) => (BUDGETS[effort] ?? 0) <= budget && effort !== "none") ?? "low";
}

/** With thinking enabled, Anthropic rejects a forced tool. */
function allowsForce({ format }: RequestParts, thinking: Thinking): boolean {
  switch (thinking.kind) {
    case "default":
      return !thinking.forbidsForce;
    case "off":
      return true;
    case "budget":
      return false;
    case "effort":
      return format !== "anthropic";
  }
}

/**
 * With a budget, Anthropic requires the signed thinking of the answer whose results follow. If it is missing because
 * another model gave that answer, thinking is disabled for the next answer.
 */
function mayThink({ format, messages }: RequestParts): boolean {
  if (format !== "anthropic") return true;
  const answer = messages.findLast((message) => message.role === "assistant");
  if (answer?.role !== "assistant") return true;
  const has = (type: string): boolean => answer.content.some((part) => part.type === type);
  return has("reasoning") || !has("tool-call");
}

/** The AI SDK excludes a thinking budget of Anthropic from an answer's tokens; we and the reference include it. */
function outputTokens({ params, format, traits }: RequestParts, thinking: Thinking): number | undefined {
  const given = params.max_tokens ?? undefined;
  if (format !== "anthropic") return given;
  if (thinking.kind === "budget") {
    return given === undefined ? ANSWER_TOKENS : Math.max(1, given - thinking.tokens);
  }
  const thinks = thinking.kind === "effort" || (thinking.kind === "default" && traits.thinking !== "none");
  return given ?? (thinks ? ADAPTIVE_TOKENS : undefined);
}

function systemMessage({ system, format, params }: RequestParts): PromptMessage {
  const message: PromptMessage = { role: "system", content: system };
  return format === "anthropic" && params.prompt_caching ? { ...message, providerOptions: CACHED } : message;
}

const CACHED: ProviderOptions = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** The next turn repeats everything up to the newest message, so it is worth caching. */
function withCacheMark(messages: Prompt, { format, params }: RequestParts): Prompt {
  const last = messages.at(-1);
  if (format !== "anthropic" || !params.prompt_caching || last === undefined) return messages;
  return [...messages.slice(0, -1), { ...last, providerOptions: CACHED }];
}

function ownOptions({ format, optionsName, traits }: RequestParts, thinking: Thinking): ProviderOptions {
  const effort = thinking.kind === "effort" ? { reasoningEffort: thinking.effort } : {};
  switch (format) {
    case "openai-responses":
      // The journal holds the history, so nothing that a task needs is stored by the provider.
      return { openai: { store: false, ...effort } };
    case "openai-chat":
      return thinking.kind === "effort" ? { openai: effort } : {};
    case "compatible-chat":
      return thinking.kind === "effort" ? { [optionsName]: effort } : {};
    case "anthropic":
      return anthropicOptions(traits, thinking);
    case "google":
      if (thinking.kind === "budget")
        return { google: { thinkingConfig: { thinkingBudget: thinking.tokens } } };
      return thinking.kind === "effort"
        ? { google: { thinkingConfig: { thinkingLevel: thinking.effort } } }
        : {};
  }
}

function anthropicOptions(traits: ModelTraits, thinking: Thinking): ProviderOptions {
  switch (thinking.kind) {
    case "default":
      return {};
    case "off":
      // Older models do not think unless they are asked to.
      return traits.thinking === "adaptive" ? { anthropic: { thinking: { type: "disabled" } } } : {};
    case "budget":
      return { anthropic: { thinking: { type: "enabled", budgetTokens: thinking.tokens } } };
    case "effort":
      return { anthropic: { thinking: { type: "adaptive" }, effort: thinking.effort } };
  }
}

function merge(own: ProviderOptions, given: ProviderOptions): ProviderOptions {
  const merged = { ...own };
  for (const [name, options] of Object.entries(given)) merged[name] = { ...merged[name], ...options };
  return merged;
}
