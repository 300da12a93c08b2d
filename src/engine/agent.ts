/**
 * The interface of agents and actions: an agent is a function from a turn to its result. Function, scripted and model
 * agents all implement it.
 */
import { MailroomError } from "../base/index.js";
import type { AgentToolCall, MAILMessage } from "../mail/index.js";
import type { InstanceMemory } from "./key-value.js";
import type { InstanceId } from "./ports.js";
import type { ReachedLimit, Usage } from "./usage.js";

export type { FailedCall, Usage } from "./usage.js";

/** One item of an agent's memory of a task, in the order in which it happened. */
export type HistoryItem =
  | { readonly kind: "message"; readonly number: number; readonly message: MAILMessage }
  | {
      readonly kind: "answer";
      readonly number: number;
      readonly text?: string;
      readonly reasoning?: string;
      readonly calls: readonly AgentToolCall[];
      /** Returned unchanged with this answer (see `TurnResult.memo`). */
      readonly memo?: unknown;
    }
  | {
      readonly kind: "result";
      readonly number: number;
      readonly callId: string;
      readonly name: string;
      readonly ok: boolean;
      readonly content: string;
    }
  /** Replaces everything up to its number that was compacted away (decision B13). */
  | { readonly kind: "summary"; readonly number: number; readonly text: string };

export type ResultItem = Extract<HistoryItem, { kind: "result" }>;

/** A tool as offered to an agent; `toolSpec` of `mail/` turns it into either provider style. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What the agent is expected to do with its tools in this turn. */
export type ToolChoice = "required" | "auto" | { readonly name: string };

export interface TaskInfo {
  /** The caller's task id. */
  readonly id: string;
  /** The internal key: names the journal. */
  readonly key: string;
  readonly owner: string;
  readonly contributors: readonly string[];
  readonly entrypoint: string;
}

/** Another agent that an agent may write to. */
export interface CommTarget {
  /** As it is addressed: `weather`, or `weather@elsewhere`. */
  readonly address: string;
  readonly description?: string;
  /** Names of the actions that it can call. */
  readonly actions: readonly string[];
}

/** One turn of an agent: the mail it took, its history, its tools and what it may write to. */
export interface Turn {
  readonly swarm: string;
  readonly agent: string;
  readonly task: TaskInfo;
  readonly instance: InstanceId;
  /** The messages of this turn: one, or several after an interrupt or in a manual step. */
  readonly messages: readonly [MAILMessage, ...MAILMessage[]];
  /** The agent's memory of the task, the messages of this turn included. */
  readonly history: readonly HistoryItem[];
  /** Results of the calls of the agent's previous turn; empty if it made none. */
  readonly results: readonly ResultItem[];
  /** The tools that this turn may use. */
  readonly tools: readonly OfferedTool[];
  /**
   * All tools of the agent. The same in every turn, because providers bind a model's reasoning to the tools that it was
   * offered; `toolChoice` says which ones this turn may use.
   */
  readonly allTools: readonly OfferedTool[];
  readonly toolChoice: ToolChoice;
  /** Agents that this agent may write to. */
  readonly peers: readonly CommTarget[];
  /** Values that belong to the caller's instance and live in memory only (its LLM token, for instance). */
  readonly params: Readonly<Record<string, unknown>>;
  /** 1, or more when the process died or was interrupted during this turn before. */
  readonly attempt: number;
  /** Aborts on interrupt, cancellation, time limit and shutdown. */
  readonly signal: AbortSignal;
  /**
   * Streams a piece of the answer to clients that follow the task. Neither journaled nor replayed.
   * @param call the call whose answer it is; without it, the agent's own text
   */
  emitDelta(delta: string, call?: StreamedCall): void;
  /** Declares the pieces so far invalid: the answer begins again. */
  resetDeltas(): void;
  /** Reports the usage of the turn so far. Journaled with the turn, unless its answer has a `usage` of its own. */
  reportUsage(usage: Usage): void;
  /**
   * Asks to call a model. Where a budget applies, the call is counted durably before this resolves, so that no crash
   * makes it free.
   * @throws TurnHeldError `budget` when a limit is reached: the agent must pass it on
   */
  beginCall(call: PlannedCall): Promise<void>;
}

/** A model call that is about to start. */
export interface PlannedCall {
  readonly model: string;
  /** An estimate. It counts until the call has ended, and stays if its end is never known. */
  readonly inputTokens: number;
  /** Of the input. Absent if the model has no price. */
  readonly cost?: number;
}

/** A call that an agent is writing. */
export interface StreamedCall {
  readonly id: string;
  /** Of the tool, such as `task_complete`. */
  readonly name: string;
}

/** What the model calls of a turn cost. */
export function sumOf(first: Usage, second: Usage = {}): Usage {
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {};
  for (const key of ["calls", "inputTokens", "outputTokens", "cachedInputTokens", "cost"] as const) {
    const value = (first[key] ?? 0) + (second[key] ?? 0);
    if (first[key] !== undefined || second[key] !== undefined) sum[key] = value;
  }
  const model = second.model ?? first.model;
  const failures = [...(first.failures ?? []), ...(second.failures ?? [])];
  const estimated = first.estimated === true || second.estimated === true;
  return {
    ...sum,
    ...(model !== undefined && { model }),
    ...(estimated && { estimated }),
    ...(failures.length > 0 && { failures }),
  };
}

/**
 * What an agent did in its turn. `text` without calls is answered to the sender of the message (never broadcast
 * by accident); neither text nor calls is an error of the agent.
 */
export interface TurnResult {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls: readonly AgentToolCall[];
  readonly usage?: Usage;
  /**
   * JSON that comes back unchanged with this answer in later histories. A model's signed reasoning, for instance,
   * which its provider requires in later calls.
   */
  readonly memo?: unknown;
  /** Replaces the history up to and including `upTo` by a summary, for agents with a bounded context. */
  readonly compaction?: Compaction;
}

export interface Compaction {
  readonly upTo: number;
  readonly summary: string;
  /** Ids of messages that stay as they are, such as the request that the agent works on. */
  readonly keep?: readonly string[];
}

/** Why a task can be paused, other than for a breakpoint. */
export type HoldReason = "credentials" | "budget";

/**
 * Thrown by an agent that cannot take its turn yet because something is missing. The turn has not failed: the message
 * stays in the mailbox, and the task pauses with this reason until it is retried (decision H1).
 * @example
 * throw new TurnHeldError("credentials", "set OPENAI_API_KEY and retry the task");
 */
export class TurnHeldError extends MailroomError<"turn_held"> {
  override readonly name = "TurnHeldError";
  readonly reason: HoldReason;
  /** The limit that is reached. The runtime names it for the reason `budget`. */
  readonly limit: ReachedLimit | undefined;
  /** @param message what is missing and how to supply it, for the task's owner */
  constructor(reason: HoldReason, message: string, limit?: ReachedLimit) {
    super("turn_held", message);
    this.reason = reason;
    this.limit = limit;
  }
}

/** An agent as a function: it gets a turn and returns what to send. See `MailFunction` for a simpler form. */
export type AgentFunction = (turn: Turn) => TurnResult | Promise<TurnResult>;

/** What an action is called with, beside its arguments. */
export interface ActionContext {
  readonly swarm: string;
  readonly agent: string;
  readonly task: TaskInfo;
  readonly instance: InstanceId;
  /** The call's id in the journal. Agents choose it, so it is not unique. */
  readonly callId: string;
  /** Unique per task, turn and call, and the same on every attempt: hand it to the other side. */
  readonly idempotencyKey: string;
  /** 1, or more when an idempotent action is run again after a crash. */
  readonly attempt: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  /** The key-value memory of the task's instance; absent if the mailroom has none. */
  readonly memory?: InstanceMemory;
}

export type ArgumentCheck =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** An action as the runtime needs it. `defineAction` makes one from a schema and a function. */
export interface Action {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, offered to agents as it is. */
  readonly parameters: Readonly<Record<string, unknown>>;
  check(args: Readonly<Record<string, unknown>>): ArgumentCheck | Promise<ArgumentCheck>;
  /** A string is the result itself; any other value is shown as JSON. If it throws, the result is a failure. */
  run(args: unknown, context: ActionContext): unknown;
  /** May be run again with the same `idempotencyKey` if the process died while it ran (law 4). */
  readonly idempotent: boolean;
  /** Milliseconds; the runtime's default applies when absent. */
  readonly timeLimit?: number;
  /** `false`: never runs beside another action of the same answer. */
  readonly parallel?: boolean;
  /** Which calls a person must approve before they run: all of them, or those for which it returns true. */
  readonly approval?: boolean | ApprovalPredicate;
  /** Milliseconds after which an approval can no longer be given; the runtime's default applies when absent. */
  readonly approvalTimeout?: number;
}

/** Receives the checked arguments. If it throws, the call needs approval. */
export type ApprovalPredicate = (args: unknown, context: ApprovalContext) => boolean | Promise<boolean>;

/** What the predicate of `approval` is called with, beside the arguments. */
export type ApprovalContext = Pick<ActionContext, "swarm" | "agent" | "task" | "instance" | "callId">;
