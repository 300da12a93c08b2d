/** What can be asked of a task, and what the answer looks like. */
import type { MAILMessage } from "../mail/message.js";
import type { AgentAnswer, HoldReason } from "./agent.js";
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

/** Puts a message from outside (a person, or an agent of another swarm) into a task. Makes an ended one go on. */
export interface PostMessage {
  readonly type: "post";
  readonly message: MAILMessage;
  readonly to: readonly string[];
  /** Other swarms that the message must reach. */
  readonly remote?: readonly string[];
  readonly resumeFrom?: "user_response";
  readonly maxSteps?: number | null;
  readonly contributors?: readonly string[];
  /** Whether mail from another swarm makes an ended task go on, as mail from a person always does. */
  readonly resumes?: boolean;
}

export interface BreakpointResult {
  readonly callId: string;
  readonly content: string;
}

/** Answers the calls that a paused task waits for. A lone `content` answers the only open call. */
export interface AnswerBreakpoint {
  readonly type: "answer_breakpoint";
  readonly results: readonly BreakpointResult[] | { readonly content: string };
  readonly caller?: string;
  readonly maxSteps?: number | null;
}

export interface AnswerTurn {
  readonly type: "answer";
  readonly agent: string;
  readonly took: readonly number[];
  readonly answer: AgentAnswer;
}

/** The answer of a remote agent to a message that was lent to it. */
export interface AnswerLent {
  readonly type: "answer_lent";
  readonly agent: string;
  /** Id of the MAIL message. */
  readonly messageId: string;
  readonly attempt: number;
  readonly answer: AgentAnswer;
}

export interface FailTurn {
  readonly type: "fail_turn";
  readonly agent: string;
  readonly took: readonly number[];
  readonly code: string;
  readonly message: string;
}

/** The agent cannot take its turn before something is there that it needs; its mail stays. */
export interface HoldTurn {
  readonly type: "hold_turn";
  readonly agent: string;
  readonly took: readonly number[];
  readonly reason: HoldReason;
  readonly message: string;
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
  | AnswerTurn
  | AnswerLent
  | FailTurn
  | HoldTurn
  /** What a held task needs may be there now: it goes on. */
  | { readonly type: "retry" }
  | FinishAction
  | { readonly type: "restart_action"; readonly agent: string; readonly callId: string }
  | { readonly type: "recover"; readonly agent: string; readonly took: readonly number[] }
  /** The process is being closed while this turn is under way. */
  | { readonly type: "park"; readonly agent: string; readonly took: readonly number[] }
  | { readonly type: "cancel"; readonly by: string }
  /** The runtime cannot go on with the task. */
  | { readonly type: "fail"; readonly code: string; readonly reason: string }
  /** The time is up that the task had until this deadline; it may have another one by now. */
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
  /** A word of the system to one agent, or to all where none can be named (decisions B16). */
  | { readonly type: "notify"; readonly agent?: string; readonly subject: string; readonly body: string }
  /** The swarm that owns an adopted task has ended it: it ends here, too, without anybody being asked. */
  | {
      readonly type: "conclude";
      readonly message: MAILMessage;
      readonly status: "completed" | "cancelled";
      /** Swarms that hear of it from the owner. */
      readonly told?: readonly string[];
    }
  /**
   * An agent of another swarm answers the person who wrote to it. The last answer awaited completes the task; what is
   * addressed to nobody who waits for it goes on record.
   */
  | {
      readonly type: "reply_to_person";
      readonly message: MAILMessage;
      readonly contributors?: readonly string[];
    }
  /** Looks for requests that another swarm accepted and has not answered in time (decisions E6). */
  | { readonly type: "reply_time" }
  /** What another swarm did for this task; events that were copied before are left out (decisions E7). */
  | {
      readonly type: "copy_events";
      readonly swarm: string;
      readonly events: readonly Pick<RemoteEvent, "id" | "event" | "data">[];
    }
  /** The swarm's definition may have changed since the task last ran (decisions B17). */
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
  | "already_ended";

/** Why nothing happened. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export type Decision =
  | { readonly ok: true; readonly state: TaskState; readonly entries: readonly Entry[] }
  | { readonly ok: false; readonly refusal: Refusal };

export type { Moment } from "../journal/aggregate.js";
