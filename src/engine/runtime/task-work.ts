/** The running work of a task in memory. Losing it with the process is safe. */
import type { JournalKey, Kernel, Live, RowWrite, Unit } from "../../journal/index.js";
import type { TaskInfo, Turn, Usage } from "../agent.js";
import type { InstanceId } from "../ports.js";
import type { ActionOrder, TaskTypes } from "../task/aggregate.js";
import type { Command } from "../task/commands.js";
import type { MailboxItem, TaskState } from "../task/state.js";
import type { AbortHandle } from "./abort-handle.js";
import { taskChannel } from "./follow.js";
import type { TurnText } from "./turn-text.js";

export type Carried = Extract<Command, { type: "carried" }>;

export interface Prepared {
  /** To be committed together with the mail. */
  readonly rows: readonly RowWrite[];
  /** Results that are known at once: to be applied when the mail is durable. */
  readonly settled: readonly Carried[];
  /** To be called when the mail is durable. Does not throw. */
  wake(): void;
}

/** Mail to other swarms, prepared by its carriers when it was decided. */
export interface DeliveryOrder {
  readonly type: "delivery";
  readonly prepared: Prepared;
}

export type TaskOrder = ActionOrder | DeliveryOrder;

export type Tasks = TaskTypes<TaskOrder, TaskWork>;
export type LiveTask = Live<Tasks>;
export type TaskUnit = Unit<Tasks>;
export type TaskKernel = Kernel<Tasks>;

/** An agent's function is being called. */
export interface RunningTurn {
  readonly kind: "turn";
  readonly agent: string;
  readonly mails: readonly [MailboxItem, ...MailboxItem[]];
  readonly abortHandle: AbortHandle;
  readonly attempt: number;
  /** The caller's params when the turn started. */
  readonly params: Turn["params"];
  /** What it has streamed so far, if anything. */
  text: TurnText | undefined;
  /** As the agent reported it. */
  usage: Usage | undefined;
  /** Usage of attempts that were interrupted. */
  readonly usedBefore: Usage | undefined;
  /** Of these and of this attempt: what `usage` entries already have. */
  counted: Usage | undefined;
}

/** What an agent is doing. Idle agents are not listed. */
export type Doing =
  | RunningTurn
  /** Its function is called as soon as the restart of its turn is journaled. */
  | { readonly kind: "starting" }
  /** Its answer is decided, and its calls are being executed. */
  | { readonly kind: "acting" };

export class TaskWork {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  /** Read several times per message, so they are built once. */
  readonly instanceKey: string;
  readonly channel: string;
  readonly facts: TaskInfo;
  readonly doing = new Map<string, Doing>();
  /** In the scheduler's queue. */
  queued = false;
  /** Counted among the tasks that run. */
  counted = false;
  /** Characters of its journal that are counted. */
  countedSize = 0;
  /** Mail up to this number existed when the process started: a turn with it may have crashed the previous process. */
  recoveredUpTo = 0;
  /** Agents whose recovered turn was journaled as such since the start. */
  readonly recovered: Set<string>;
  /** Recovered after a crash: no turn runs ahead of the disk until one is durable, so that the right one is counted. */
  careful = false;
  cancelDeadline: (() => void) | undefined;
  /** When the next answer of another swarm is overdue, and the function that cancels its timer. */
  replyDue: number | undefined;
  cancelReply: (() => void) | undefined;

  constructor(state: TaskState, before?: TaskWork) {
    this.key = state.key;
    this.instance = state.instance;
    this.instanceKey = instanceKey(state.instance);
    this.channel = taskChannel(state.key);
    this.recovered = before?.recovered ?? new Set();
    this.facts = {
      id: state.taskId,
      key: state.key,
      owner: state.owner,
      get contributors() {
        return state.contributors;
      },
      get entrypoint() {
        return state.entrypoint;
      },
    };
    if (before === undefined) return;
    this.recoveredUpTo = before.recoveredUpTo;
    this.careful = before.careful;
  }

  cancelTimers(): void {
    this.cancelDeadline?.();
    this.cancelReply?.();
    this.cancelDeadline = undefined;
    this.cancelReply = undefined;
    this.replyDue = undefined;
  }
}

export function instanceKey({ role, id }: InstanceId): string {
  return `${role}:${id}`;
}
