/**
 * Runs the actions whose start is durable. Results live in a table of their own, outside the states of tasks, from their
 * arrival until the journal has them: what is known is never forgotten.
 */
import type { Clock, JournalKey, Problem } from "../../journal/ports.js";
import type { Turn } from "../agent.js";
import { TASK_TIMEOUT } from "../entries.js";
import { type KeyValueMemory, memoryOf } from "../memory.js";
import type { InstanceId } from "../ports.js";
import { type ActionOrder, actionOrderOf } from "../task.js";
import { type ActionOverride, type ActionResult, OUTCOME_UNKNOWN, runAction } from "./actions.js";
import type { Equipment } from "./equipment.js";
import type { RuntimeLimits } from "./limits.js";
import { Stopper, type StopReason } from "./stopper.js";
import type { LiveTask, TaskKernel, TaskUnit } from "./task-work.js";

export interface EffectsParts {
  readonly kernel: TaskKernel;
  readonly equipment: Equipment;
  readonly clock: Clock;
  readonly limits: RuntimeLimits;
  readonly override: ActionOverride | undefined;
  readonly memory: KeyValueMemory | undefined;
  readonly paramsOf: (instance: InstanceId) => Turn["params"];
  readonly report: (problem: Problem) => void;
  /** Nothing of this task is under way any more. */
  readonly ended: (task: JournalKey) => void;
}

interface Effect {
  readonly task: JournalKey;
  readonly order: ActionOrder;
  readonly stopper: Stopper;
  /** Whether it may begin is asked when the task's state can be read. */
  begun: boolean;
  result: ActionResult | undefined;
}

export class Effects {
  readonly #parts: EffectsParts;
  /** By the key of the order. */
  readonly #effects = new Map<string, Effect>();
  readonly #byTask = new Map<JournalKey, Set<Effect>>();
  readonly #underWay = new Set<Promise<void>>();
  #stopped = false;

  constructor(parts: EffectsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#effects.size;
  }

  has(task: JournalKey): boolean {
    return this.#byTask.has(task);
  }

  /** Fulfilled when all that run now have ended. Each has its time limit. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  /** Begins what durable entries order, and tells what runs when its task has been ended from outside. */
  react(live: LiveTask, { entries, orders }: TaskUnit): void {
    for (const entry of entries) {
      if (entry.t === "cancelled") this.stop(live.key, "cancelled");
      else if (entry.t === "failed" && entry.code === TASK_TIMEOUT) this.stop(live.key, "task_time_limit");
    }
    for (const order of orders) if (order.type === "action") this.#begin(live, order);
  }

  stop(task: JournalKey, reason: StopReason): void {
    for (const { stopper } of this.#byTask.get(task) ?? []) stopper.stop(reason);
  }

  /** Nothing begins any more. What was to begin is taken up by the next process, or known not to have happened. */
  stopAll(reason: StopReason): void {
    this.#stopped = true;
    for (const { stopper } of [...this.#effects.values()]) stopper.stop(reason);
  }

  /**
   * A task was read from the store. What this process knows of its actions counts; what nobody knows is run again if
   * it is idempotent, and else journaled as unknown. Also in a task that has ended or stands still: turns that were
   * under way go on to their end, and as long as one has not, its agent takes no mail.
   */
  takeUp(live: LiveTask): void {
    const { kernel, equipment, limits } = this.#parts;
    const { status } = live.state;
    const goesOn = status === "running" || status === "paused";
    for (const [agent, { turn }] of live.state.agents) {
      const order =
        turn?.running === undefined ? undefined : actionOrderOf(live.state, agent, live.state.number);
      if (order === undefined) continue;
      const known = this.#effects.get(order.key);
      if (known !== undefined) {
        if (!known.begun) this.#begin(live, known.order);
        else if (known.result !== undefined) this.#finish(known);
        continue;
      }
      if (this.#stopped) continue;
      const { call, attempt } = order;
      const callId = call.id;
      const idempotent = equipment.action(call.name)?.idempotent === true;
      if (goesOn && idempotent && attempt < limits.actionAttempts) {
        kernel.apply(live, { type: "restart_action", agent, callId }, { own: true });
      } else {
        const content = `${OUTCOME_UNKNOWN}: the process ended while the action ran`;
        kernel.apply(
          live,
          { type: "finish_action", agent, callId, ok: false, content, unknown: true },
          { own: true },
        );
      }
    }
  }

  #begin(live: LiveTask, order: ActionOrder): void {
    const { kernel, equipment } = this.#parts;
    const { key } = live;
    const known = this.#effects.get(order.key);
    if (known?.begun === true) return;
    // The next process may run it. If not, it would have to say that nobody knows whether it ran.
    const leaves = kernel.stopped || equipment.action(order.call.name)?.idempotent === true;
    if (this.#stopped && leaves) {
      if (known !== undefined) this.#forget(known);
      return;
    }
    const effect = known ?? { task: key, order, stopper: new Stopper(), begun: false, result: undefined };
    if (known === undefined) this.#add(effect);
    // The state is about to be read again; taking up asks then.
    if (live.rollBack !== undefined) return;
    effect.begun = true;
    const refusal = this.#stopped ? "the process was about to end" : whyNot(live, order);
    if (refusal === undefined) this.#run(live, effect);
    else this.#ended(effect, { ok: false, content: `not started: ${refusal}` });
  }

  #run(live: LiveTask, effect: Effect): void {
    const { equipment, clock, limits, override, memory, paramsOf } = this.#parts;
    const { order, stopper } = effect;
    const { call, attempt, agent, key: idempotencyKey } = order;
    const { work, state } = live;
    const { instance } = work;
    const action = equipment.action(call.name);
    const run = runAction({
      action,
      call,
      context: {
        swarm: state.swarm,
        agent,
        task: work.facts,
        instance,
        callId: call.id,
        idempotencyKey,
        attempt,
        params: paramsOf(instance),
        ...(memory !== undefined && { memory: memoryOf(memory, instance) }),
        get signal() {
          return stopper.signal;
        },
      },
      stopper,
      clock,
      timeLimit: action?.timeLimit ?? limits.actionTime,
      resultLength: limits.resultLength,
      override,
    }).then((result) => {
      this.#underWay.delete(run);
      this.#ended(effect, result ?? abandoned(stopper));
    });
    this.#underWay.add(run);
  }

  /** Without a result it is parked: the next process takes it up as it would after a crash. */
  #ended(effect: Effect, result: ActionResult | undefined): void {
    if (result === undefined) this.#forget(effect);
    else {
      effect.result = result;
      this.#finish(effect);
    }
  }

  #finish(effect: Effect): void {
    const { kernel, report } = this.#parts;
    const { task, order, result } = effect;
    if (result === undefined) return;
    const forget = () => this.#forget(effect);
    kernel.submit(
      task,
      { type: "finish_action", agent: order.agent, callId: order.call.id, ...result },
      {
        own: true,
        done: forget,
        refused: forget,
        failed: (error) => {
          // Refused by the store: the task is read again, and taking up hands the result in once more.
          if (kernel.peek(task) !== undefined && !kernel.stopped) return;
          forget();
          report({
            code: "result_not_written",
            message: `the result of action '${order.call.name}' could not be written: ${error.message}`,
            task,
            cause: error,
          });
        },
      },
    );
  }

  #add(effect: Effect): void {
    this.#effects.set(effect.order.key, effect);
    const others = this.#byTask.get(effect.task);
    if (others === undefined) this.#byTask.set(effect.task, new Set([effect]));
    else others.add(effect);
  }

  #forget(effect: Effect): void {
    if (this.#effects.get(effect.order.key) === effect) this.#effects.delete(effect.order.key);
    const others = this.#byTask.get(effect.task);
    if (others?.delete(effect) === true && others.size === 0) {
      this.#byTask.delete(effect.task);
      this.#parts.ended(effect.task);
    }
  }
}

/** An effect begins only if the newest decision still wants it. What was not begun is known not to have happened. */
function whyNot({ state }: LiveTask, order: ActionOrder): string | undefined {
  if (state.stoppedAt > order.number) return "the task was ended";
  const wanted = actionOrderOf(state, order.agent, order.number);
  return wanted?.key === order.key ? undefined : "its turn is over";
}

/** The task is over, and nobody waited for the end of the action. */
function abandoned({ stopped }: Stopper): ActionResult | undefined {
  switch (stopped?.reason) {
    case "cancelled":
      return unknown("the task was cancelled while the action ran");
    case "task_time_limit":
      return unknown("the task's time was up while the action ran");
    default:
      return undefined;
  }
}

function unknown(why: string): ActionResult {
  return { ok: false, content: `${OUTCOME_UNKNOWN}: ${why}`, unknown: true };
}
