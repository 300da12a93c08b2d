/**
 * The journal's vocabulary. An entry states a fact about one task; the list of them is the truth about it.
 *
 * What a version has written must load for ever: entries only ever gain optional fields, and a change of meaning
 * is a new kind of entry. `opened.v` names the vocabulary's version.
 */
import type { AgentToolCall } from "../mail/calls.js";
import type { MAILMessage } from "../mail/message.js";
import type { HoldReason, Usage } from "./agent.js";
import type { InstanceId } from "./ports.js";
import type { TurnError } from "./state.js";

export const JOURNAL_VERSION = 1;

/** Code of the failure of a task whose time is up. */
export const TASK_TIMEOUT = "task_timeout";

/** Milliseconds since the epoch, as handed in with the command. */
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
  /** Agents run only when told to (`manualStep`). */
  readonly manual?: true;
  readonly deadline?: number;
}

export type Opened = At & {
  readonly t: "opened";
  readonly v: number;
  readonly task: TaskHeader;
  /** Hash of the swarm definition the task was opened with. */
  readonly definition: string;
};

/** An ended or paused task goes on: steps count anew, what waited in mailboxes comes behind the user's mail. */
export type Resumed = At & {
  readonly t: "resumed";
  readonly deadline?: number;
  /** `null` lifts the limit; absent keeps it. */
  readonly maxSteps?: number | null;
};

/** How the text of a manual step is sent on. */
export interface ManualReply {
  readonly type: "broadcast" | "request" | "response";
  readonly targets: readonly string[];
}

/** A message entered the task: from a user, an agent, the system or another swarm. */
export type Sent = At & {
  readonly t: "sent";
  readonly message: MAILMessage;
  /** Local agents into whose mailbox it goes. */
  readonly to: readonly string[];
  /** Other swarms that it must reach; each is settled by one `carried` entry. */
  readonly remote?: readonly string[];
  /** The tool call that sent it; the entry is also that call's success. */
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
  /** Ids of those calls that wait for a person. */
  readonly breakpoints?: readonly string[];
  readonly usage?: Usage;
};

/** An agent took messages and failed: threw, ran out of time, was poisoned, or is gone. */
export type TurnFailed = At & {
  readonly t: "turn_failed";
  readonly agent: string;
  readonly took: readonly number[];
  readonly code: string;
  readonly message: string;
};

/** The result of a call that is not an action and sent no message. */
export type CallResult = At & {
  readonly t: "result";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** A person gave it. */
  readonly breakpoint?: true;
  /** The agent did something wrong: it is told so, in one message, when its turn ends. */
  readonly error?: TurnError["kind"];
  /** Ids of messages that leave the agent's memory (`ignore_broadcast`). */
  readonly hides?: readonly string[];
};

export type ActionStarted = At & {
  readonly t: "action_started";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly attempt: number;
};

export type ActionFinished = At & {
  readonly t: "action_finished";
  readonly agent: string;
  readonly call: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** The process died or the time was up in the middle: nobody knows whether it took effect. */
  readonly unknown?: true;
};

/** Calls of an agent wait for a person, or the agent for something that it needs; the task stands still. */
export type Paused = At & {
  readonly t: "paused";
  readonly agent: string;
  readonly calls: readonly AgentToolCall[];
  readonly message: MAILMessage;
  /** What the agent needs before it can take its turn; there are no calls then. */
  readonly reason?: HoldReason;
};

export type Completed = At & {
  readonly t: "completed";
  readonly message: MAILMessage;
  readonly call?: { readonly agent: string; readonly id: string; readonly name: string };
};

export type Failed = At & {
  readonly t: "failed";
  readonly code: string;
  readonly reason: string;
  readonly message: MAILMessage;
};

export type Cancelled = At & {
  readonly t: "cancelled";
  readonly by: string;
  readonly message: MAILMessage;
};

/** The limit of steps is reached: the entrypoint has one turn left, with message number `notice`. */
export type StepLimit = At & { readonly t: "step_limit"; readonly notice: number };

/** The entrypoint was told that nothing happens any more. */
export type Idle = At & { readonly t: "idle" };

/** A turn that was under way when the process died is about to be started again. */
export type Recovered = At & { readonly t: "recovered"; readonly agent: string };

/** A turn was under way when the process was closed in order: the next one starts it again, which is no recovery. */
export type Parked = At & { readonly t: "parked"; readonly agent: string };

/** A message was lent to the process that serves a remote agent. */
export type Lent = At & {
  readonly t: "lent";
  readonly agent: string;
  readonly number: number;
  readonly attempt: number;
};

export type Released = At & { readonly t: "released"; readonly agent: string; readonly attempt: number };

/** A message to another swarm was accepted there, or will never be. */
export type Carried = At & {
  readonly t: "carried";
  readonly message: string;
  readonly swarm: string;
  readonly ok: boolean;
  readonly reason?: string;
  /** Contributors that the other side made known. */
  readonly contributors?: readonly string[];
};

/** Another swarm did something for this task; its event as that swarm told it, copied once (decisions E7). */
export type RemoteEvent = At & {
  readonly t: "remote_event";
  readonly swarm: string;
  /** The event's id over there. */
  readonly id: string;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
};

export type Contributed = At & { readonly t: "contributed"; readonly contributors: readonly string[] };

/** Everything in an agent's memory up to and including `upTo` is replaced by a summary. */
export type Compacted = At & {
  readonly t: "compacted";
  readonly agent: string;
  readonly upTo: number;
  readonly summary: string;
};

/** The task goes on with another definition of the swarm than before. */
export type Redefined = At & { readonly t: "redefined"; readonly definition: string };

export type Entry =
  | Opened
  | Resumed
  | Sent
  | TurnTaken
  | TurnFailed
  | CallResult
  | ActionStarted
  | ActionFinished
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
  | Redefined;

export type EntryKind = Entry["t"];
