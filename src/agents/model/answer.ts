/** Converts a model's answer for the engine, and builds corrections for answers that cannot be used. */

import { z } from "zod";
import { isRecord } from "../../base/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import type { ModelAnswer } from "./call.js";
import type { Content } from "./language-model.js";
import { type Correction, optionsOf, type Reasoned } from "./memo.js";

type CallPart = Extract<Content, { type: "tool-call" }>;

interface ReadCall {
  readonly part: CallPart;
  /** Absent if the arguments could not be parsed. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly problem?: string;
}

export interface ReadAnswer {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ReadCall[];
  readonly malformed: boolean;
}

/** Replaces a call with unreadable arguments. No tool has this name, so its result is an error. */
const INVALID_CALL = "invalid_tool_call";

/** Characters of unreadable arguments that are shown to the model. */
const SHOWN = 500;

export function readAnswer({ content, finishReason }: ModelAnswer): ReadAnswer {
  const calls = content
    // Calls that the provider executed itself are not ours.
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
    ? "the arguments were cut off because the answer reached its token limit; write a shorter one"
    : "the arguments are not the JSON text of an object";
  return { part, problem };
}

/** Some models send an empty string for a tool without parameters, and some nest the JSON in a JSON string. */
function readArguments(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text.trim() === "") return {};
  const once = parseJson(text);
  const value = typeof once === "string" ? parseJson(once) : once;
  return isRecord(value) ? value : undefined;
}

/** Returns the calls for the engine, which answers unreadable ones with error results. */
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

/** Reason why an answer cannot be used. */
export type AnswerProblem = "malformed" | "empty" | "unsent" | "cut" | { readonly mustCall: string };

/** Returns the answer and its problem for the prompt, so that the model can correct it immediately. */
export function correction(answer: ReadAnswer, problem: AnswerProblem, reasoned: Reasoned): Correction {
  if (problem === "empty") {
    return { reasoning: [], calls: [], says: "Your answer was empty. Call one of your tools." };
  }
  const text = answer.text.trim() === "" ? {} : { text: answer.text };
  if (problem === "malformed") return { ...reasoned, ...text, calls: answer.calls.map(malformedCall) };
  if (typeof problem === "object") {
    const result = `ERROR: not executed. Only ${problem.mustCall} is possible now.`;
    const calls = answer.calls.map((call) => toCorrectedCall(call, result));
    return {
      ...reasoned,
      ...text,
      calls,
      ...(calls.length === 0 && { says: result.slice("ERROR: ".length) }),
    };
  }
  return { ...reasoned, ...text, calls: [], says: SAYS[problem] };
}

const SAYS = {
  unsent:
    "Your answer was text without a tool call, so it was not delivered. Call the tool that delivers it: " +
    "task_complete ends the task and answers the user, send_response answers an agent.",
  cut: "Your answer reached its limit of tokens and was cut off, so it was not delivered. Write a shorter one.",
} as const;

function malformedCall(call: ReadCall): Correction["calls"][number] {
  const { problem, part } = call;
  return toCorrectedCall(
    call,
    problem === undefined
      ? "ERROR: not executed, because another call of the same answer was malformed; call it again"
      : `ERROR: ${problem}. They were: ${part.input.slice(0, SHOWN)}`,
  );
}

function toCorrectedCall({ part, args = {} }: ReadCall, result: string): Correction["calls"][number] {
  const read = Arguments.safeParse(args);
  return {
    id: part.toolCallId,
    name: part.toolName,
    args: read.success ? read.data : {},
    result,
    options: optionsOf(part),
  };
}

const Arguments = z.record(z.string(), z.json());

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
