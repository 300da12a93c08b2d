/**
 * Turns an agent's history into a prompt that every provider accepts: each call is followed directly by its result, ids
 * are unique and plain, and text from others stays inside its element (law 10). Pure.
 */
import { createHash, type Hash } from "node:crypto";
import type { CommTarget, HistoryItem, ResultItem } from "../../engine/index.js";
import {
  escapeText,
  type MAILMessage,
  renderMailXml,
  renderResult,
  SUMMARY_TEXT,
  SYSTEM_SUBJECTS,
} from "../../mail/index.js";
import type { Prompt, PromptMessage, ProviderOptions } from "./language-model.js";
import { type Correction, type Reasoned, readMemo } from "./memo.js";
import type { ModelTraits } from "./traits.js";

type AnswerItem = Extract<HistoryItem, { kind: "answer" }>;
type AssistantContent = Extract<PromptMessage, { role: "assistant" }>["content"];
type ToolContent = Extract<PromptMessage, { role: "tool" }>["content"];

export interface SystemPromptParts {
  readonly system: string;
  readonly agent: string;
  readonly swarm: string;
  readonly peers: readonly CommTarget[];
  readonly primer: boolean;
}

/** The agent's instructions, how mail works, and which agents it can reach (REF-20). */
export function systemPrompt({ system, agent, swarm, peers, primer }: SystemPromptParts): string {
  const parts = [system.trim()];
  if (primer) parts.push(SUMMARY_TEXT);
  parts.push(`Your name is "${agent}", and your swarm is "${swarm}".`);
  if (peers.length > 0) {
    const lines = peers.map(({ address, description, actions }) => {
      const about = description === undefined ? "" : `: ${description}`;
      return `- ${address}${about}${actions.length === 0 ? "" : ` (can use: ${actions.join(", ")})`}`;
    });
    parts.push(`Here are details about the agents you can communicate with:\n${lines.join("\n")}`);
  }
  return parts.filter((part) => part !== "").join("\n\n");
}

export interface HistoryPromptParts {
  /** Memos of other models are left out: signatures are not valid for another model. */
  readonly model: string;
  readonly traits: Pick<ModelTraits, "boundThinking" | "signedCalls" | "reasonedCalls">;
  /** The system prompt and tools as text. */
  readonly prefix: string;
  /** Leaves out all reasoning, because the provider rejected it. */
  readonly withoutReasoning?: boolean;
}

export interface HistoryPrompt {
  readonly messages: Prompt;
  /** The hash of everything before the next answer, if the model's reasoning is bound to it. */
  readonly prefix: string | undefined;
}

/** @param corrections of the answer that is being asked for */
export function historyPrompt(
  history: readonly HistoryItem[],
  parts: HistoryPromptParts,
  corrections: readonly Correction[] = [],
): HistoryPrompt {
  const builder = new PromptBuilder(parts, indexOfFreshStart(history, parts.model));
  for (const [index, item] of history.entries()) builder.add(item, index, history);
  for (const correction of corrections) builder.correct(correction, true);
  return { messages: builder.messages, prefix: builder.prefix() };
}

/** Reasoning before this answer was rejected and is not sent again. */
function indexOfFreshStart(history: readonly HistoryItem[], model: string): number {
  return history.findLastIndex(
    (item) => item.kind === "answer" && item.memo !== undefined && readMemo(item.memo, model)?.alone === true,
  );
}

/** Marks the place of a broadcast that the agent ignored. Providers require a message before each answer. */
const LEFT_OUT = "<note>A message that you ignored was removed here.</note>";

/** Accepted by Google in place of its signature, for calls that its model did not make. */
const NO_SIGNATURE = { google: { thoughtSignature: "skip_thought_signature_validator" } };

class PromptBuilder {
  readonly messages: Prompt = [];
  readonly #parts: HistoryPromptParts;
  readonly #freshStart: number;
  readonly #ids = new CallIds();
  readonly #hash: Hash | undefined;
  #hashed = 0;

  constructor(parts: HistoryPromptParts, freshStart: number) {
    this.#parts = parts;
    this.#freshStart = freshStart;
    this.#hash = parts.traits.boundThinking === true ? createHash("sha256").update(parts.prefix) : undefined;
  }

  add(item: HistoryItem, index: number, history: readonly HistoryItem[]): void {
    switch (item.kind) {
      case "message":
        // The results say it already, and text after results teaches models to answer with nothing.
        if (isResultNotice(item.message) && this.#endsWithResults()) return;
        this.#user(renderMailXml(item.message));
        return;
      case "summary":
        this.#user(summaryText(item.text));
        return;
      case "answer":
        this.#answer(item, (callId) => resultOf(callId, history, index), index >= this.#freshStart);
        return;
      case "result":
        // Already added after its call.
        return;
    }
  }

  /** The hash of all messages so far. */
  prefix(): string | undefined {
    if (this.#hash === undefined) return undefined;
    for (const message of this.messages.slice(this.#hashed)) this.#hash.update(JSON.stringify(message));
    this.#hashed = this.messages.length;
    return this.#hash.copy().digest("base64url").slice(0, 22);
  }

  correct(correction: Correction, isFresh: boolean): void {
    const { text, calls, says } = correction;
    const content = this.#reasoning(correction, isFresh);
    if (text !== undefined) content.push({ type: "text", text });
    const results: ToolContent = [];
    for (const { id, name, args, result, options } of calls) {
      const toolCallId = this.#ids.next(id);
      content.push(callPart(toolCallId, name, args, options ?? undefined));
      results.push(resultPart(toolCallId, name, result));
    }
    // Reasoning alone is not an answer.
    if (text !== undefined || calls.length > 0) this.#assistant(content);
    if (results.length > 0) this.messages.push({ role: "tool", content: results });
    if (says !== undefined) this.#user(says);
  }

  #answer(item: AnswerItem, resultFor: (callId: string) => ResultItem | undefined, isFresh: boolean): void {
    const { model, traits } = this.#parts;
    const memo = readMemo(item.memo, model);
    for (const correction of memo?.corrections ?? []) this.correct(correction, isFresh);
    const content = memo === undefined ? [] : this.#reasoning(memo, isFresh);
    if (content.length === 0 && traits.reasonedCalls === true && item.calls.length > 0) {
      // Another model made the calls.
      content.push({ type: "reasoning", text: item.reasoning ?? "(not recorded)" });
    }
    const reasons = content.length;
    if (item.text !== undefined && item.text.trim() !== "") content.push({ type: "text", text: item.text });
    const results: ToolContent = [];
    for (const [index, call] of item.calls.entries()) {
      const toolCallId = this.#ids.next(call.id);
      const isUnsigned = traits.signedCalls === true && index === 0;
      const options = memo?.calls[index] ?? (isUnsigned ? NO_SIGNATURE : undefined);
      content.push(callPart(toolCallId, call.name, call.args, options));
      const result = resultFor(call.id) ?? { ok: false, content: "no result is known" };
      results.push(resultPart(toolCallId, call.name, renderResult(result)));
    }
    if (content.length === reasons) return;
    this.#assistant(content);
    if (results.length > 0) this.messages.push({ role: "tool", content: results });
  }

  /** Bound reasoning is included after the prompt that it was written for. What follows omitted reasoning is omitted. */
  #reasoning({ reasoning, prefix }: Reasoned, isFresh: boolean): AssistantContent {
    const { traits, withoutReasoning } = this.#parts;
    if (reasoning.length === 0 || !isFresh || withoutReasoning === true) return [];
    if (traits.boundThinking === true && prefix !== this.prefix()) return [];
    return reasoning.map(({ text, options }) => ({
      type: "reasoning" as const,
      text,
      ...(options !== undefined && { providerOptions: options }),
    }));
  }

  /** Whether the last answer has results; messages may have come after them. */
  #endsWithResults(): boolean {
    return this.messages.findLast(({ role }) => role !== "user")?.role === "tool";
  }

  #assistant(content: AssistantContent): void {
    const before = this.messages.at(-1)?.role;
    if (before === undefined || before === "assistant") this.#user(LEFT_OUT);
    this.messages.push({ role: "assistant", content });
  }

  #user(text: string): void {
    const last = this.messages.at(-1);
    // Most providers treat several messages in a row as one turn of the user.
    if (last?.role === "user") last.content.push({ type: "text", text });
    else this.messages.push({ role: "user", content: [{ type: "text", text }] });
  }
}

function isResultNotice({ message }: MAILMessage): boolean {
  return message.sender.address_type === "system" && message.subject === SYSTEM_SUBJECTS.actionComplete;
}

function callPart(
  toolCallId: string,
  toolName: string,
  input: unknown,
  options: ProviderOptions | undefined,
): AssistantContent[number] {
  return {
    type: "tool-call",
    toolCallId,
    toolName,
    input,
    ...(options !== undefined && { providerOptions: options }),
  };
}

function resultPart(toolCallId: string, toolName: string, value: string): ToolContent[number] {
  return { type: "tool-result", toolCallId, toolName, output: { type: "text", value } };
}

function summaryText(text: string): string {
  return `<summary_of_earlier_messages>\n${escapeText(text)}\n</summary_of_earlier_messages>`;
}

/** The first result with this id after the answer. A later answer may reuse the id for another call. */
function resultOf(callId: string, history: readonly HistoryItem[], answer: number): ResultItem | undefined {
  for (let at = answer + 1; at < history.length; at++) {
    const item = history[at];
    if (item?.kind === "result" && item.callId === callId) return item;
    if (item?.kind === "answer" && item.calls.some(({ id }) => id === callId)) return undefined;
  }
  return undefined;
}

/** Providers require ids that are unique in the prompt and consist of a small set of characters. */
class CallIds {
  readonly #used = new Set<string>();

  next(id: string): string {
    const plain = /^[A-Za-z0-9_-]{1,64}$/.test(id) ? id : `call_${this.#used.size}`;
    const unique = this.#used.has(plain) ? `${plain.slice(0, 48)}_${this.#used.size}` : plain;
    this.#used.add(unique);
    return unique;
  }
}
