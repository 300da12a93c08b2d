/** What happens in a task when its time is up: its own, or that of an answer from another swarm. */
import type { Clock } from "../../journal/ports.js";
import type { Command } from "../commands.js";
import { nextReplyDue } from "../deciding/interswarm.js";
import type { LiveTask, TaskKernel, TaskUnit } from "./task-work.js";

export class Timers {
  readonly #kernel: TaskKernel;
  readonly #clock: Clock;
  readonly #replyTime: number | undefined;

  constructor(kernel: TaskKernel, clock: Clock, replyTime: number | undefined) {
    this.#kernel = kernel;
    this.#clock = clock;
    this.#replyTime = replyTime;
  }

  react(live: LiveTask, { entries }: TaskUnit): void {
    for (const entry of entries) {
      if (entry.t === "opened") this.#setDeadline(live, entry.task.deadline);
      else if (entry.t === "resumed") this.#setDeadline(live, entry.deadline);
    }
    this.#watchReplies(live);
  }

  /** Starts the clocks of a task that was read from the store. */
  takeUp(live: LiveTask): void {
    if (live.state.status === "running") this.#setDeadline(live, live.state.deadline);
    this.#watchReplies(live);
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
    const due = state.status === "running" ? nextReplyDue(state, this.#replyTime) : undefined;
    if (due === work.replyDue) return;
    work.cancelReply?.();
    work.cancelReply = undefined;
    work.replyDue = due;
    if (due === undefined) return;
    work.cancelReply = this.#at(due, () => {
      work.replyDue = undefined;
      const live = this.#kernel.peek(key);
      if (live === undefined) return;
      // A timer may fire a moment before the clock says so; then nothing was overdue, and the watch goes on.
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

const REPLY_TIME: Command = { type: "reply_time" };
