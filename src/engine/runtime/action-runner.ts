/**
 * Runs the actions whose start is durable. Results are kept here, outside the task states, until the journal contains
 * them, so that reloading a task never loses a result.
 */
import type { Clock, Report } from "../../base/index.js";
import type { JournalKey } from "../../journal/index.js";
import type { Turn } from "../agent.js";
import { memoryOf } from "../key-value.js";
import type { InstanceId, KeyValueStore } from "../ports.js";
import type { RuntimeLimits } from "../settings.js";
import { type ActionOrder, actionOrderOf } from "../task/aggregate.js";
import { TASK_TIMEOUT } from "../task/entries.js";
import type { TaskState } from "../task/state.js";
import { AbortHandle, type StopReason } from "./abort-handle.js";
import { type ActionOverride, type ActionResult, OUTCOME_UNKNOWN, runAction } from "./actions.js";
import type { DefinitionIndex } from "./definition-index.js";
import type { LiveTask, TaskKernel, TaskUnit } from "./task-work.js";

export interface ActionRunnerParts {
  readonly kernel: TaskKernel;
  readonly definitionIndex: DefinitionIndex;
  readonly clock: Clock;
  readonly limits: RuntimeLimits;
  readonly override: ActionOverride | undefined;
  readonly memory: KeyValueStore | undefined;
  readonly paramsOf: (instance: InstanceId) => Turn["params"];
  readonly report: Report;
  /** Called when the last action of a task has ended. */
  readonly ended: (task: JournalKey) => void;
}

interface ActionExecution {
  readonly task: JournalKey;
  readonly order: ActionOrder;
  readonly abortHandle: AbortHandle;
  /** False while the task is being reloaded: the check whether the action may start needs its state. */
  begun: boolean;
  result: ActionResult | undefined;
}

export class ActionRunner {
  readonly #parts: ActionRunnerParts;
  /** By the key of the action order. */
  readonly #executions = new Map<string, ActionExecution>();
  readonly #byTask = new Map<JournalKey, Set<ActionExecution>>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(parts: ActionRunnerParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#executions.size;
  }

  has(task: JournalKey): boolean {
    return this.#byTask.has(task);
  }

  /** Resolves when all actions that run now have ended. Every action has a time limit. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Starts the actions that durable entries order, and stops the actions of a task that was cancelled or timed out. */
  react(live: LiveTask, { entries, orders }: TaskUnit): void {
    for (const entry of entries) {
      if (entry.t === "cancelled") this.stop(live.key, "cancelled");
      else if (entry.t === "failed" && entry.code === TASK_TIMEOUT) this.stop(live.key, "task_time_limit");
    }
    for (const order of orders) if (order.type === "action") this.#begin(live, order);
  }

  stop(task: JournalKey, reason: StopReason): void {
    for (const { abortHandle } of this.#byTask.get(task) ?? []) abortHandle.stop(reason);
  }

  /** No action starts after this call: the next process starts it, or the journal records that it did not run. */
  stopAll(reason: StopReason): void {
    this.#stopped = true;
    for (const { abortHandle } of [...this.#executions.values()]) abortHandle.stop(reason);
  }

  /**
   * Continues the actions of a task that was read from the store. Results that this process has are submitted again. An
   * action without a result runs again if it is idempotent; otherwise its outcome is journaled as unknown. This also
   * applies to ended and paused tasks: their running turns are finished, because until then the agent takes no mail.
   */
  resume(live: LiveTask): void {
    const { kernel, definitionIndex, limits } = this.#parts;
    const { status } = live.state;
    const continues = status === "running" || status === "paused";
    // All of them first: what is recorded about one can start others, which are not left from before.
    for (const order of runningActions(live.state)) {
      const known = this.#executions.get(order.key);
      if (known !== undefined) {
        if (!known.begun) this.#begin(live, known.order);
        else if (known.result !== undefined) this.#finish(known);
        continue;
      }
      if (this.#stopped) continue;
      const { agent, call, attempt } = order;
      const callId = call.id;
      const idempotent = definitionIndex.action(call.name)?.idempotent === true;
      if (continues && idempotent && attempt < limits.actionAttempts) {
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
    const { kernel, definitionIndex } = this.#parts;
    const { key } = live;
    const known = this.#executions.get(order.key);
    if (known?.begun === true) return;
    // Leave it to the next process only if that may run it; otherwise its outcome would be recorded as unknown.
    const isLeft = kernel.stopped || definitionIndex.action(order.call.name)?.idempotent === true;
    if (this.#stopped && isLeft) {
      if (known !== undefined) this.#forget(known);
      return;
    }
    const execution = known ?? {
      task: key,
      order,
      abortHandle: new AbortHandle(),
      begun: false,
      result: undefined,
    };
    if (known === undefined) this.#add(execution);
    // The task is about to be reloaded; `resume` starts the action then.
    if (live.rollBack !== undefined) return;
    execution.begun = true;
    const refusal = this.#stopped ? "the process was shutting down" : whyNot(live, order);
    if (refusal === undefined) this.#run(live, execution);
    else this.#ended(execution, { ok: false, content: `not started: ${refusal}` });
  }

  #run(live: LiveTask, execution: ActionExecution): void {
    const { definitionIndex, clock, limits, override, memory, paramsOf } = this.#parts;
    const { order, abortHandle } = execution;
    const { call, attempt, agent, key: idempotencyKey } = order;
    const { work, state } = live;
    const { instance } = work;
    const action = definitionIndex.action(call.name);
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
          return abortHandle.signal;
        },
      },
      abortHandle,
      clock,
      timeLimit: action?.timeLimit ?? limits.actionTimeout,
      resultLength: limits.resultLength,
      override,
    }).then((result) => {
      this.#running.delete(run);
      this.#ended(execution, result ?? abandoned(abortHandle));
    });
    this.#running.add(run);
  }

  /** An action without a result is left to the next process, which treats it as after a crash. */
  #ended(execution: ActionExecution, result: ActionResult | undefined): void {
    if (result === undefined) this.#forget(execution);
    else {
      execution.result = result;
      this.#finish(execution);
    }
  }

  #finish(execution: ActionExecution): void {
    const { kernel, report } = this.#parts;
    const { task, order, result } = execution;
    if (result === undefined) return;
    const forget = () => this.#forget(execution);
    kernel.submit(
      task,
      { type: "finish_action", agent: order.agent, callId: order.call.id, ...result },
      {
        own: true,
        done: forget,
        refused: forget,
        failed: (error) => {
          // The store rejected the commit: the task is reloaded, and `resume` submits the result again.
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

  #add(execution: ActionExecution): void {
    this.#executions.set(execution.order.key, execution);
    const others = this.#byTask.get(execution.task);
    if (others === undefined) this.#byTask.set(execution.task, new Set([execution]));
    else others.add(execution);
  }

  #forget(execution: ActionExecution): void {
    if (this.#executions.get(execution.order.key) === execution) this.#executions.delete(execution.order.key);
    const others = this.#byTask.get(execution.task);
    if (others?.delete(execution) === true && others.size === 0) {
      this.#byTask.delete(execution.task);
      this.#parts.ended(execution.task);
    }
  }
}

function runningActions(state: TaskState): ActionOrder[] {
  const orders: ActionOrder[] = [];
  for (const [agent, { turn }] of state.agents) {
    for (const { call } of turn?.running ?? []) {
      const order = actionOrderOf(state, agent, call.id, state.number);
      if (order !== undefined) orders.push(order);
    }
  }
  return orders;
}

/** Why the action must not start: since it was ordered, a newer decision has ended its task or its turn. */
function whyNot({ state }: LiveTask, order: ActionOrder): string | undefined {
  if (state.stoppedAt > order.number) return "the task was ended";
  const current = actionOrderOf(state, order.agent, order.call.id, order.number);
  return current?.key === order.key ? undefined : "its turn has ended";
}

/** The result of an action that the end of its task cut off. */
function abandoned({ stopped }: AbortHandle): ActionResult | undefined {
  switch (stopped?.reason) {
    case "cancelled":
      return unknown("the task was cancelled while the action ran");
    case "task_time_limit":
      return unknown("the task reached its time limit while the action ran");
    default:
      return undefined;
  }
}

function unknown(why: string): ActionResult {
  return { ok: false, content: `${OUTCOME_UNKNOWN}: ${why}`, unknown: true };
}
