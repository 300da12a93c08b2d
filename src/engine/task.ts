/** A task as a journaled aggregate: the engine's pure rules in the form that the journal kernel works with. */

import type { Aggregate, Decision, Moment, Types } from "../journal/aggregate.js";
import type { AgentToolCall } from "../mail/calls.js";
import type { HoldReason } from "./agent.js";
import type { Command, OpenTask, Refusal } from "./commands.js";
import { decide, openTask } from "./decide.js";
import type { Entry } from "./entries.js";
import { evolve, open } from "./evolve.js";
import type { InstanceId, JournalRow, TaskPut, TaskStatus } from "./ports.js";
import type { SwarmRules } from "./rules.js";
import { freeze, thaw } from "./snapshot.js";
import type { Ending, TaskState } from "./state.js";

/** What can be told of a task without reading its state. */
export interface TaskFigures {
  readonly number: number;
  readonly status: TaskStatus;
  readonly ending: Ending | undefined;
  readonly error: TaskState["error"];
  readonly held: HoldReason | undefined;
  readonly updatedAt: number;
  /** It does not run, but an action or a delivery of it is under way. */
  readonly openWork: boolean;
}

/** An action to be run, as of the entry that started it. */
export interface ActionOrder {
  readonly type: "action";
  readonly number: number;
  readonly agent: string;
  readonly call: AgentToolCall;
  readonly attempt: number;
  /** Unique per task, turn and call, and the same after every recovery. */
  readonly key: string;
}

export interface TaskTypes<Order, Work extends object> extends Types {
  readonly state: TaskState;
  readonly entry: Entry;
  readonly command: Command | OpenTask;
  readonly refusal: Refusal;
  readonly summary: TaskFigures;
  readonly order: Order;
  readonly work: Work;
}

export function taskAggregate<Order, Work extends object>(
  rules: () => SwarmRules,
): Aggregate<TaskTypes<Order, Work>> {
  return {
    kind: "task",
    begin(first) {
      if (first.t !== "opened") throw new Error(`a journal begins with 'opened', not with '${first.t}'`);
      return open(first);
    },
    evolve,
    number: (state) => state.number,
    decide(state, command, moment): Decision<TaskTypes<Order, Work>> {
      if (command.type === "open") return openNew(state, command, rules(), moment);
      if (state === undefined) throw new Error(`'${command.type}' was asked of a task that does not exist`);
      return decide(state, command, rules(), moment);
    },
    summary: figuresOf,
    freeze,
    thaw,
  };
}

function openNew(state: TaskState | undefined, command: OpenTask, rules: SwarmRules, moment: Moment) {
  if (state !== undefined) throw new Error(`task ${state.key} was opened twice`);
  return openTask(command, rules, moment);
}

function figuresOf(state: TaskState): TaskFigures {
  const { number, status, ending, error, held, updatedAt } = state;
  return { number, status, ending, error, held, updatedAt, openWork: hasOpenWork(state) };
}

function hasOpenWork(state: TaskState): boolean {
  if (state.status === "running") return false;
  if (state.outbound.length > 0) return true;
  for (const { turn } of state.agents.values()) if (turn?.running !== undefined) return true;
  return false;
}

/** The row of a task's index, if what it says has changed. */
export function rowAfter(
  state: TaskState,
  now: TaskFigures,
  before: TaskFigures | undefined,
): TaskPut | undefined {
  const same =
    before !== undefined &&
    before.status === now.status &&
    before.held === now.held &&
    before.openWork === now.openWork;
  return same ? undefined : rowOf(state, now);
}

export function rowOf(
  { key, instance, taskId, owner, createdAt, updatedAt }: TaskState & { readonly instance: InstanceId },
  { status, held, openWork }: Pick<TaskFigures, "status" | "held" | "openWork">,
  title?: string,
): TaskPut {
  return {
    kind: "task.put",
    row: {
      key,
      instance,
      taskId,
      owner,
      status,
      createdAt,
      updatedAt,
      ...(title !== undefined && { title }),
      ...(held !== undefined && { held: true }),
      ...(openWork && { openWork: true }),
    },
  };
}

/** The actions that entries start. A decision stops at the call it starts, so the state after it tells which. */
export function actionOrders(state: TaskState, entries: readonly Entry[], first: number): ActionOrder[] {
  const orders: ActionOrder[] = [];
  for (const [index, entry] of entries.entries()) {
    if (entry.t !== "action_started") continue;
    const order = actionOrderOf(state, entry.agent, first + index);
    if (order !== undefined) orders.push(order);
  }
  return orders;
}

/** The action that an agent's turn stands at. */
export function actionOrderOf(state: TaskState, agent: string, number: number): ActionOrder | undefined {
  const turn = state.agents.get(agent)?.turn;
  if (turn?.running === undefined) return undefined;
  const { call, index, attempt } = turn.running;
  return { type: "action", number, agent, call, attempt, key: `${state.key}/${turn.number}/${index}` };
}

/** Our own writing: it was checked when it was made, and the corpus in `test/` keeps older versions readable. */
export function entriesOf(row: Pick<JournalRow, "data">): Entry[] {
  return JSON.parse(row.data);
}
