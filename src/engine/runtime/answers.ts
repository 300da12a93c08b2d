/** What agents answer comes from other people's code: it is copied first, and the copy is looked at. */
import { copyJson, NotStorableError } from "../../journal/json.js";
import { isRecord } from "../../mail/record.js";
import type { AgentAnswer } from "../agent.js";
import { describe } from "./actions.js";

/**
 * A copy that is an answer, whatever becomes of the original.
 * @throws Error that says what is wrong with it, beginning with what it is called
 */
export function copyAnswer(given: unknown, name: string): AgentAnswer {
  let copy: unknown;
  try {
    copy = isRecord(given) ? copyJson(given) : undefined;
  } catch (error) {
    const reason = error instanceof NotStorableError ? error.message : describe(error);
    throw new Error(`${name} cannot be stored: ${reason}`);
  }
  if (!isAnswer(copy)) throw new Error(`${name} is not an answer: it has to have a list of calls`);
  return copy;
}

function isAnswer(value: unknown): value is AgentAnswer {
  if (!isRecord(value) || !Array.isArray(value.calls) || !value.calls.every(isCall)) return false;
  if (!isOptionalText(value.text) || !isOptionalText(value.reasoning)) return false;
  return value.compaction === undefined || isCompaction(value.compaction);
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isCompaction(value: unknown): boolean {
  return isRecord(value) && Number.isSafeInteger(value.upTo) && typeof value.summary === "string";
}

function isCall(value: unknown): boolean {
  return (
    isRecord(value) && typeof value.id === "string" && typeof value.name === "string" && isRecord(value.args)
  );
}
