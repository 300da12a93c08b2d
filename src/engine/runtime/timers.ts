/** What happens in a task when its time is up: its own, or that of an answer from another swarm. */
import type { Command } from "../commands.js";
import { nextReplyDue } from "../deciding/interswarm.js";
import type { Core } from "./core.js";
import type { LiveTask } from "./live-task.js";

export class Timers {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Starts the clock for a task that was opened, resumed or taken up. */
  setDeadline(task: LiveTask): void {
    task.cancelDeadline?.();
    task.cancelDeadline = undefined;
    const { deadline } = task.state;
    if (deadline === undefined) return;
    task.cancelDeadline = this.#at(deadline, () => {
      if (task.state.deadline === deadline) this.#core.apply(task, TIME_LIMIT);
    });
  }

  /** Decisions E6: wakes the task when an answer of another swarm is overdue. */
  watchReplies(task: LiveTask): void {
    const { state } = task;
    const due = state.status === "running" ? nextReplyDue(state, this.#core.limits.replyTime) : undefined;
    if (due === task.replyDue) return;
    task.cancelReply?.();
    task.cancelReply = undefined;
    task.replyDue = due;
    if (due === undefined) return;
    task.cancelReply = this.#at(due, () => {
      task.replyDue = undefined;
      if (this.#core.phase !== "open") return;
      this.#core.apply(task, REPLY_TIME);
      // A timer may fire a moment before the clock says so; then nothing was overdue, and the watch goes on.
      this.watchReplies(task);
    });
  }

  #at(time: number, callback: () => void): () => void {
    const { clock } = this.#core;
    return clock.after(Math.max(0, time - clock.now()), callback);
  }
}

const TIME_LIMIT: Command = { type: "time_limit" };
const REPLY_TIME: Command = { type: "reply_time" };
