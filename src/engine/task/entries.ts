/**
 * The entries of a task's journal. Each states a fact about one task; together they are the only source of its state.
 *
 * Entries of every earlier version must load: entries only gain optional fields, and a change of meaning is a new kind
 * of entry. `opened.v` is the version of the format.
 */
import type { AgentToolCall, MAILMessage } from "../../mail/index.js";
import type { HoldReason, Usage } from "../agent.js";
import type { InstanceId } from "../ports.js";
import type { BudgetChange, BudgetLimits, ReachedLimit } from "../usage.js";

export const JOURNAL_VERSION = 1;

/** The failure code of a task that exceeded its time limit. */
export const TASK_TIMEOUT = "task_timeout";

/** Milliseconds since the epoch, from the decision context. */
type At = { readonly at: number };

export interface TaskHeader {
  readonly key: string;
  readonly instance: InstanceId;
  readonly taskId: string;
  readonly swarm: string;
  readonly owner: string;
  readonly contributors: readonly string[];
  readonly entrypoint: string;
  /** Absent: no limit. */
  readonly maxSteps?: number;
  /** Agents run only on request (`manualStep`). */
  readonly manual?: true;
  readonly deadline?: number;
  /** Limits that the owner set. */
  readonly budget?: BudgetLimits;
}

/** The task was opened: its owner, its entrypoint and its limits. */
export type Opened = At & {
  readonly t: "opened";
  readonly v: number;
  readonly task: TaskHeader;
  /** Hash of the swarm definition the task was opened with. */
  readonly definition: string;
};

/** An ended or paused task was resumed. The step count restarts, and waiting mail is placed behind the user's mail. */
export type Resumed = At & {
  readonly t: "resumed";
  readonly deadline?: number;
  /** `null` lifts the limit; absent keeps it. */
  readonly maxSteps?: number | null;
};

/** A problem in a turn. The agent receives it when the turn ends. */
export interface TurnError {
  readonly kind: "recipient" | "user_recipient" | "tool" | "action";
  readonly text: string;
}

/** How the text of a manual step is sent. */
export interface ManualReply {
  readonly type: "broadcast" | "request" | "response";
  readonly targets: readonly string[];
}

/** A message entered the task: from a user, an agent, the system or another swarm. */
export type Sent = At & {
  readonly t: "sent";
  readonly message: MAILMessage;
  /** Local agents that receive it. */
  readonly to: readonly string[];
  /** Other swarms that must receive it. One `carried` entry settles each of them. */
  readonly remote?: readonly string[];
  /** The tool call that sent it. The entry is also the successful result of that call. */
  readonly call?: { readonly agent: string; readonly id: string; readonly name: string };
  readonly manual?: ManualReply;
};

/** An agent took messages from its mailbox and answered. */
export type TurnTaken = At & {
  readonly t: "turn";
  readonly agent: string;
  /** Journal numbers of the messages taken. */
  readonly took: readonly number[];
  readonly calls: readonly AgentToolCall[];
  readonly text?: string;
  readonly reasoning?: string;
  readonly memo?: unknown;
  /** Ids of the calls that wait for a user. */
  readonly breakpoints?: readonly string[];
  /** Ids of the calls that a person must approve before they run. */
  readonly approvals?: readonly string[];
  readonly usage?: Usage;
  /** The part of the usage that earlier `usage` entries have. */
  readonly counted?: Usage;
};

/** An agent took messages and failed: it threw, timed out, crashed the process too often, or was removed. */
export type TurnFailed = At & {
  readonly t: "turn_failed";
  readonly agent: string;
  readonly took: readonly number[];
  readonly code: string;
  readonly message: string;
  readonly usage?: Usage;
  readonly counted?: Usage;
};

/** The result of a call that is not an action and sent no message. */
export type CallResult = At & {
  readonly t: "result";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** A user supplied it. */
  readonly breakpoint?: true;
  /** The principal that gave it, such as `user:bob`. */
  readonly by?: string;
  /** The agent's mistake. All mistakes of a turn are reported to the agent in one message when the turn ends. */
  readonly error?: TurnError["kind"];
  /** Ids of messages that leave the agent's memory (`ignore_broadcast`). */
  readonly hides?: readonly string[];
};

/** An action is about to run. Durable before it does (law 4). */
export type ActionStarted = At & {
  readonly t: "action_started";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly attempt: number;
};

/** An action ended, with its result. */
export type ActionFinished = At & {
  readonly t: "action_finished";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** The process died or the time limit passed while it ran: whether it took effect is unknown. */
  readonly unknown?: true;
};

/** A call reached its turn to run and waits for approval. */
export type ApprovalAsked = At & {
  readonly t: "approval_asked";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** When the approval can no longer be given. */
  readonly expires?: number;
};

/** A waiting call was decided. An approved one then runs; the result of any other follows. */
export type ApprovalAnswered = At & {
  readonly t: "approval_answered";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly decision: "approved" | "rejected" | "expired";
  /** `role:id` of the person that decided, if not the owner's own instance. */
  readonly by?: string;
  /** The arguments with which it runs, if they were changed. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
};

/** The task was paused: calls of an agent wait for a user, or the agent lacks something that it needs. */
export type Paused = At & {
  readonly t: "paused";
  readonly agent: string;
  readonly calls: readonly AgentToolCall[];
  readonly message: MAILMessage;
  /** The calls of the task that wait for approval. `calls` is then empty. */
  readonly approvals?: readonly AgentToolCall[];
  /** What the agent needs before it can take its turn. `calls` is then empty. */
  readonly reason?: HoldReason;
  /** With the reason `budget`: the limit that is reached. */
  readonly limit?: ReachedLimit;
  /** Of the turn that could not continue. */
  readonly usage?: Usage;
  readonly counted?: Usage;
};

/** An agent completed the task. */
export type Completed = At & {
  readonly t: "completed";
  readonly message: MAILMessage;
  readonly call?: { readonly agent: string; readonly id: string; readonly name: string };
};

/** The task failed. A later message resumes it. */
export type Failed = At & {
  readonly t: "failed";
  readonly code: string;
  readonly reason: string;
  readonly message: MAILMessage;
};

/** A user or an admin cancelled the task. */
export type Cancelled = At & {
  readonly t: "cancelled";
  readonly by: string;
  readonly message: MAILMessage;
};

/** The step limit was reached. The entrypoint has one turn left, with message number `notice`. */
export type StepLimit = At & { readonly t: "step_limit"; readonly notice: number };

/** The entrypoint was notified that the task is idle. */
export type Idle = At & { readonly t: "idle" };

/** A turn that was running when the process died is about to start again. */
export type Recovered = At & {
  readonly t: "recovered";
  readonly agent: string;
  /** Of the first message that the turn takes. Journals of earlier versions do not have it. */
  readonly number?: number;
};

/** A turn was running at an orderly shutdown. The next process starts it again, which does not count as a recovery. */
export type Parked = At & { readonly t: "parked"; readonly agent: string };

/** A message was lent to the process that serves a remote agent. */
export type Lent = At & {
  readonly t: "lent";
  readonly agent: string;
  readonly number: number;
  readonly attempt: number;
};

/** A lent message was returned, and waits in the mailbox again. */
export type Released = At & { readonly t: "released"; readonly agent: string; readonly attempt: number };

/** A message to another swarm was accepted, or certainly never will be. */
export type Carried = At & {
  readonly t: "carried";
  readonly message: string;
  readonly swarm: string;
  readonly ok: boolean;
  readonly reason?: string;
  /** Contributors that the other swarm reported. */
  readonly contributors?: readonly string[];
};

/** An event of another swarm that works on this task, as that swarm sent it, copied once (decision E7). */
export type RemoteEvent = At & {
  readonly t: "remote_event";
  readonly swarm: string;
  /** The event's id in the other swarm. */
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** Others take part in the task from now on. */
export type Contributed = At & { readonly t: "contributed"; readonly contributors: readonly string[] };

/** Everything in an agent's memory up to and including `upTo` is replaced by a summary. */
export type Compacted = At & {
  readonly t: "compacted";
  readonly agent: string;
  readonly upTo: number;
  readonly summary: string;
  /** Ids of messages that stay. */
  readonly keep?: readonly string[];
};

/** Who may answer for the owner from now on: principals (`user:bob`) and roles (`admin`). */
export type ApproversNamed = At & {
  readonly t: "approvers";
  readonly approvers: readonly string[];
  /** The principal that named them. */
  readonly by: string;
};

/**
 * Model calls that no other entry has: of a turn that was stopped, or, with `begun`, a call that is about to start, by
 * estimate. The entry that ends the turn names the estimates that it replaces (`counted`).
 */
export type UsageCounted = At & {
  readonly t: "usage";
  readonly agent: string;
  readonly usage: Usage;
  readonly counted?: Usage;
  readonly begun?: true;
};

/**
 * New limits of the task. Those of an admin replace the configured ones (`null`: no limit); those of the owner apply
 * beside them.
 */
export type BudgetSet = At & {
  readonly t: "budget";
  readonly limits: BudgetChange;
  /** By agent: limits for what it uses in this task, by an admin. */
  readonly agents?: Readonly<Record<string, BudgetChange>>;
  /** The principal that set them. */
  readonly by: string;
  readonly admin?: true;
};

/** The task continues with a changed swarm definition. */
export type Redefined = At & { readonly t: "redefined"; readonly definition: string };

/** One fact in the journal of a task: see `docs/events.md`. */
export type Entry =
  | Opened
  | Resumed
  | Sent
  | TurnTaken
  | TurnFailed
  | CallResult
  | ActionStarted
  | ActionFinished
  | ApprovalAsked
  | ApprovalAnswered
  | Paused
  | Completed
  | Failed
  | Cancelled
  | StepLimit
  | Idle
  | Recovered
  | Parked
  | Lent
  | Released
  | Carried
  | RemoteEvent
  | Contributed
  | Compacted
  | ApproversNamed
  | UsageCounted
  | BudgetSet
  | Redefined;

export type EntryKind = Entry["t"];
