/**
 * What can sit behind an address, as the engine sees it: a function from a turn to an answer.
 * Function, scripted, model and remote agents are all made to fit this.
 */
import type { AgentToolCall } from "../mail/calls.js";
import type { MAILMessage } from "../mail/message.js";
import type { InstanceMemory } from "./memory.js";
import type { InstanceId } from "./ports.js";

/** One item of an agent's memory of a task, in the order in which it happened. */
export type HistoryItem =
  | { readonly kind: "message"; readonly number: number; readonly message: MAILMessage }
  | {
      readonly kind: "answer";
      readonly number: number;
      readonly text?: string;
      readonly reasoning?: string;
      readonly calls: readonly AgentToolCall[];
      /** What the agent's mind wants back with this answer (see `AgentAnswer.memo`). */
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
  /** Stands for everything up to its number that was compacted away (decisions B13). */
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

export interface TaskFacts {
  /** The caller's task id. */
  readonly id: string;
  /** The internal key: names the journal. */
  readonly key: string;
  readonly owner: string;
  readonly contributors: readonly string[];
  readonly entrypoint: string;
}

/** Another agent that an agent may write to. */
export interface Peer {
  /** As it is addressed: `weather`, or `weather@elsewhere`. */
  readonly address: string;
  readonly description?: string;
  /** Names of the actions that it can call. */
  readonly actions: readonly string[];
}

export interface Turn {
  readonly swarm: string;
  readonly agent: string;
  readonly task: TaskFacts;
  readonly instance: InstanceId;
  /** What this turn takes from the mailbox: one message, more after an interrupt or in a manual step. */
  readonly messages: readonly [MAILMessage, ...MAILMessage[]];
  /** The agent's memory of the task, the messages of this turn included. */
  readonly history: readonly HistoryItem[];
  /** Results of the calls of the agent's previous turn; empty if it made none. */
  readonly results: readonly ResultItem[];
  readonly tools: readonly OfferedTool[];
  readonly toolChoice: ToolChoice;
  /** Whom the agent may write to. */
  readonly peers: readonly Peer[];
  /** Values that belong to the caller's instance and live in memory only (its LLM token, for instance). */
  readonly params: Readonly<Record<string, unknown>>;
  /** 1, or more when the process died or was interrupted during this turn before. */
  readonly attempt: number;
  /** Aborts on interrupt, cancellation, time limit and shutdown. */
  readonly signal: AbortSignal;
  /** Streams a piece of the answer to those who watch the task. Neither journaled nor replayed. */
  emitDelta(delta: string): void;
}

export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cost?: number;
  readonly model?: string;
}

/**
 * What an agent did in its turn. `text` without calls is answered to the sender of the message (never broadcast
 * by accident); neither text nor calls is an error of the agent.
 */
export interface AgentAnswer {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls: readonly AgentToolCall[];
  readonly usage?: Usage;
  /**
   * JSON that comes back unchanged with this answer in later histories. A model's signed reasoning, for instance,
   * which its provider demands to see again.
   */
  readonly memo?: unknown;
  /** Replaces the history up to and including `upTo` by a summary, for agents with a bounded context. */
  readonly compaction?: { readonly upTo: number; readonly summary: string };
}

/** What a task can stand still for, other than a person's answer to a call. */
export type HoldReason = "credentials";

/**
 * Thrown by an agent that cannot take its turn before something is there that it needs. The turn has not failed: the
 * message stays where it is, and the task pauses with this reason until it is tried again (decisions H1).
 */
export class TurnHeldError extends Error {
  override readonly name = "TurnHeldError";
  readonly code = "turn_held";
  readonly reason: HoldReason;
  /** @param message what is missing and how it can be given, for the task's owner */
  constructor(reason: HoldReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export type AgentFunction = (turn: Turn) => AgentAnswer | Promise<AgentAnswer>;

export interface ActionContext {
  readonly swarm: string;
  readonly agent: string;
  readonly task: TaskFacts;
  readonly instance: InstanceId;
  /** The call's id in the journal. Agents choose it, so it is not unique. */
  readonly callId: string;
  /** Unique per task, turn and call, and the same on every attempt: hand it to the other side. */
  readonly idempotencyKey: string;
  /** 1, or more when an idempotent action is run again after a crash. */
  readonly attempt: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  /** What the task's instance keeps beyond the task; absent where the mailroom has no place for it. */
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
  /** A string is the result as it is; anything else is shown as JSON. A throw is a failed result. */
  run(args: unknown, context: ActionContext): unknown;
  /** May be run again with the same `idempotencyKey` when the process died in the middle (law 3). */
  readonly idempotent: boolean;
  /** Milliseconds; the runtime's default applies when absent. */
  readonly timeLimit?: number;
}
