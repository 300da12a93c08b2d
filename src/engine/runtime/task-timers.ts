/** The timeouts of a task: its own, and those of answers from other swarms. */
import type { Clock } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { Command } from "../task/commands.js";
import { nextReplyDue, type ReplyLimits } from "../task/decide/interswarm.js";
import type { TaskState } from "../task/state.js";
import type { LiveTask, TaskKernel, TaskUnit } from "./task-work.js";

export class TaskTimers {
  readonly #kernel: TaskKernel;
  readonly #clock: Clock;
  readonly #limits: ReplyLimits;
  /** When the next approval of a task expires. Kept also for tasks that left memory. */
  readonly #approvals = new Map<JournalKey, { readonly due: number; readonly cancel: () => void }>();

  constructor(kernel: TaskKernel, clock: Clock, limits: ReplyLimits) {
    this.#kernel = kernel;
    this.#clock = clock;
    this.#limits = limits;
  }

  react(live: LiveTask, { entries }: TaskUnit): void {
    for (const entry of entries) {
      if (entry.t === "opened") this.#setDeadline(live, entry.task.deadline);
      else if (entry.t === "resumed") this.#setDeadline(live, entry.deadline);
    }
    this.#watchReplies(live);
    this.#watchApprovals(live);
  }

  /** Starts the timers of a task that was read from the store. */
  resume(live: LiveTask): void {
    if (live.state.status === "running") this.#setDeadline(live, live.state.deadline);
    this.#watchReplies(live);
    this.#watchApprovals(live);
  }

  /** The task was removed. */
  forget(key: JournalKey): void {
    this.#approvals.get(key)?.cancel();
    this.#approvals.delete(key);
  }

  stop(): void {
    for (const key of [...this.#approvals.keys()]) this.forget(key);
  }

  #watchApprovals({ key, state }: LiveTask): void {
    const due = nextExpiry(state);
    if (due === this.#approvals.get(key)?.due) return;
    this.forget(key);
    if (due === undefined) return;
    const cancel = this.#at(due, () => {
      this.#approvals.delete(key);
      const again = () => {
        const live = this.#kernel.peek(key);
        if (live !== undefined) this.#watchApprovals(live);
      };
      this.#kernel.submit(key, APPROVAL_TIME, { own: true, done: again });
    });
    this.#approvals.set(key, { due, cancel });
  }

  #setDeadline({ key, work }: LiveTask, deadline: number | undefined): void {
    work.cancelDeadline?.();
    work.cancelDeadline = undefined;
    if (deadline === undefined) return;
    work.cancelDeadline = this.#at(deadline, () => {
      const live = this.#kernel.peek(key);
      if (live !== undefined) this.#kernel.apply(live, { type: "time_limit", deadline }, { own: true });
    });
  }

  /** Wakes the task when an answer of another swarm is overdue. */
  #watchReplies({ key, state, work }: LiveTask): void {
    const due = state.status === "running" ? nextReplyDue(state, this.#limits) : undefined;
    if (due === work.replyDue) return;
    work.cancelReply?.();
    work.cancelReply = undefined;
    work.replyDue = due;
    if (due === undefined) return;
    work.cancelReply = this.#at(due, () => {
      work.replyDue = undefined;
      const live = this.#kernel.peek(key);
      if (live === undefined) return;
      // A timer can fire slightly before the clock reaches its time; then nothing is overdue, and the timer is set again.
      const done = () => {
        if (!live.gone && live.work === work) this.#watchReplies(live);
      };
      this.#kernel.apply(live, REPLY_TIME, { own: true, done });
    });
  }

  #at(time: number, callback: () => void): () => void {
    return this.#clock.after(Math.max(0, time - this.#clock.now()), callback);
  }
}

function nextExpiry(state: TaskState): number | undefined {
  let next: number | undefined;
  for (const { turn } of state.agents.values()) {
    for (const { expires } of turn?.asked ?? []) {
      if (expires !== undefined && (next === undefined || expires < next)) next = expires;
    }
  }
  return next;
}

const REPLY_TIME: Command = { type: "reply_time" };
const APPROVAL_TIME: Command = { type: "approval_time" };
