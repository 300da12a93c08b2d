/** Tool calls: our own record, and the two forms of calls and results in model providers' histories. */

import { isRecord, type MailroomError } from "../base/index.js";
import { badMessage } from "./errors.js";
import type { ToolStyle } from "./tools.js";

/** A tool call of an agent. */
export interface AgentToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface CompletionsAssistantEntry {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

export interface CompletionsResultEntry {
  readonly role: "tool";
  readonly name: string;
  readonly content: string;
  readonly tool_call_id: string;
}

export interface ResponsesTextEntry {
  readonly type: "message";
  readonly role: "assistant";
  readonly content: readonly { readonly type: "output_text"; readonly text: string }[];
}

export interface ResponsesCallEntry {
  readonly type: "function_call";
  readonly id: string;
  readonly call_id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
  readonly status: "completed";
}

export interface ResponsesResultEntry {
  readonly type: "function_call_output";
  readonly call_id: string;
  readonly output: string;
}

/** An item of a model's conversation, in a provider's form. */
export type HistoryEntry =
  | CompletionsAssistantEntry
  | CompletionsResultEntry
  | ResponsesTextEntry
  | ResponsesCallEntry
  | ResponsesResultEntry;

/** Converts an agent's text and calls of one turn to history entries. */
export function assistantEntries(
  style: ToolStyle,
  turn: { readonly text?: string; readonly calls: readonly AgentToolCall[] },
): HistoryEntry[] {
  switch (style) {
    case "completions":
      return [completionsEntry(turn.text, turn.calls)];
    case "responses": {
      const entries: HistoryEntry[] = [];
      if (turn.text !== undefined && turn.text !== "") {
        entries.push({
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: turn.text }],
        });
      }
      for (const call of turn.calls) entries.push(normalizeBreakpointCall(call));
      return entries;
    }
  }
}

/** Converts the result of one call to a history entry. */
export function toolResultEntry(style: ToolStyle, call: AgentToolCall, content: string): HistoryEntry {
  switch (style) {
    case "completions":
      return { role: "tool", name: call.name, content, tool_call_id: call.id };
    case "responses":
      return { type: "function_call_output", call_id: call.id, output: content };
  }
}

/**
 * Returns a call in the form for breakpoints. The order of the keys is the reference's, because the list is sent as
 * text.
 */
export function normalizeBreakpointCall(call: AgentToolCall): ResponsesCallEntry {
  return {
    arguments: JSON.stringify(call.args),
    call_id: call.id,
    name: call.name,
    type: "function_call",
    id: `fc_${call.id}`,
    status: "completed",
  };
}

/**
 * Returns the calls in an assistant message of completions style.
 * @throws MailroomError `bad_message` when a call is malformed.
 */
export function callsFromCompletion(message: unknown): AgentToolCall[] {
  if (!isRecord(message)) throw malformed("", "must be an assistant message");
  const calls = message.tool_calls;
  if (calls === undefined || calls === null) return [];
  if (!Array.isArray(calls)) throw malformed("/tool_calls", "must be a list");
  return calls.map((call: unknown, index) => {
    const path = `/tool_calls/${index}`;
    if (!isRecord(call) || !isRecord(call.function)) throw malformed(path, "must be a function call");
    return readCall(path, call.id, call.function.name, call.function.arguments);
  });
}

/**
 * Returns the function calls among the output items of responses style. Other items are ignored.
 * @throws MailroomError `bad_message` when a call is malformed.
 */
export function callsFromResponses(items: unknown): AgentToolCall[] {
  if (!Array.isArray(items)) throw malformed("", "must be a list of output items");
  const calls: AgentToolCall[] = [];
  for (const [index, item] of items.entries()) {
    if (!isRecord(item) || item.type !== "function_call") continue;
    calls.push(readCall(`/${index}`, item.call_id, item.name, item.arguments));
  }
  return calls;
}

function completionsEntry(
  text: string | undefined,
  calls: readonly AgentToolCall[],
): CompletionsAssistantEntry {
  const content = text === undefined || text === "" ? null : text;
  // Providers reject an empty list of calls.
  if (calls.length === 0) return { role: "assistant", content: content ?? "" };
  return {
    role: "assistant",
    content,
    tool_calls: calls.map((call) => ({
      id: call.id,
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.args) },
    })),
  };
}

function readCall(path: string, id: unknown, name: unknown, args: unknown): AgentToolCall {
  if (typeof id !== "string" || id === "") throw malformed(path, "has no call id");
  if (typeof name !== "string" || name === "") throw malformed(path, "has no name");
  return { id, name, args: readArguments(path, args) };
}

/** Providers send arguments as JSON text, and omit them for a tool without parameters. */
function readArguments(path: string, args: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(args)) return args;
  if (args === undefined || args === null || args === "") return {};
  const parsed = typeof args === "string" ? parseJson(args) : undefined;
  if (!isRecord(parsed)) throw malformed(`${path}/arguments`, "must be the JSON text of an object");
  return parsed;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function malformed(path: string, message: string): MailroomError {
  return badMessage("tool call", [{ path, message }]);
}
