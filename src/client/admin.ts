/**
 * Mailroom's own routes for admins: every task, by its internal key (logged by the server, decisions A6), and the
 * other swarms that the server knows.
 */
import type { MailEvent } from "./events.js";
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
  SwarmPing,
  type SwarmProposal,
  SwarmProposals,
  SwarmReceipt,
  type TaskSummary,
} from "./wire.js";

const TASKS = "/admin/tasks";
const SWARMS = "/swarms";
const PROPOSALS = "/swarms/proposals";

export class AdminClient {
  readonly #source: (path: string) => EventSource;

  constructor(source: (path: string) => EventSource) {
    this.#source = source;
  }

  /** Everybody's tasks, newest first. */
  listTasks(options: TaskListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    return allTasks(this.#transport, TASKS, options);
  }

  getTaskPage(options: TaskListOptions = {}): Promise<TaskList> {
    return taskPage(this.#transport, TASKS, options);
  }

  getTask(key: string, options: CallOptions = {}): Promise<TaskRecord> {
    return readTask(this.#transport, pathOf(key), options);
  }

  taskEvents(key: string, options: TaskEventsOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    return taskEvents(this.#source(pathOf(key)), options);
  }

  async cancelTask(key: string, options: WriteOptions = {}): Promise<void> {
    const path = `${pathOf(key)}/cancel`;
    await this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, AnyObject);
  }

  /** Forgets another swarm. @throws MailClientError with status 404 when it is not known */
  unregisterSwarm(name: string, options: WriteOptions = {}): Promise<SwarmReceipt> {
    const path = pathOf(name, SWARMS);
    return this.#transport.json({ method: "DELETE", path, ...callOptions(options) }, SwarmReceipt);
  }

  /** Has the server ask another swarm whether it is well. That it does not answer is an answer, too. */
  pingSwarm(name: string, options: WriteOptions = {}): Promise<SwarmPing> {
    const path = `${pathOf(name, SWARMS)}/ping`;
    return this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, SwarmPing);
  }

  /** Swarms that discovery found and nobody has decided about. */
  async getSwarmProposals(options: CallOptions = {}): Promise<readonly SwarmProposal[]> {
    const call = { method: "GET", path: PROPOSALS, ...callOptions(options) } as const;
    return (await this.#transport.json(call, SwarmProposals)).proposals;
  }

  /** Registers a swarm that was proposed, under the URL that was proposed. */
  acceptSwarmProposal(name: string, options: AcceptProposalOptions = {}): Promise<SwarmReceipt> {
    const { authToken, volatile } = options;
    const path = `${pathOf(name, PROPOSALS)}/accept`;
    const body = defined({ auth_token: authToken, volatile });
    return this.#transport.json({ method: "POST", path, body, ...callOptions(options) }, SwarmReceipt);
  }

  /** Drops a swarm that was proposed; it may be proposed again. */
  rejectSwarmProposal(name: string, options: WriteOptions = {}): Promise<SwarmReceipt> {
    const path = pathOf(name, PROPOSALS);
    return this.#transport.json({ method: "DELETE", path, ...callOptions(options) }, SwarmReceipt);
  }

  get #transport() {
    return this.#source("").transport;
  }
}

function pathOf(name: string, below: string = TASKS): string {
  return `${below}/${encodeURIComponent(name)}`;
}
