/** What a caller gets back. */

import type { HoldReason } from "../engine/agent.js";
import type { Outcome, Posted } from "../engine/runtime/index.js";
import type { AgentToolCall } from "../mail/calls.js";
import type { MAILMessage } from "../mail/message.js";

interface AnswerBase {
  readonly taskId: string;
  /** The finishing message's text: the answer, the reason of a failure, or the waiting calls as JSON. */
  readonly response: string;
  readonly message: MAILMessage;
}

/** How a round of a task ended. `status` says which of the fields are there. */
export type Answer = AnswerBase &
  (
    | { readonly status: "completed" }
    | {
        readonly status: "paused";
        readonly breakpoints: readonly AgentToolCall[];
        /** What an agent needs before the task can go on; `response` says how it can be given. */
        readonly reason?: HoldReason;
      }
    | { readonly status: "failed"; readonly error: { readonly code: string; readonly message: string } }
    | { readonly status: "cancelled" }
  );

export function answerOf(posted: Posted, outcome: Outcome): Answer {
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
        ...(outcome.reason !== undefined && { reason: outcome.reason }),
      };
  }
}
