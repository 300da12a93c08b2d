/** Brings the accepted forms of breakpoint results to one (REF-3). */

import { isRecord, MailroomError } from "../../base/index.js";
import type { AnswerBreakpoint, BreakpointResult } from "../../engine/index.js";

/** @throws MailroomError `bad_request` naming the field */
export function readBreakpointResults(given: unknown, field: string): AnswerBreakpoint["results"] {
  if (typeof given !== "string") return fromJson(given, field);
  const parsed = parse(given);
  const isResult = (item: unknown) => isRecord(item) && "content" in item;
  const isResults = Array.isArray(parsed) && parsed.length > 0 && parsed.every(isResult);
  // Any other text, JSON or not, is the result of the only call.
  return isResults || isResult(parsed) ? fromJson(parsed, field) : { content: given };
}

function fromJson(given: unknown, field: string): AnswerBreakpoint["results"] {
  if (Array.isArray(given)) return given.map((item, index) => one(item, `${field}.${index}`));
  if (!isRecord(given)) throw bad(field, "is required");
  // An object without `content` is itself what the tool would have returned.
  if (!("content" in given)) return { content: textOf(given) };
  if (typeof given.call_id === "string") return [one(given, field)];
  return { content: textOf(given.content) };
}

function one(item: unknown, field: string): BreakpointResult {
  if (!isRecord(item)) throw bad(field, "must be an object with call_id and content");
  if (typeof item.call_id !== "string" || item.call_id === "") throw bad(`${field}.call_id`, "is required");
  if (item.content === undefined) throw bad(`${field}.content`, "is required");
  return { callId: item.call_id, content: textOf(item.content) };
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bad(field: string, what: string): MailroomError {
  return new MailroomError("bad_request", `${field} ${what}`, { details: { field } });
}
