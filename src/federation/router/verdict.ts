/** What the answer of another swarm, or the lack of one, means for the message that was sent. Pure. */
import { isRecord } from "../../mail/record.js";
import { isTransient, NetError, parseRetryAfter } from "../../net/index.js";
import type { AttemptResult } from "../../outbox/index.js";

export type Direction = "forward" | "back";

export interface AttemptFacts {
  readonly direction: Direction;
  /** The peer recognises messages that it has had before, so that trying again does no harm (decisions E5). */
  readonly dedupes: boolean;
  /** An earlier attempt may have got through. */
  readonly uncertain: boolean;
}

export interface PeerAnswer {
  readonly status: number;
  readonly body: string;
  readonly retryAfter?: string;
}

export type Verdict =
  | AttemptResult
  /** It knows the task already, so it wants the message as a *back* (mail.md, Appendix A). */
  | { readonly kind: "send_back" };

/** What a delivered message taught us. */
export interface DeliveryNote {
  readonly localRunner?: string;
}

/** How the reference says that a *forward* came before (capture 084): near the beginning, around the task's id. */
const TASK_EXISTS = ["a task with id ", " already exists"] as const;
const WHERE_IT_SAYS_SO = 2_000;

export function judgeAnswer(answer: PeerAnswer, facts: AttemptFacts, now: number): Verdict {
  const { status } = answer;
  if (status === 200) return { kind: "delivered", note: readNote(answer.body) };
  const reason = `it answered ${status}: ${detailOf(answer.body)}`;
  if (status === 429 || status === 503) {
    const after = parseRetryAfter(answer.retryAfter, now);
    return { kind: "retry", reason, answered: true, ...(after !== undefined && { after }) };
  }
  if (facts.dedupes) {
    // Anything may have happened behind a 5xx; whoever remembers ids can be asked again.
    if (status >= 500 || status === 408) return { kind: "retry", reason, uncertain: true };
    return { kind: "refused", reason };
  }
  if (facts.direction === "forward" && status === 500 && saysTaskExists(answer.body)) {
    return facts.uncertain ? { kind: "delivered", note: {} } : { kind: "send_back" };
  }
  return { kind: "refused", reason };
}

export function judgeFailure(error: unknown, facts: AttemptFacts): AttemptResult {
  if (!(error instanceof NetError)) throw error;
  const reason = error.message;
  if (!error.sent) {
    const later = isTransient(error) || error.code === "aborted";
    return later ? { kind: "retry", reason } : { kind: "refused", reason };
  }
  // A peer that forgets ids still recognises a task: its first message can be offered again.
  if (facts.dedupes || facts.direction === "forward") return { kind: "retry", reason, uncertain: true };
  return deliveryUnknown(reason);
}

export function deliveryUnknown(reason: string): AttemptResult {
  return {
    kind: "refused",
    reason: `nobody knows whether it was delivered, and sending it again might deliver it twice (${reason})`,
  };
}

function saysTaskExists(body: string): boolean {
  const text = body.slice(0, WHERE_IT_SAYS_SO).toLowerCase();
  const [before, after] = TASK_EXISTS;
  const id = text.indexOf(before);
  return id >= 0 && text.includes(after, id + before.length);
}

function readNote(body: string): DeliveryNote {
  const parsed = parse(body);
  const runner = isRecord(parsed) ? parsed.local_runner : undefined;
  return typeof runner === "string" ? { localRunner: runner } : {};
}

const LONGEST_DETAIL = 500;

/** The other side's own words, which an agent will read: bounded. */
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
