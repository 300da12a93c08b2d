/**
 * Mailroom's own routes for admins: every task by its internal key (the server logs each access, decision A6), and
 * the registered swarms.
 */
import { nameApprovers } from "./approvals.js";
import {
  type AdminTaskBudget,
  type AdminUsageReport,
  type BudgetChange,
  type BudgetPage,
  getAllUsage,
  listBudgets,
  setDailyBudget,
  setTaskBudget,
  type UsageOptions,
} from "./budgets.js";
import type { TaskEvent } from "./events.js";
import { getMesh, type MeshOperation, type MeshOverview, operateMesh } from "./mesh.js";
import { AdminObserveClient } from "./observe.js";
import {
  type AcceptProposalOptions,
  callOptions,
  defined,
  type TaskEventsOptions,
  type TaskListOptions,
} from "./options.js";
import {
  allTasks,
  type EventSource,
  readTask,
  type TaskList,
  type TaskRecord,
  taskEvents,
  taskPage,
} from "./tasks.js";
import type { CallOptions, WriteOptions } from "./transport.js";
import {
  AnyObject,
  type Budget,
  SwarmPing,
  type SwarmProposal,
  SwarmProposals,
  SwarmReceipt,
  type TaskBudgetAnswer,
  type TaskSummary,
} from "./wire.js";

const TASKS = "/admin/tasks";
const SWARMS = "/swarms";
const PROPOSALS = "/swarms/proposals";

/**
 * Calls for admins: all callers' tasks by internal key, and the swarm registry. Available as `client.admin`.
 * @example
 * ```ts
 * for await (const { key, task_owner } of client.admin.listTasks()) console.log(key, task_owner);
 * ```
 */
export class AdminClient {
  readonly #source: (path: string) => EventSource;

  /** @internal */
  constructor(source: (path: string) => EventSource) {
    this.#source = source;
  }

  /** Yields all callers' tasks, newest first. */
  listTasks(options: TaskListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    return allTasks(this.#transport, TASKS, options);
  }

  /** Returns one page of all callers' tasks, newest first. */
  getTaskPage(options: TaskListOptions = {}): Promise<TaskList> {
    return taskPage(this.#transport, TASKS, options);
  }

  /** Returns a task with its events. */
  getTask(key: string, options: CallOptions = {}): Promise<TaskRecord> {
    return readTask(this.#transport, pathOf(key), options);
  }

  /** Yields a task's events. See `MailClient.taskEvents`. */
  taskEvents(key: string, options: TaskEventsOptions = {}): AsyncGenerator<TaskEvent, void, undefined> {
    return taskEvents(this.#source(pathOf(key)), options);
  }

  /** Cancels a task. @throws MailClientError with status 409 when the task has ended */
  async cancelTask(key: string, options: WriteOptions = {}): Promise<void> {
    const path = `${pathOf(key)}/cancel`;
    await this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, AnyObject);
  }

  /** Sets limits on a task and its agents, in place of the configured ones. A task paused at a limit may continue. */
  setTaskBudget(key: string, change: AdminTaskBudget, options: WriteOptions = {}): Promise<TaskBudgetAnswer> {
    return setTaskBudget(this.#transport, pathOf(key), change, options);
  }

  /** Returns what all model calls used: one day (default: today, UTC) by agent and by caller, and all days. */
  getUsage(options: UsageOptions & { readonly day?: string } = {}): Promise<AdminUsageReport> {
    return getAllUsage(this.#transport, options);
  }

  /** Returns the limits of the server for a day (UTC), and of callers for a day and in total. */
  getBudgets(
    options: CallOptions & { readonly limit?: number; readonly after?: string } = {},
  ): Promise<BudgetPage> {
    return listBudgets(this.#transport, options);
  }

  /** Sets the limits of a caller (`user:ann`) for a day (UTC). `null` returns to the configured ones. */
  setCallerBudget(caller: string, change: BudgetChange | null, options: WriteOptions = {}): Promise<Budget> {
    return setDailyBudget(this.#transport, { caller }, change, options);
  }

  /** Sets the limits of a caller on all days together, such as `user:ann`. `null` returns to the configured ones. */
  setCallerTotalBudget(
    caller: string,
    change: BudgetChange | null,
    options: WriteOptions = {},
  ): Promise<Budget> {
    return setDailyBudget(this.#transport, { caller, total: true }, change, options);
  }

  /** Sets the limits of the whole server for a day (UTC). `null` returns to the configured ones. */
  setDayBudget(change: BudgetChange | null, options: WriteOptions = {}): Promise<Budget> {
    return setDailyBudget(this.#transport, "day", change, options);
  }

  /** Puts a message into a task of another owner, where the server allows it. */
  async postMessage(
    key: string,
    body: string,
    options: WriteOptions & { readonly subject?: string } = {},
  ): Promise<void> {
    const path = `${pathOf(key)}/message`;
    const sent = defined({ body, subject: options.subject });
    await this.#transport.json({ method: "POST", path, body: sent, ...callOptions(options) }, AnyObject);
  }

  /** Names who may answer for the owner of a task, where the server allows it. */
  nameApprovers(key: string, approvers: readonly string[], options: WriteOptions = {}): Promise<void> {
    return nameApprovers(this.#transport, pathOf(key), approvers, options);
  }

  /** Unregisters another swarm. @throws MailClientError with status 404 for an unknown swarm */
  unregisterSwarm(name: string, options: WriteOptions = {}): Promise<SwarmReceipt> {
    const path = pathOf(name, SWARMS);
    return this.#transport.json({ method: "DELETE", path, ...callOptions(options) }, SwarmReceipt);
  }

  /** Makes the server check another swarm's health. An unreachable swarm is a result, not an error. */
  pingSwarm(name: string, options: WriteOptions = {}): Promise<SwarmPing> {
    const path = `${pathOf(name, SWARMS)}/ping`;
    return this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, SwarmPing);
  }

  /** Returns swarms that discovery found and that await an admin's decision. */
  async getSwarmProposals(options: CallOptions = {}): Promise<readonly SwarmProposal[]> {
    const call = { method: "GET", path: PROPOSALS, ...callOptions(options) } as const;
    return (await this.#transport.json(call, SwarmProposals)).proposals;
  }

  /** Registers a proposed swarm under its proposed URL. */
  acceptSwarmProposal(name: string, options: AcceptProposalOptions = {}): Promise<SwarmReceipt> {
    const { authToken, volatile } = options;
    const path = `${pathOf(name, PROPOSALS)}/accept`;
    const body = defined({ auth_token: authToken, volatile });
    return this.#transport.json({ method: "POST", path, body, ...callOptions(options) }, SwarmReceipt);
  }

  /** Drops a proposed swarm; it may be proposed again. */
  rejectSwarmProposal(name: string, options: WriteOptions = {}): Promise<SwarmReceipt> {
    const path = pathOf(name, PROPOSALS);
    return this.#transport.json({ method: "DELETE", path, ...callOptions(options) }, SwarmReceipt);
  }

  /** Returns the server's agent in the mesh, its swarms and their members. @throws MailClientError with status 404 without a mesh */
  getMesh(options: CallOptions = {}): Promise<MeshOverview> {
    return getMesh(this.#transport, options);
  }

  /**
   * Changes members, invites, mutes and aliases, or sends a message in the mesh.
   * @param args as in `mailroom mesh`, such as `{ swarm, agent }`
   * @returns the operation's result, such as `invite_token`
   */
  operateMesh(
    operation: MeshOperation,
    args: Readonly<Record<string, unknown>> = {},
    options: WriteOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    return operateMesh(this.#transport, operation, args, options);
  }

  /** Journals, figures, the outbox and tokens. */
  get observe(): AdminObserveClient {
    return new AdminObserveClient(this.#transport);
  }

  get #transport() {
    return this.#source("").transport;
  }
}

function pathOf(name: string, below: string = TASKS): string {
  return `${below}/${encodeURIComponent(name)}`;
}
