/** The kernel's callbacks: prepare the rows and orders of a decision, and start and stop the work of tasks in memory. */
import type { Loop, RowWrite } from "../../journal/index.js";
import type { RuntimeLimits } from "../settings.js";
import { actionOrders, rowAfter, type TaskStats } from "../task/aggregate.js";
import { awaitedSwarms } from "../task/decide/interswarm.js";
import { type Entry, TASK_TIMEOUT } from "../task/entries.js";
import type { ActionRunner } from "./action-runner.js";
import type { Budgets } from "./budgets.js";
import type { Eviction } from "./eviction.js";
import type { HeldTasks } from "./held-tasks.js";
import type { IdleWaiter } from "./idle-waiter.js";
import { type OutboundMail, outgoing } from "./outbound-mail.js";
import type { RuntimePhase } from "./phase.js";
import type { RemoteMailboxes } from "./remote.js";
import type { RunningTaskLimits } from "./running-task-limits.js";
import type { Scheduler } from "./scheduler.js";
import type { TaskNames } from "./task-names.js";
import type { TaskTimers } from "./task-timers.js";
import { type LiveTask, type TaskKernel, type TaskOrder, type TaskUnit, TaskWork } from "./task-work.js";
import type { Turns } from "./turns.js";

export interface TaskLifecycleParts {
  readonly kernel: TaskKernel;
  readonly loop: Loop;
  readonly limits: RuntimeLimits;
  readonly phase: RuntimePhase;
  readonly idle: IdleWaiter;
  readonly names: TaskNames;
  readonly taskLimits: RunningTaskLimits;
  readonly scheduler: Scheduler<TaskWork>;
  readonly turns: Turns;
  readonly actionRunner: ActionRunner;
  readonly outboundMail: OutboundMail;
  readonly heldTasks: HeldTasks;
  readonly budgets: Budgets;
  readonly timers: TaskTimers;
  readonly remote: RemoteMailboxes;
  readonly eviction: Eviction;
}

const NO_ROWS: readonly RowWrite[] = [];
const NO_ORDERS: readonly TaskOrder[] = [];

export class TaskLifecycle {
  readonly #parts: TaskLifecycleParts;

  constructor(parts: TaskLifecycleParts) {
    this.#parts = parts;
  }

  prepare(
    live: LiveTask,
    entries: readonly Entry[],
    first: number,
    before: TaskStats | undefined,
  ): { readonly rows: readonly RowWrite[]; readonly orders: readonly TaskOrder[] } {
    let rows = NO_ROWS;
    let orders = NO_ORDERS;
    // The command that opens a task brings the row itself, because it has the title.
    if (before !== undefined && live.latest !== undefined) {
      const row = rowAfter(live.state, live.latest, before);
      if (row !== undefined) rows = [row];
    }
    const used = this.#parts.budgets.rowsOf(live.state, entries);
    if (used.length > 0) rows = [...rows, ...used];
    for (const entry of entries) {
      if (entry.t === "action_started") orders = [...orders, ...actionOrders(live.state, [entry], first)];
      else if (entry.t === "sent" && entry.remote !== undefined) {
        const mails = entry.remote.map((swarm) =>
          outgoing(live.state, live.work.facts, entry.message, swarm),
        );
        const prepared = this.#parts.outboundMail.prepare(mails);
        rows = [...rows, ...prepared.rows];
        orders = [...orders, { type: "delivery", prepared }];
      }
      first++;
    }
    return { rows, orders };
  }

  attach(live: LiveTask, from: "opened" | "stored"): TaskWork {
    const { state } = live;
    const before = from === "stored" && live.hasWork ? live.work : undefined;
    const work = new TaskWork(state, before);
    if (from === "stored" && before === undefined && state.status === "running") {
      work.recoveredUpTo = state.number;
      work.careful = true;
      // An agent with unfinished calls takes no mail: none of its waiting mail was part of a turn.
      for (const [agent, { turn }] of state.agents) if (turn !== undefined) work.recovered.add(agent);
    }
    work.counted = before?.counted ?? false;
    work.countedSize = before?.countedSize ?? 0;
    this.#parts.names.add(state);
    this.#count(live, work);
    return work;
  }

  resume(live: LiveTask): void {
    const { kernel, heldTasks, turns, actionRunner, timers, outboundMail, remote, phase } = this.#parts;
    const { state, work } = live;
    heldTasks.note(live.key, work.instanceKey, state.held);
    if (state.status === "running") kernel.apply(live, { type: "redefine" }, { own: true });
    turns.resume(live);
    actionRunner.resume(live);
    timers.resume(live);
    if (state.outbound.length > 0) {
      outboundMail.resume(
        state.outbound.map(({ message, swarm }) => outgoing(state, work.facts, message, swarm)),
      );
    }
    outboundMail.await(live.key, awaitedSwarms(state));
    remote.react(live);
    if (phase.current === "closing") turns.park(live);
  }

  suspend(live: LiveTask): void {
    live.work.cancelTimers();
    this.#parts.turns.suspend(live);
  }

  detach(live: LiveTask, why: "evicted" | "removed" | "missing" | "closed"): void {
    const { taskLimits, names, eviction, remote, heldTasks, timers, idle } = this.#parts;
    const { work, state, key } = live;
    this.suspend(live);
    if (work.counted) taskLimits.count(work.instanceKey, { tasks: -1, size: -work.countedSize });
    work.counted = false;
    work.countedSize = 0;
    names.remove(state);
    eviction.forget(key);
    remote.withdraw(key, "gone");
    // Held tasks are retried even if they are not in memory.
    if (why !== "evicted") {
      heldTasks.note(key, work.instanceKey, undefined);
      timers.forget(key);
    }
    idle.check();
  }

  /** At decide time: nothing here may leave the process. */
  decided(live: LiveTask, { entries }: TaskUnit): void {
    const { turns, scheduler, eviction, limits, phase } = this.#parts;
    const { state, work } = live;
    eviction.forget(live.key);
    for (const entry of entries) {
      switch (entry.t) {
        case "sent":
          if (entry.message.msg_type === "interrupt") turns.interrupt(live, entry.to, "decided");
          break;
        case "cancelled":
          turns.stopAll(live, "cancelled");
          break;
        case "failed":
          if (entry.code === TASK_TIMEOUT) turns.stopAll(live, "task_time_limit");
          break;
        case "opened":
        case "resumed":
          // Turns that start from here on were not running when the process started.
          work.recoveredUpTo = 0;
          work.careful = false;
          turns.resume(live);
          break;
        case "approval_answered":
          turns.resume(live);
          break;
        default:
          break;
      }
    }
    this.#count(live, work);
    turns.settle(live);
    if (state.status === "running") {
      scheduler.offer(work);
      if (live.size > limits.taskBytes) this.#failTooLarge(live);
      if (phase.parking) this.#parkSoon(live);
    }
  }

  idle(live: LiveTask): void {
    const { idle, scheduler, eviction } = this.#parts;
    idle.check();
    if (live.state.status === "running") scheduler.offer(live.work);
    else eviction.consider(live.key);
  }

  /** Mail that arrives at the very end waits for the next process. */
  #parkSoon(live: LiveTask): void {
    const { loop, turns } = this.#parts;
    loop.micro(() => {
      if (!live.gone) turns.park(live);
    });
  }

  #failTooLarge(live: LiveTask): void {
    const { limits, loop, kernel } = this.#parts;
    const reason = `the task's journal is larger than ${limits.taskBytes} characters`;
    // After the current decision.
    loop.micro(() => {
      if (!live.gone) kernel.apply(live, { type: "fail", code: "too_large", reason }, { own: true });
    });
  }

  #count({ state: { status }, size }: LiveTask, work: TaskWork): void {
    const runs = status === "running";
    const counted = runs ? size : 0;
    if (runs === work.counted && counted === work.countedSize) return;
    const tasks = Number(runs) - Number(work.counted);
    this.#parts.taskLimits.count(work.instanceKey, { tasks, size: counted - work.countedSize });
    work.counted = runs;
    work.countedSize = counted;
  }
}
