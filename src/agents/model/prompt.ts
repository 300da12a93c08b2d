/**
 * An agent's memory as a prompt that every provider accepts: each call is followed at once by its one result, ids are
 * unique and plain, and whatever others wrote stays inside its element (law 9). Pure.
 */
import type { HistoryItem, Peer, ResultItem } from "../../engine/agent.js";
import { SUMMARY_TEXT } from "../../mail/help-texts.js";
import { escapeText, renderMailXml } from "../../mail/render.js";
import type { Prompt, PromptMessage } from "./language-model.js";
import { readMemo } from "./memo.js";

type AnswerItem = Extract<HistoryItem, { kind: "answer" }>;
type AssistantContent = Extract<PromptMessage, { role: "assistant" }>["content"];
type ToolContent = Extract<PromptMessage, { role: "tool" }>["content"];

export interface SystemPromptParts {
  readonly system: string;
  readonly agent: string;
  readonly swarm: string;
  readonly peers: readonly Peer[];
  readonly primer: boolean;
}

/** The agent's instructions, how mail works, and whom it can reach (mail.md 8.3). */
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

/** @param model whose memos are to be sent back; other models' signatures mean nothing to it. */
export function historyPrompt(history: readonly HistoryItem[], model: string): Prompt {
  const prompt: Prompt = [];
  const ids = new CallIds();
  for (const [index, item] of history.entries()) {
    switch (item.kind) {
      case "message":
        pushUser(prompt, renderMailXml(item.message));
        break;
      case "summary":
        pushUser(prompt, summaryText(item.text));
        break;
      case "answer":
        pushAnswer(prompt, item, (callId) => resultOf(callId, history, index), ids, model);
        break;
      case "result":
        // Stands beside its call already.
        break;
    }
  }
  return prompt;
}

export function summaryText(text: string): string {
  return `<summary_of_earlier_messages>\n${escapeText(text)}\n</summary_of_earlier_messages>`;
}

/** As the agent sees the result of a call. Our own tags in it are made harmless; other markup is left as it is. */
export function resultText({ ok, content }: Pick<ResultItem, "ok" | "content">): string {
  const harmless = content.replaceAll(/<(\/?(?:incoming_message|summary_of_earlier_messages))\b/gi, "&lt;$1");
  return `${ok ? "SUCCESS" : "ERROR"}: ${harmless}`;
}

function pushUser(prompt: Prompt, text: string): void {
  const last = prompt.at(-1);
  // Several messages in a row are one turn of the user to most providers.
  if (last?.role === "user") last.content.push({ type: "text", text });
  else prompt.push({ role: "user", content: [{ type: "text", text }] });
}

function pushAnswer(
  prompt: Prompt,
  item: AnswerItem,
  resultFor: (callId: string) => ResultItem | undefined,
  ids: CallIds,
  model: string,
): void {
  const memo = readMemo(item.memo, model);
  const content: AssistantContent = [];
  for (const { text, options } of memo?.reasoning ?? []) {
    content.push({ type: "reasoning", text, ...(options !== undefined && { providerOptions: options }) });
  }
  if (item.text !== undefined && item.text.trim() !== "") content.push({ type: "text", text: item.text });
  const results: ToolContent = [];
  for (const [index, call] of item.calls.entries()) {
    const toolCallId = ids.next(call.id);
    const options = memo?.calls[index];
    content.push({
      type: "tool-call",
      toolCallId,
      toolName: call.name,
      input: call.args,
      ...(options !== undefined && options !== null && { providerOptions: options }),
    });
    const result = resultFor(call.id);
    results.push({
      type: "tool-result",
      toolCallId,
      toolName: call.name,
      output: {
        type: "text",
        value: resultText(result ?? { ok: false, content: "no result is known" }),
      },
    });
  }
  if (content.length === 0) return;
  prompt.push({ role: "assistant", content });
  if (results.length > 0) prompt.push({ role: "tool", content: results });
}

/** The first result with this id after the answer; a later answer may use the id again for a call of its own. */
function resultOf(callId: string, history: readonly HistoryItem[], answer: number): ResultItem | undefined {
  for (let at = answer + 1; at < history.length; at++) {
    const item = history[at];
    if (item?.kind === "result" && item.callId === callId) return item;
    if (item?.kind === "answer" && item.calls.some(({ id }) => id === callId)) return undefined;
  }
  return undefined;
}

/** Providers want ids that are unique in the whole prompt and made of few kinds of characters. */
class CallIds {
  readonly #used = new Set<string>();

  next(id: string): string {
    const plain = /^[A-Za-z0-9_-]{1,64}$/.test(id) ? id : `call_${this.#used.size}`;
    const unique = this.#used.has(plain) ? `${plain.slice(0, 48)}_${this.#used.size}` : plain;
    this.#used.add(unique);
    return unique;
  }
}
