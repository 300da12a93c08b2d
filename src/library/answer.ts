/** What a caller gets back. */

import type { HoldReason, PostReceipt, RoundOutcome } from "../engine/index.js";
import type { AgentToolCall, MAILMessage } from "../mail/index.js";

interface AnswerBase {
  readonly taskId: string;
  /** The text of the final message: the answer, the reason of a failure, or the waiting calls as JSON. */
  readonly response: string;
  readonly message: MAILMessage;
}

/** How a round of a task ended. `status` determines which fields are present. */
export type Answer = AnswerBase &
  (
    | { readonly status: "completed" }
    | {
        readonly status: "paused";
        readonly breakpoints: readonly AgentToolCall[];
        /** Calls that run once a person has approved them (`Task.decide`). */
        readonly approvals?: readonly AgentToolCall[];
        /** What an agent requires before the task can continue; `response` says how to supply it. */
        readonly reason?: HoldReason;
      }
    | { readonly status: "failed"; readonly error: { readonly code: string; readonly message: string } }
    | { readonly status: "cancelled" }
  );

export function answerOf(posted: PostReceipt, outcome: RoundOutcome): Answer {
  const base = {
    taskId: posted.taskId,
    response: outcome.message.message.body,
    message: outcome.message,
  };
  switch (outcome.status) {
    case "completed":
    case "cancelled":
      return { ...base, status: outcome.status };
    case "failed": {
      const error = outcome.error ?? { code: "unknown", message: base.response };
      return { ...base, status: "failed", error };
    }
    case "paused":
      return {
        ...base,
        status: "paused",
        breakpoints: outcome.breakpoints ?? [],
        ...(outcome.approvals !== undefined && { approvals: outcome.approvals }),
        ...(outcome.reason !== undefined && { reason: outcome.reason }),
      };
  }
}
