/** Classifies the response of another swarm, or its absence, as the outcome of a delivery attempt. Pure. */
import { isRecord, parseRetryAfter } from "../../base/index.js";

import { isTransient, NetError } from "../../net/index.js";
import type { AttemptResult } from "../../outbox/index.js";

export type Direction = "forward" | "back";

export interface AttemptFacts {
  readonly direction: Direction;
  /** The peer detects messages that it already has, so retries are safe (decision E5). */
  readonly dedupes: boolean;
  /** An earlier attempt may have arrived. */
  readonly uncertain: boolean;
}

export interface PeerResponse {
  readonly status: number;
  readonly body: string;
  readonly retryAfter?: string;
}

export type ResponseClass =
  | AttemptResult
  /**
   * The peer needs the message in the other direction: as a *back* if it already has the task, as a *forward* if it has
   * forgotten the task (REF-14).
   */
  | { readonly kind: "send_otherwise"; readonly reason: string };

/** What the receipt of a delivered message contains. */
export interface DeliveryNote {
  readonly localRunner?: string;
}

/** The reference's answer to a repeated *forward* (REF-14), near the start of the body, around the task's id. */
const TASK_EXISTS = ["a task with id ", " already exists"] as const;
/** Its answer to a *back* for a task that it does not have. */
const TASK_FORGOTTEN = ["task is not running"] as const;
const WHERE_IT_SAYS_SO = 2_000;

export function classifyResponse(answer: PeerResponse, facts: AttemptFacts, now: number): ResponseClass {
  const { status } = answer;
  if (status === 200) return { kind: "delivered", note: readNote(answer.body) };
  const reason = `it answered ${status}: ${detailOf(answer.body)}`;
  if (status === 429 || status === 503) {
    const after = parseRetryAfter(answer.retryAfter, now);
    return { kind: "retry", reason, answered: true, ...(after !== undefined && { after }) };
  }
  if (facts.dedupes) {
    // After a 5xx the message may have been processed; a peer that detects duplicates can get it again.
    if (status >= 500 || status === 408) return { kind: "retry", reason, uncertain: true };
    return { kind: "refused", reason };
  }
  if (facts.direction === "forward" && status === 500 && says(answer.body, TASK_EXISTS)) {
    return facts.uncertain ? { kind: "delivered", note: {} } : { kind: "send_otherwise", reason };
  }
  // The reference forgets its tasks when it restarts.
  if (facts.direction === "back" && status === 400 && says(answer.body, TASK_FORGOTTEN)) {
    return { kind: "send_otherwise", reason };
  }
  // A proxy answers for a server that it could not reach, or lost: like a lost connection.
  if (status === 502 || status === 504) return afterLostAnswer(reason, facts);
  return { kind: "refused", reason };
}

export function classifyFailure(error: unknown, facts: AttemptFacts): AttemptResult {
  if (!(error instanceof NetError)) throw error;
  const reason = error.message;
  if (!error.mayHaveArrived) {
    const later = isTransient(error) || error.code === "aborted";
    return later ? { kind: "retry", reason } : { kind: "refused", reason };
  }
  return afterLostAnswer(reason, facts);
}

/** Without duplicate detection, a peer still recognizes a known task, so a *forward* can be repeated. */
function afterLostAnswer(reason: string, { dedupes, direction }: AttemptFacts): AttemptResult {
  if (dedupes || direction === "forward") return { kind: "retry", reason, uncertain: true };
  return deliveryUnknown(reason);
}

export function deliveryUnknown(reason: string): AttemptResult {
  return {
    kind: "refused",
    reason: `it is unknown whether the message was delivered, and sending it again might deliver it twice (${reason})`,
  };
}

/** Whether the beginning of a body contains these phrases in this order. */
function says(body: string, phrases: readonly string[]): boolean {
  const text = body.slice(0, WHERE_IT_SAYS_SO).toLowerCase();
  let from = 0;
  for (const phrase of phrases) {
    const at = text.indexOf(phrase, from);
    if (at < 0) return false;
    from = at + phrase.length;
  }
  return true;
}

function readNote(body: string): DeliveryNote {
  const parsed = parse(body);
  const runner = isRecord(parsed) ? parsed.local_runner : undefined;
  return typeof runner === "string" ? { localRunner: runner } : {};
}

const LONGEST_DETAIL = 500;

/** The peer's error text, cut because an agent reads it. */
function detailOf(body: string): string {
  const parsed = parse(body);
  const detail = isRecord(parsed) && typeof parsed.detail === "string" ? parsed.detail : body;
  return detail.length <= LONGEST_DETAIL ? detail : `${detail.slice(0, LONGEST_DETAIL)}…`;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
