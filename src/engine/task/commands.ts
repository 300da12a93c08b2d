/** The commands that a task accepts, and their refusals. */
import type { MAILMessage } from "../../mail/index.js";
import type { HoldReason, TurnResult, Usage } from "../agent.js";
import type { BudgetChange, ReachedLimit } from "../usage.js";
import type { Actor } from "./approvers.js";
import type { Entry, ManualReply, RemoteEvent, TaskHeader } from "./entries.js";
import type { TaskState } from "./state.js";

/** Opens a task with its first message. */
export interface OpenTask {
  readonly type: "open";
  readonly task: Omit<TaskHeader, "deadline" | "maxSteps"> & { readonly maxSteps?: number | null };
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Other swarms that the message must reach. */
  readonly remote?: readonly string[];
}

/** Posts a message from outside (a user, or an agent of another swarm) into a task. Resumes an ended task. */
export interface PostMessage {
  readonly type: "post";
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Other swarms that the message must reach. */
  readonly remote?: readonly string[];
  readonly resumeFrom?: "user_response";
  readonly maxSteps?: number | null;
  /** Changes the limits that the owner set. */
  readonly budget?: BudgetChange;
  readonly contributors?: readonly string[];
  /** Refuse the message while a call waits for approval, because its text could be meant as the approval. */
  readonly refuseInApproval?: true;
  /** Whether mail from another swarm resumes an ended task. Mail from a user always does. */
  readonly resumes?: boolean;
}

export interface BreakpointResult {
  readonly callId: string;
  readonly content: string;
}

/** Answers the open breakpoint calls of a paused task. `content` alone answers the only open call. */
export interface AnswerBreakpoint {
  readonly type: "answer_breakpoint";
  readonly results: readonly BreakpointResult[] | { readonly content: string };
  readonly caller?: string;
  readonly maxSteps?: number | null;
  /** Who answers; the owner if absent. */
  readonly by?: Actor;
}

/** Names who may answer for the owner. An empty list takes every permission back. */
export interface NameApprovers {
  readonly type: "name_approvers";
  readonly approvers: readonly string[];
  readonly by: Actor;
}

/** Decides calls that wait for approval. Others stay open. */
export interface AnswerApprovals {
  readonly type: "answer_approvals";
  readonly decisions: readonly ApprovalDecision[];
  /** Who decides; the owner if absent. */
  readonly by?: Actor;
}

/** The decision about one call that waits for approval. */
export type ApprovalDecision =
  | {
      readonly callId: string;
      readonly decision: "approve";
      /** Replaces the arguments of the call. */
      readonly args?: Readonly<Record<string, unknown>>;
    }
  | { readonly callId: string; readonly decision: "reject"; readonly reason?: string };

/** What the actions say about the calls of an answer. A call that may need approval and is not listed needs it. */
export type VettedCall =
  | { readonly index: number; readonly approval: boolean }
  /** Its arguments are invalid: no approval is requested. */
  | { readonly index: number; readonly problem: string };

export interface AnswerTurn {
  readonly type: "answer";
  readonly agent: string;
  readonly took: readonly number[];
  readonly answer: TurnResult;
  readonly vetted?: readonly VettedCall[];
  readonly counted?: Usage;
}

/** The answer of a remote agent to a message that was lent to it. */
export interface AnswerLent {
  readonly type: "answer_lent";
  readonly agent: string;
  /** Id of the MAIL message. */
  readonly messageId: string;
  readonly attempt: number;
  readonly answer: TurnResult;
  readonly vetted?: readonly VettedCall[];
}

/** A remote agent could not answer a message that was lent to it: its turn has failed. */
export interface FailLent {
  readonly type: "fail_lent";
  readonly agent: string;
  /** Id of the MAIL message. */
  readonly messageId: string;
  readonly attempt: number;
  readonly message: string;
}

export interface FailTurn {
  readonly type: "fail_turn";
  readonly agent: string;
  readonly took: readonly number[];
  readonly code: string;
  readonly message: string;
  readonly usage?: Usage;
  readonly counted?: Usage;
}

/** The agent cannot take its turn until it has what it needs. Its mail stays in the mailbox. */
export interface HoldTurn {
  readonly type: "hold_turn";
  readonly agent: string;
  readonly took: readonly number[];
  readonly reason: HoldReason;
  readonly limit?: ReachedLimit;
  readonly message: string;
  readonly usage?: Usage;
  readonly counted?: Usage;
}

/** Counts model calls that no answer reports: they are about to start, or their turn was stopped. */
export interface CountUsage {
  readonly type: "count_usage";
  readonly agent: string;
  readonly usage: Usage;
  readonly counted?: Usage;
  readonly begun?: true;
}

/** Sets the owner's limits of the task, or those of an admin that replace the configured ones. */
export interface SetBudget {
  readonly type: "set_budget";
  readonly limits: BudgetChange;
  /** By agent. For admins. */
  readonly agents?: Readonly<Record<string, BudgetChange>>;
  readonly by: Actor;
  readonly admin?: true;
}

export interface FinishAction {
  readonly type: "finish_action";
  readonly agent: string;
  readonly callId: string;
  readonly ok: boolean;
  readonly content: string;
  readonly unknown?: true;
}

export type Command =
  | PostMessage
  | AnswerBreakpoint
  | NameApprovers
  | AnswerApprovals
  /** Checks for approvals that were not given in time. */
  | { readonly type: "approval_time" }
  | AnswerTurn
  | AnswerLent
  | FailLent
  | FailTurn
  | HoldTurn
  | CountUsage
  | SetBudget
  /** Resumes a held task, because what it needs may be available now. */
  | { readonly type: "retry" }
  | FinishAction
  | { readonly type: "restart_action"; readonly agent: string; readonly callId: string }
  | { readonly type: "recover"; readonly agent: string; readonly took: readonly number[] }
  /** The process is shutting down while this turn is running. */
  | { readonly type: "park"; readonly agent: string; readonly took: readonly number[] }
  | { readonly type: "cancel"; readonly by: string }
  /** The runtime cannot continue the task. */
  | { readonly type: "fail"; readonly code: string; readonly reason: string }
  /** The task's deadline has passed. Ignored if the task has a different deadline by now. */
  | { readonly type: "time_limit"; readonly deadline?: number }
  | { readonly type: "lend"; readonly agent: string }
  | {
      readonly type: "release";
      readonly agent: string;
      readonly messageId: string;
      readonly attempt: number;
    }
  | {
      readonly type: "carried";
      readonly messageId: string;
      readonly swarm: string;
      readonly ok: boolean;
      readonly reason?: string;
      readonly contributors?: readonly string[];
    }
  | {
      readonly type: "manual_step";
      readonly agent: string;
      readonly payload: string;
      readonly reply: ManualReply;
    }
  /** A system message to one agent, or to all agents if none can be named (decision B16). */
  | { readonly type: "notify"; readonly agent?: string; readonly subject: string; readonly body: string }
  /** The swarm that owns an adopted task has ended it. It also ends here, without a further turn. */
  | {
      readonly type: "conclude";
      readonly message: MAILMessage;
      readonly status: "completed" | "cancelled";
      /** Swarms that the owner notifies. */
      readonly told?: readonly string[];
    }
  /**
   * An agent of another swarm answers the user that wrote to it. The last awaited answer completes the task. An answer
   * that no user waits for is only recorded.
   */
  | {
      readonly type: "reply_to_person";
      readonly message: MAILMessage;
      readonly contributors?: readonly string[];
    }
  /** Checks for requests that another swarm accepted and has not answered in time (decision E6). */
  | { readonly type: "reply_time" }
  /** A swarm says that it has nothing left to do for the task, so these requests will not be answered. */
  | { readonly type: "no_reply"; readonly swarm: string; readonly requestIds: readonly string[] }
  /** Events of another swarm that works on this task. Events that were already copied are skipped (decision E7). */
  | {
      readonly type: "copy_events";
      readonly swarm: string;
      readonly events: readonly Pick<RemoteEvent, "id" | "event" | "data">[];
    }
  /** The swarm's definition may have changed since the task last ran (decision B17). */
  | { readonly type: "redefine" };

export type RefusalCode =
  | "unknown_agent"
  | "not_entrypoint"
  | "mailbox_full"
  | "wrong_state"
  | "not_paused"
  | "missing_results"
  | "unknown_calls"
  | "stale_turn"
  | "stale_attempt"
  | "no_mail"
  | "not_manual"
  | "busy"
  | "bad_answer"
  | "already_ended"
  | "bad_approvers"
  | "forbidden"
  | "approval_needed";

/** Why the command was refused. No state changed. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export type Decision =
  | { readonly ok: true; readonly state: TaskState; readonly entries: readonly Entry[] }
  | { readonly ok: false; readonly refusal: Refusal };

export type { DecisionContext } from "../../journal/index.js";
