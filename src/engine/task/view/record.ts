/** The reference's task record (REF-2), and the summaries of task lists. */
import { type MAILMessage, normalizeBreakpointCall } from "../../../mail/index.js";
import type { HoldReason } from "../../agent.js";
import type { TaskRow, TaskStatus } from "../../ports.js";
import { type BudgetLimits, changedLimits, hasLimit } from "../../usage.js";
import { type ReplyLimits, replyDue } from "../decide/interswarm.js";
import { askedCalls, type TaskState } from "../state.js";
import type { MailEvent } from "./events.js";
import { type BudgetView, budgetView, type UsageView, usageView } from "./usage.js";

/** The call has the form of breakpoint calls: its arguments are JSON text. */
export interface WaitingApproval extends ReturnType<typeof normalizeBreakpointCall> {
  readonly agent: string;
  readonly since: string;
  /** When it can no longer be approved. */
  readonly expires?: string;
}

function approvalsOf(state: TaskState): WaitingApproval[] {
  return askedCalls(state).map(({ agent, call, since, expires }) => ({
    agent,
    ...normalizeBreakpointCall(call),
    since: new Date(since).toISOString(),
    ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
  }));
}

/** A task in full: status, messages, histories of its agents and what it waits for. */
export interface TaskRecord {
  readonly task_id: string;
  readonly task_owner: string;
  readonly task_contributors: readonly string[];
  readonly start_time: string;
  readonly events: readonly MailEvent[];
  readonly is_running: boolean;
  /** Messages that wait while the task does not run: tier, number, message. */
  readonly task_message_queue: readonly (readonly [number, number, MAILMessage])[];
  readonly remote_swarms: readonly string[];
  readonly completed: boolean;
  readonly title: string | null;
  readonly status: TaskStatus;
  readonly error?: { readonly code: string; readonly message: string };
  /** What an agent needs before a paused task can continue. */
  readonly reason?: HoldReason;
  /** Who may answer for the owner, if approvers were named. */
  readonly approvers?: readonly string[];
  /** Answers of other swarms that the task waits for. */
  readonly waiting_for?: readonly AwaitedReply[];
  /** Calls that run once a person has approved them. */
  readonly approvals?: readonly WaitingApproval[];
  /** What its model calls used, in all and by agent. */
  readonly usage?: UsageView & { readonly agents: Readonly<Record<string, UsageView>> };
  /** Limits that the owner set, and those of the operator, if there are any. */
  readonly budget?: { readonly owner: BudgetView; readonly configured: BudgetView };
  /** Internal key of the task. */
  readonly key: string;
}

function taskUsage({ usage, agents }: TaskState): Pick<TaskRecord, "usage"> {
  if (usage === undefined) return {};
  const byAgent: [string, UsageView][] = [];
  for (const [name, agent] of agents) {
    if (agent.usage !== undefined) byAgent.push([name, usageView(agent.usage)]);
  }
  return { usage: { ...usageView(usage), agents: Object.fromEntries(byAgent) } };
}

function taskBudget(state: TaskState, configured: BudgetLimits): Pick<TaskRecord, "budget"> {
  const { budget = {}, adminBudget } = state;
  const limits = changedLimits(configured, adminBudget?.limits ?? {});
  if (!hasLimit(budget) && !hasLimit(limits)) return {};
  return { budget: { owner: budgetView(budget), configured: budgetView(limits) } };
}

export interface AwaitedReply {
  /** Who asked. */
  readonly from: string;
  readonly to: string;
  /** When the other swarm accepted the message; null while it is being delivered. */
  readonly since: string | null;
  /** When the sender is notified that no answer came; null if never. */
  readonly until: string | null;
}

function awaitedReplies(state: TaskState, limits: ReplyLimits | undefined): readonly AwaitedReply[] {
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString());
  return state.outstanding
    .filter(({ remote }) => remote)
    .map((request) => ({
      from: request.from,
      to: request.to,
      since: time(request.acceptedAt),
      until: time(limits === undefined ? undefined : replyDue(request, limits)),
    }));
}

/** The reference's two booleans; it reports a paused task as completed (REF-2). */
function legacyFlags(status: TaskStatus): { is_running: boolean; completed: boolean } {
  return { is_running: status === "running", completed: status !== "running" };
}

/** @param rules how long the task waits for other swarms, and the configured budget of a task */
export function recordOf(
  state: TaskState,
  events: readonly MailEvent[],
  title: string | undefined,
  rules?: { readonly limits: ReplyLimits; readonly budget: BudgetLimits },
): TaskRecord {
  const queue: (readonly [number, number, MAILMessage])[] = [];
  if (state.status !== "running") {
    for (const agent of state.agents.values()) {
      for (const mail of agent.mailbox) queue.push([mail.tier, mail.number, mail.message]);
    }
  }
  const waiting = awaitedReplies(state, rules?.limits);
  queue.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return {
    task_id: state.taskId,
    task_owner: state.owner,
    task_contributors: [...state.contributors],
    start_time: new Date(state.createdAt).toISOString(),
    events,
    ...legacyFlags(state.status),
    task_message_queue: queue,
    remote_swarms: [...state.remoteSwarms],
    title: title ?? null,
    status: state.status,
    ...(state.error !== undefined && { error: state.error }),
    ...(state.held !== undefined && { reason: state.held }),
    ...(askedCalls(state).length > 0 && { approvals: approvalsOf(state) }),
    ...(state.approvers !== undefined && state.approvers.length > 0 && { approvers: state.approvers }),
    ...(waiting.length > 0 && { waiting_for: waiting }),
    ...taskUsage(state),
    ...taskBudget(state, rules?.budget ?? {}),
    key: state.key,
  };
}

/** A task in a list. */
export interface TaskSummary {
  readonly task_id: string;
  readonly key: string;
  readonly task_owner: string;
  readonly status: TaskStatus;
  readonly title: string | null;
  readonly start_time: string;
  readonly updated_time: string;
  readonly is_running: boolean;
  readonly completed: boolean;
  readonly usage?: UsageView;
}

export function summaryOf(row: TaskRow): TaskSummary {
  return {
    task_id: row.taskId,
    key: row.key,
    task_owner: row.owner,
    status: row.status,
    title: row.title ?? null,
    start_time: new Date(row.createdAt).toISOString(),
    updated_time: new Date(row.updatedAt).toISOString(),
    ...legacyFlags(row.status),
    ...(row.usage !== undefined && { usage: usageView(row.usage) }),
  };
}
