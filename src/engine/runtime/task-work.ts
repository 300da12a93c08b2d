/** What goes on in a task while it is in memory. Everything in here is lost with the process, and may be. */
import type { Kernel, Live, Unit } from "../../journal/kernel.js";
import type { TaskFacts, Turn } from "../agent.js";
import type { InstanceId, JournalKey } from "../ports.js";
import type { Mail, TaskState } from "../state.js";
import type { ActionOrder, TaskTypes } from "../task.js";
import type { Prepared } from "./deliveries.js";
import { taskChannel } from "./follow.js";
import type { Stopper } from "./stopper.js";

/** Mail to other swarms, as its carriers were asked when it was decided. */
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
  readonly mails: readonly [Mail, ...Mail[]];
  readonly stopper: Stopper;
  readonly attempt: number;
  /** What its instance had for it when it began. */
  readonly params: Turn["params"];
  /** What it has streamed of its answer and waits until the mail it works on is durable. */
  deltas: string | undefined;
}

/** What an agent is doing right now. One that does nothing is not listed. */
export type Doing =
  | RunningTurn
  /** Its function is called as soon as it is journaled that a turn is started again. */
  | { readonly kind: "starting" }
  /** Its answer is decided, and calls of it are being carried out. */
  | { readonly kind: "acting" };

export class TaskWork {
  readonly key: JournalKey;
  readonly instance: InstanceId;
  /** Asked for several times per message, so they are put together once. */
  readonly instanceKey: string;
  readonly channel: string;
  readonly facts: TaskFacts;
  readonly doing = new Map<string, Doing>();
  /** In the scheduler's queue. */
  queued = false;
  /** Counted among the tasks that run. */
  counted = false;
  /** Mail up to this number was there when the process started: a turn with it may have been what ended the last one. */
  recoveredUpTo = 0;
  /** Agents whose recovered turn was journaled as such since the start. */
  readonly recovered: Set<string>;
  /** Taken up after a crash: no turn runs ahead of the disk until one is durable, so that the right one is counted. */
  careful = false;
  cancelDeadline: (() => void) | undefined;
  /** When the next answer of another swarm is overdue, and what stops the watch for it. */
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
