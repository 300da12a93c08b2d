import type { LanguageModel } from "../agents/index.js";

/** One response of a scripted model: text, tool calls, both, or a failure. */
export interface ModelStep {
  readonly text?: string;
  readonly calls?: readonly {
    readonly name: string;
    readonly arguments: Readonly<Record<string, unknown>>;
  }[];
  /** The call rejects with this error instead. */
  readonly error?: Error;
}

/** What a scripted model was called with. The options are those of the AI SDK's `LanguageModelV3`. */
export interface ModelCall {
  readonly prompt: readonly unknown[];
  readonly tools?: readonly unknown[];
}

interface Content {
  readonly type: "text" | "tool-call";
  readonly [field: string]: string;
}

interface Response {
  readonly content: readonly Content[];
  readonly finishReason: { readonly unified: "stop" | "tool-calls"; readonly raw: undefined };
  readonly usage: Readonly<Record<"inputTokens" | "outputTokens", Readonly<Record<string, number>>>>;
  readonly warnings: readonly unknown[];
}

/** A scripted model, and the calls that it received. */
export interface ScriptedModel extends LanguageModel {
  readonly supportedUrls: Readonly<Record<string, never>>;
  /** Every call so far, in order. */
  readonly calls: readonly ModelCall[];
  doGenerate(call: ModelCall): Promise<unknown>;
  doStream(call: ModelCall): Promise<{ readonly stream: ReadableStream<unknown> }>;
}

/**
 * A model that answers its calls with `steps`, one after the other. A call after the last step rejects.
 *
 * @example
 * const model = scriptedModel([
 *   { calls: [{ name: "task_complete", arguments: { finish_message: "done" } }] },
 * ]);
 * const agent = defineAgent({ name: "helper", run: modelAgent({ llm: model }) });
 */
export function scriptedModel(steps: readonly ModelStep[]): ScriptedModel {
  const calls: ModelCall[] = [];
  const respond = (call: ModelCall): Response => {
    const number = calls.push(call);
    const step = steps[number - 1];
    if (step === undefined) {
      throw new Error(`the scripted model has ${steps.length} steps and was called ${number} times`);
    }
    if (step.error !== undefined) throw step.error;
    return toResponse(step, number);
  };
  return {
    specificationVersion: "v3",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    calls,
    doGenerate: async (call) => respond(call),
    doStream: async (call) => ({ stream: toStream(respond(call)) }),
  };
}

function toResponse({ text, calls = [] }: ModelStep, number: number): Response {
  const content: Content[] = [];
  if (text !== undefined) content.push({ type: "text", text });
  for (const [index, call] of calls.entries()) {
    const input = JSON.stringify(call.arguments);
    content.push({ type: "tool-call", toolCallId: `call-${number}-${index}`, toolName: call.name, input });
  }
  return {
    content,
    finishReason: { unified: calls.length > 0 ? "tool-calls" : "stop", raw: undefined },
    usage: {
      inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 0, text: 0, reasoning: 0 },
    },
    warnings: [],
  };
}

function toStream({ content, finishReason, usage }: Response): ReadableStream<unknown> {
  const parts: unknown[] = [{ type: "stream-start", warnings: [] }];
  for (const [index, item] of content.entries()) {
    const id = String(index);
    if (item.type === "text") {
      parts.push({ type: "text-start", id }, { type: "text-delta", id, delta: item.text });
      parts.push({ type: "text-end", id });
    } else if (item.type === "tool-call") parts.push(item);
  }
  parts.push({ type: "finish", finishReason, usage });
  return ReadableStream.from(parts);
}
