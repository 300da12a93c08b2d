/** Checks what agents return. It comes from foreign code, so it is copied first and the copy is checked. */

import { isRecord, messageOf } from "../../base/index.js";
import { copyJson } from "../../journal/index.js";
import type { TurnResult } from "../agent.js";
import { cleanUsage } from "../usage.js";

/**
 * A checked copy of an answer.
 * @throws Error with the reason, starting with `name`
 */
export function copyAnswer(given: unknown, name: string): TurnResult {
  let copy: unknown;
  try {
    copy = isRecord(given) ? copyJson(given) : undefined;
  } catch (error) {
    const reason = messageOf(error);
    throw new Error(`${name} cannot be stored: ${reason}`);
  }
  if (!isAnswer(copy)) throw new Error(`${name} is not an answer: it must have a list of calls`);
  if (copy.usage === undefined) return copy;
  const { usage: reported, ...rest } = copy;
  const usage = cleanUsage(reported);
  return usage === undefined ? rest : { ...rest, usage };
}

function isAnswer(value: unknown): value is TurnResult {
  if (!isRecord(value) || !Array.isArray(value.calls) || !value.calls.every(isCall)) return false;
  if (!isOptionalText(value.text) || !isOptionalText(value.reasoning)) return false;
  return value.compaction === undefined || isCompaction(value.compaction);
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isCompaction(value: unknown): boolean {
  if (!isRecord(value) || !Number.isSafeInteger(value.upTo) || typeof value.summary !== "string")
    return false;
  const { keep } = value;
  return keep === undefined || (Array.isArray(keep) && keep.every((id) => typeof id === "string"));
}

function isCall(value: unknown): boolean {
  return (
    isRecord(value) && typeof value.id === "string" && typeof value.name === "string" && isRecord(value.args)
  );
}
