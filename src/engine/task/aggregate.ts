/** A task as an aggregate: the engine's pure rules in the form that the journal kernel requires. */

import type { Aggregate, Decision, DecisionContext, JournalRow, Types } from "../../journal/index.js";
import type { AgentToolCall } from "../../mail/index.js";
import type { HoldReason } from "../agent.js";
import type { InstanceId, TaskPut, TaskStatus } from "../ports.js";
import type { UsageTotals } from "../usage.js";
import type { Command, OpenTask, Refusal } from "./commands.js";
import { decide, openTask } from "./decide.js";
import type { Entry } from "./entries.js";
import { evolve, open } from "./evolve.js";
import type { SwarmRules } from "./rules.js";
import { freeze, thaw } from "./snapshot.js";
import type { TaskEnding, TaskState } from "./state.js";

/** The facts about a task that are available without reading its state. */
export interface TaskStats {
  readonly number: number;
  readonly status: TaskStatus;
  readonly ending: TaskEnding | undefined;
  readonly error: TaskState["error"];
  readonly held: HoldReason | undefined;
  readonly updatedAt: number;
  /** The task does not run, but one of its actions or deliveries does, or an approval expires. */
  readonly openWork: boolean;
  readonly usage: UsageTotals | undefined;
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
  readonly summary: TaskStats;
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
      if (state === undefined) throw new Error(`'${command.type}' needs a task that exists`);
      return decide(state, command, rules(), moment);
    },
    summary: statsOf,
    freeze,
    thaw,
  };
}

function openNew(
  state: TaskState | undefined,
  command: OpenTask,
  rules: SwarmRules,
  moment: DecisionContext,
) {
  if (state !== undefined) throw new Error(`task ${state.key} was opened twice`);
  return openTask(command, rules, moment);
}

function statsOf(state: TaskState): TaskStats {
  const { number, status, ending, error, held, updatedAt, usage } = state;
  return { number, status, ending, error, held, updatedAt, openWork: hasOpenWork(state), usage };
}

function hasOpenWork(state: TaskState): boolean {
  if (state.status === "running") return false;
  if (state.outbound.length > 0) return true;
  for (const { turn } of state.agents.values()) {
    if (turn === undefined) continue;
    if (turn.running.length > 0 || turn.asked.some(({ expires }) => expires !== undefined)) return true;
  }
  return false;
}

/** The row of a task in the index, if it has changed. */
export function rowAfter(
  state: TaskState,
  now: TaskStats,
  before: TaskStats | undefined,
): TaskPut | undefined {
  const same =
    before !== undefined &&
    before.status === now.status &&
    before.held === now.held &&
    before.openWork === now.openWork &&
    before.usage === now.usage;
  return same ? undefined : rowOf(state, now);
}

export function rowOf(
  { key, instance, taskId, owner, createdAt, updatedAt }: TaskState & { readonly instance: InstanceId },
  { status, held, openWork, usage }: Pick<TaskStats, "status" | "held" | "openWork" | "usage">,
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
      ...(usage !== undefined && { usage }),
    },
  };
}

/** The actions that entries start. A decision never finishes what it starts, so the state after it has these calls. */
export function actionOrders(state: TaskState, entries: readonly Entry[], first: number): ActionOrder[] {
  const orders: ActionOrder[] = [];
  for (const [index, entry] of entries.entries()) {
    if (entry.t !== "action_started") continue;
    const order = actionOrderOf(state, entry.agent, entry.call, first + index);
    if (order !== undefined) orders.push(order);
  }
  return orders;
}

/** A running action of an agent's turn. */
export function actionOrderOf(
  state: TaskState,
  agent: string,
  callId: string,
  number: number,
): ActionOrder | undefined {
  const turn = state.agents.get(agent)?.turn;
  const running = turn?.running.find(({ call }) => call.id === callId);
  if (turn === undefined || running === undefined) return undefined;
  const { call, index, attempt } = running;
  return { type: "action", number, agent, call, attempt, key: `${state.key}/${turn.number}/${index}` };
}

/** Not validated again: entries were checked when written, and the corpus in `test/` proves that old ones load. */
export function entriesOf(row: Pick<JournalRow, "data">): Entry[] {
  return JSON.parse(row.data);
}
