/** Runs the actions whose start is journaled, and takes up those that were under way when the process died (law 3). */
import { type KeyValueMemory, memoryOf } from "../memory.js";
import { type ActionOverride, OUTCOME_UNKNOWN, runAction } from "./actions.js";
import type { Core } from "./core.js";
import type { Equipment } from "./equipment.js";
import type { LiveTask } from "./live-task.js";
import type { Scheduler } from "./scheduler.js";
import { Stopper } from "./stopper.js";

export class ActionRunner {
  readonly #core: Core;
  readonly #equipment: Equipment;
  readonly #scheduler: Pick<Scheduler, "occupy">;
  readonly #override: ActionOverride | undefined;
  readonly #memory: KeyValueMemory | undefined;
  readonly #underWay = new Set<Promise<void>>();

  constructor(parts: {
    core: Core;
    equipment: Equipment;
    scheduler: Pick<Scheduler, "occupy">;
    override: ActionOverride | undefined;
    memory: KeyValueMemory | undefined;
  }) {
    this.#core = parts.core;
    this.#equipment = parts.equipment;
    this.#scheduler = parts.scheduler;
    this.#override = parts.override;
    this.#memory = parts.memory;
  }

  /** Fulfilled when all that run now have ended. Each has its time limit. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Runs the action that the agent's turn stands at. */
  run(task: LiveTask, agent: string): void {
    const running = task.state.agents.get(agent)?.turn?.running;
    if (running === undefined || task.actions.has(running.call.id) || this.#core.phase === "closed") return;
    const { call, attempt } = running;
    const action = this.#equipment.action(call.name);
    const stopper = new Stopper();
    task.actions.set(call.id, { agent, callId: call.id, stopper });
    this.#scheduler.occupy(task, agent);
    const { state } = task;
    const run = runAction({
      action,
      call,
      context: {
        swarm: state.swarm,
        agent,
        task: task.facts,
        instance: state.instance,
        callId: call.id,
        attempt,
        params: this.#core.paramsOf(state.instance),
        ...(this.#memory !== undefined && { memory: memoryOf(this.#memory, state.instance) }),
        get signal() {
          return stopper.signal;
        },
      },
      stopper,
      clock: this.#core.clock,
      timeLimit: action?.timeLimit ?? this.#core.limits.actionTime,
      resultLength: this.#core.limits.resultLength,
      override: this.#override,
    }).then((result) => {
      this.#underWay.delete(run);
      const done = () => {
        task.actions.delete(call.id);
      };
      if (result === undefined) this.#abandoned(task, agent, call.id, stopper, done);
      else if (!this.#core.apply(task, { type: "finish_action", agent, callId: call.id, ...result }, done)) {
        done();
      }
    });
    this.#underWay.add(run);
  }

  /**
   * Decisions B11. Also in a task that has ended or stands still: turns that were under way then go on to their end
   * (decisions B6), and as long as one has not, its agent takes no mail.
   */
  takeUp(task: LiveTask): void {
    const { status } = task.state;
    const goesOn = status === "running" || status === "paused";
    for (const [agent, { turn }] of task.state.agents) {
      const running = turn?.running;
      if (running === undefined) continue;
      this.#scheduler.occupy(task, agent);
      const callId = running.call.id;
      const idempotent = this.#equipment.action(running.call.name)?.idempotent === true;
      if (goesOn && idempotent && running.attempt < this.#core.limits.actionAttempts) {
        this.#core.apply(task, { type: "restart_action", agent, callId });
      } else {
        this.#unknown(task, agent, callId, "the process ended while the action ran");
      }
    }
  }

  /** The task is over: nobody waited for the end, so it is unknown. Shutdown: parked as if the process had died. */
  #abandoned(task: LiveTask, agent: string, callId: string, stopper: Stopper, done: () => void): void {
    switch (stopper.stopped?.reason) {
      case "cancelled":
        return this.#unknown(task, agent, callId, "the task was cancelled while the action ran", done);
      case "task_time_limit":
        return this.#unknown(task, agent, callId, "the task's time was up while the action ran", done);
      default:
        done();
        this.#core.settle(task);
    }
  }

  #unknown(task: LiveTask, agent: string, callId: string, why: string, done?: () => void): void {
    const content = `${OUTCOME_UNKNOWN}: ${why}`;
    this.#core.apply(task, { type: "finish_action", agent, callId, ok: false, content, unknown: true }, done);
  }
}
