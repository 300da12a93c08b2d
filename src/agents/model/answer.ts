/** What a model answered, as the engine wants it; and what to tell a model whose answer cannot be used. */

import type { AgentToolCall } from "../../mail/calls.js";
import { isRecord } from "../../mail/record.js";
import type { ModelAnswer } from "./call.js";
import type { Content, Prompt } from "./language-model.js";

type CallPart = Extract<Content, { type: "tool-call" }>;

interface ReadCall {
  readonly part: CallPart;
  /** Absent if the arguments could not be read. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly problem?: string;
}

export interface ReadAnswer {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ReadCall[];
  readonly malformed: boolean;
}

/** Called in place of a tool whose arguments could not be read: it does not exist, so its result says so. */
export const INVALID_CALL = "invalid_tool_call";

/** How much of unreadable arguments is shown again. */
const SHOWN = 500;

export function readAnswer({ content, finishReason }: ModelAnswer): ReadAnswer {
  const calls = content
    // Calls that the provider has carried out itself are none of ours.
    .filter((part): part is CallPart => part.type === "tool-call" && part.providerExecuted !== true)
    .map((part) => readCall(part, finishReason.unified === "length"));
  return {
    text: textOf(content, "text", ""),
    reasoning: textOf(content, "reasoning", "\n\n"),
    calls,
    malformed: calls.some(({ args }) => args === undefined),
  };
}

function readCall(part: CallPart, cutOff: boolean): ReadCall {
  const args = readArguments(part.input);
  if (args !== undefined) return { part, args };
  const problem = cutOff
    ? "the arguments were cut off, because the answer reached its limit of tokens; write a shorter one"
    : "the arguments are not the JSON text of an object";
  return { part, problem };
}

/** Some models send nothing for a tool without parameters, and some put the JSON into a JSON string. */
function readArguments(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text.trim() === "") return {};
  const once = parseJson(text);
  const value = typeof once === "string" ? parseJson(once) : once;
  return isRecord(value) ? value : undefined;
}

/** The calls for the engine. Those that are still unreadable become error results there. */
export function toCalls(answer: ReadAnswer): AgentToolCall[] {
  return answer.calls.map(({ part, args, problem = "" }) =>
    args === undefined
      ? {
          id: part.toolCallId,
          name: INVALID_CALL,
          args: { tool: part.toolName, problem, arguments: part.input.slice(0, SHOWN) },
        }
      : { id: part.toolCallId, name: part.toolName, args },
  );
}

/** What keeps an answer from being used. */
export type Flaw = "malformed" | "empty" | "unsent";

/** The answer and what is wrong with it, so that the model can mend it at once. */
export function complaint(answer: ReadAnswer, flaw: Flaw): Prompt {
  switch (flaw) {
    case "empty":
      return [says("Your answer was empty. Call one of your tools.")];
    case "unsent":
      return [
        { role: "assistant", content: [{ type: "text", text: answer.text }] },
        says(
          "Your answer was text without a tool call, so nobody received it. Call the tool that delivers it: " +
            "task_complete ends the task and answers the user, send_response answers an agent.",
        ),
      ];
    case "malformed":
      return malformedCalls(answer);
  }
}

function says(text: string): Prompt[number] {
  return { role: "user", content: [{ type: "text", text }] };
}

function malformedCalls(answer: ReadAnswer): Prompt {
  return [
    {
      role: "assistant",
      content: [
        ...(answer.text.trim() === "" ? [] : [{ type: "text" as const, text: answer.text }]),
        ...answer.calls.map(({ part, args = {} }) => ({
          type: "tool-call" as const,
          toolCallId: part.toolCallId,
          toolName: part.toolName,
          input: args,
        })),
      ],
    },
    {
      role: "tool",
      content: answer.calls.map(({ part, problem }) => ({
        type: "tool-result" as const,
        toolCallId: part.toolCallId,
        toolName: part.toolName,
        output: {
          type: "text" as const,
          value:
            problem === undefined
              ? "ERROR: not carried out, because another call of the same answer was malformed; call it again"
              : `ERROR: ${problem}. They were: ${part.input.slice(0, SHOWN)}`,
        },
      })),
    },
  ];
}

function textOf(content: readonly Content[], type: "text" | "reasoning", separator: string): string {
  return content
    .flatMap((part) => (part.type === type && part.text !== "" ? [part.text] : []))
    .join(separator);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
