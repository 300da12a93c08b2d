/** A typed client of a MAIL server: Mailroom's or the reference's. Runs wherever there is `fetch`. */
import type { MAILInterswarmMessage, MAILMessage } from "../mail/index.js";
import { AdminClient } from "./admin.js";
import {
  type Approval,
  type ApprovalDecision,
  type ApprovalListOptions,
  type AuditOptions,
  type AuditRecord,
  answerApproval,
  approvals,
  auditRecords,
  decideApproval,
  getApproval,
  nameApprovers,
} from "./approvals.js";
import {
  type BudgetChange,
  getUsage,
  setTaskBudget,
  type UsageOptions,
  type UsageReport,
} from "./budgets.js";
import { MailClientError } from "./errors.js";
import { type TaskEvent, toTaskEvent } from "./events.js";
import { ObserveClient } from "./observe.js";
import {
  type BreakpointAnswer,
  callOptions,
  defined,
  type InterswarmMessageOptions,
  type MessageOptions,
  type MessageStreamOptions,
  messageBody,
  type RegisterSwarmOptions,
  type TaskEventsOptions,
  type TaskListOptions,
} from "./options.js";
import { messageEvents } from "./stream.js";
import {
  allTasks,
  type EventSource,
  readTask,
  type TaskList,
  type TaskRecord,
  taskEvents,
  taskPage,
  toTaskRecord,
} from "./tasks.js";
import {
  type CallOptions,
  type FetchFunction,
  Transport,
  type TransportRequest,
  type WriteOptions,
} from "./transport.js";
import {
  AnyObject,
  Anything,
  type BreakpointCall,
  Health,
  Identity,
  InterswarmReceipt,
  RawMessageAnswer,
  RawTasks,
  type RemoteSwarm,
  RemoteSwarms,
  ServerInfo,
  ServerStatus,
  SwarmReceipt,
  type TaskBudgetAnswer,
  type TaskStatus,
  type TaskSummary,
} from "./wire.js";

/** Options of {@link MailClient}. */
export interface MailClientOptions {
  /**
   * Bearer token of the caller.
   * @defaultValue none: only public routes work
   */
  readonly token?: string;
  /**
   * Milliseconds for ordinary calls. Messages wait longer.
   * @defaultValue 30,000
   */
  readonly timeout?: number;
  /**
   * Number of retries of a failed call.
   * @defaultValue 2
   */
  readonly retries?: number;
  /**
   * Milliseconds before the first retry. Each later one waits about twice as long.
   * @defaultValue 200
   */
  readonly retryPause?: number;
  /**
   * Number of consecutive connections that a stream may lose without receiving an event.
   * @defaultValue 10
   */
  readonly reconnects?: number;
  /**
   * Milliseconds of silence after which a stream is reconnected. Servers ping every 15 seconds.
   * @defaultValue 60,000
   */
  readonly idleLimit?: number;
  /**
   * Sends requests.
   * @defaultValue the global `fetch`
   */
  readonly fetch?: FetchFunction;
}

/** The caller's role and id, as the server sees them. */
export interface WhoAmI {
  readonly role: string;
  readonly id: string;
}

/** The result of a round of a task. `status` is `running` if the round has not ended. */
export interface MessageAnswer {
  /** The answer, the reason of a failure, or the waiting calls as JSON. Empty if the answer has no text. */
  readonly response: string;
  /** The events of the task, with `showEvents`. */
  readonly events: readonly TaskEvent[] | undefined;
  /** Absent on servers of the reference, like the status. */
  readonly task_id?: string | undefined;
  readonly status?: TaskStatus | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** The calls that a paused task waits for. */
  readonly breakpoint?: readonly BreakpointCall[] | undefined;
  /** The calls that run once a person has approved them. */
  readonly approvals?: readonly BreakpointCall[] | undefined;
  /** What a paused task needs before it can continue: `credentials` or `budget`. The response says how to provide it. */
  readonly reason?: string | undefined;
}

/** The server waits for an hour by default; the client a little longer. */
const MESSAGE_WAIT = 3_600_000;
const GRACE = 30_000;

/**
 * A client of one MAIL server: Mailroom's or the reference's.
 *
 * A failed task is an answer, not an exception. Calls throw {@link MailClientError} when the server rejects them and
 * {@link MailConnectionError} when there is no response; streams throw {@link MailStreamError} when they cannot be resumed.
 * @example
 * ```ts
 * const client = new MailClient("http://127.0.0.1:8000", { token: "user:ann" });
 * const { response } = await client.postMessage("What is the weather in Oslo?");
 * for await (const { event } of client.postMessageStream("And tomorrow?")) console.log(event);
 * ```
 */
export class MailClient {
  /** The server's URL, without a trailing slash. */
  readonly url: string;
  /** Calls for admins. */
  readonly admin: AdminClient;
  /** Journals, digests, search and the feed of the caller's tasks. */
  readonly observe: ObserveClient;
  readonly #transport: Transport;
  readonly #reconnects: number;
  readonly #idleLimit: number | undefined;
  #token: string | undefined;

  /** @throws TypeError when `url` is not an http(s) URL */
  constructor(url: string, options: MailClientOptions = {}) {
    this.url = baseUrl(url);
    this.#token = options.token;
    this.#reconnects = options.reconnects ?? 10;
    this.#idleLimit = options.idleLimit;
    this.#transport = new Transport({
      url: this.url,
      token: () => this.#token,
      timeout: options.timeout ?? 30_000,
      retries: options.retries ?? 2,
      retryPause: options.retryPause,
      fetch: options.fetch ?? ((address, init) => fetch(address, init)),
    });
    this.admin = new AdminClient((path) => this.#source(path));
    this.observe = new ObserveClient(this.#source("").transport);
  }

  /** Returns the kind of server, its capabilities and its swarm (`GET /`). */
  ping(options: CallOptions = {}): Promise<ServerInfo> {
    return this.#transport.json({ method: "GET", path: "/", ...callOptions(options) }, ServerInfo);
  }

  /** Returns the server's health. */
  getHealth(options: CallOptions = {}): Promise<Health> {
    return this.#transport.json({ method: "GET", path: "/health", ...callOptions(options) }, Health);
  }

  /** Sets the status that `/health` returns. For admins. */
  updateHealth(status: string, options: WriteOptions = {}): Promise<Health> {
    return this.#transport.json(post("/health", { status }, options), Health);
  }

  /**
   * Uses this token for later calls if the server accepts it, otherwise none.
   * @throws MailClientError when the server rejects the token
   */
  async login(token: string, options: CallOptions = {}): Promise<WhoAmI> {
    this.#token = token;
    try {
      return await this.whoami(options);
    } catch (error) {
      if (error instanceof MailClientError) this.#token = undefined;
      throw error;
    }
  }

  /** Drops the token. */
  logout(): void {
    this.#token = undefined;
  }

  /** Returns the caller's role and id. */
  async whoami(options: CallOptions = {}): Promise<WhoAmI> {
    const call: TransportRequest = { method: "GET", path: "/whoami", ...callOptions(options) };
    const { role, id, username } = await this.#transport.json(call, Identity);
    return { role, id: id ?? username ?? "" };
  }

  /** Returns the state of the swarm and of the caller's tasks. */
  getStatus(options: CallOptions = {}): Promise<ServerStatus> {
    return this.#transport.json({ method: "GET", path: "/status", ...callOptions(options) }, ServerStatus);
  }

  /**
   * Sends a message to the swarm and waits for the result. A failed task is a result, not an exception.
   * @example
   * ```ts
   * const { status, response } = await client.postMessage("Summarize the report", { subject: "Report" });
   * ```
   */
  async postMessage(body: string, options: MessageOptions = {}): Promise<MessageAnswer> {
    const waits = options.wait === false ? {} : { timeout: messageWait(options.kwargs) };
    return this.#message(post("/message", messageBody(body, options), { ...waits, ...options }));
  }

  /**
   * Sends a message to the swarm and yields events until the round has ended. A lost connection is resumed after the
   * last event, so that every event comes exactly once.
   * @throws MailStreamError when the stream cannot be resumed; the task continues
   * @example
   * ```ts
   * for await (const { event, data } of client.postMessageStream("hello")) console.log(event, data.description);
   * ```
   */
  postMessageStream(
    body: string,
    options: MessageStreamOptions = {},
  ): AsyncGenerator<TaskEvent, void, undefined> {
    const call = post("/message", { ...messageBody(body, options), stream: true }, options);
    return messageEvents(call, {
      ...this.#streaming(),
      pings: options.pings ?? false,
      onState: options.onState,
      ...(options.signal && { signal: options.signal }),
    });
  }

  /** Returns the caller's newest tasks by id, in the reference's form. `listTasks` returns all of them. */
  async getTasks(options: CallOptions = {}): Promise<Readonly<Record<string, TaskRecord>>> {
    const call: TransportRequest = { method: "GET", path: "/tasks", ...callOptions(options) };
    const tasks = await this.#transport.json(call, RawTasks);
    return Object.fromEntries(Object.entries(tasks).map(([id, task]) => [id, toTaskRecord(task)]));
  }

  /**
   * Yields all of the caller's tasks, newest first, and fetches pages as needed.
   * @example
   * ```ts
   * for await (const { task_id, status } of client.listTasks({ status: "running" })) console.log(task_id, status);
   * ```
   */
  listTasks(options: TaskListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    return allTasks(this.#transport, "/tasks", options);
  }

  /** Returns one page of the caller's tasks, newest first. */
  getTaskPage(options: TaskListOptions = {}): Promise<TaskList> {
    return taskPage(this.#transport, "/tasks", options);
  }

  /**
   * Returns a task with its events.
   * @throws MailClientError with status 404 for an unknown task
   */
  async getTask(taskId: string, options: CallOptions = {}): Promise<TaskRecord> {
    try {
      return await readTask(this.#transport, taskPath(taskId), options);
    } catch (error) {
      // The reference has no such route, and its own requires a body on a GET, which `fetch` cannot send.
      const missing = error instanceof MailClientError && error.status === 404;
      if (!missing || (await this.#transport.deduplicates(options.signal))) throw error;
      const task = (await this.getTasks(options))[taskId];
      if (task === undefined) throw error;
      return task;
    }
  }

  /**
   * Yields a task's events from the first, or after `after`, and then live ones until the round has ended.
   * @example
   * ```ts
   * for await (const event of client.taskEvents(taskId, { live: true })) console.log(event);
   * ```
   */
  taskEvents(taskId: string, options: TaskEventsOptions = {}): AsyncGenerator<TaskEvent, void, undefined> {
    return taskEvents(this.#source(taskPath(taskId)), options);
  }

  /**
   * Cancels a task.
   * @throws MailClientError with status 409 when the task has ended
   */
  async cancelTask(taskId: string, options: WriteOptions = {}): Promise<void> {
    await this.#transport.json(post(`${taskPath(taskId)}/cancel`, {}, options), AnyObject);
  }

  /**
   * Answers the calls that a paused task waits for, and waits for the result.
   * @example
   * ```ts
   * await client.answerBreakpoint(taskId, "approved");
   * ```
   */
  async answerBreakpoint(
    taskId: string,
    results: BreakpointAnswer,
    options: WriteOptions & { readonly wait?: boolean } = {},
  ): Promise<MessageAnswer> {
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    const body = defined({ results, wait: options.wait });
    try {
      return await this.#message(post(`${taskPath(taskId)}/breakpoint`, body, { ...options, timeout }));
    } catch (error) {
      const missing = error instanceof MailClientError && error.status === 404;
      if (!missing || (await this.#transport.deduplicates(options.signal))) throw error;
      // The reference has no such route; its form of an answer is a message.
      const content =
        typeof results === "string" ? JSON.stringify({ content: results }) : JSON.stringify(results);
      return this.postMessage("", {
        ...options,
        taskId,
        resumeFrom: "breakpoint_tool_call",
        kwargs: { breakpoint_tool_call_result: content },
      });
    }
  }

  /**
   * Yields the tasks that wait for an answer of the caller, newest first: the caller's own and those that the caller was
   * named for.
   * @example
   * ```ts
   * for await (const { key, calls } of client.approvals()) console.log(key, calls);
   * ```
   */
  approvals(options: ApprovalListOptions = {}): AsyncGenerator<Approval, void, undefined> {
    return approvals(this.#transport, options);
  }

  /** Answers the open calls of a task by its internal key, for its owner. */
  answerApproval(key: string, results: BreakpointAnswer, options: WriteOptions = {}): Promise<void> {
    return answerApproval(this.#transport, key, results, options);
  }

  /** One task that waits for a person, by its internal key. */
  getApproval(key: string, options: CallOptions = {}): Promise<Approval> {
    return getApproval(this.#transport, key, options);
  }

  /**
   * Approves or rejects calls that wait for approval, in a task by its internal key. The server runs the approved ones.
   * @throws MailClientError with status 400 for invalid arguments, 404 if the caller may not answer
   */
  decideApproval(
    key: string,
    decisions: readonly ApprovalDecision[],
    options: WriteOptions = {},
  ): Promise<void> {
    return decideApproval(this.#transport, key, decisions, options);
  }

  /** Names who may answer for the caller in a task: principals (`user:bob`) or roles (`admin`). */
  nameApprovers(taskId: string, approvers: readonly string[], options: WriteOptions = {}): Promise<void> {
    return nameApprovers(this.#transport, taskPath(taskId), approvers, options);
  }

  /**
   * Changes the limits that the caller set on a task. A task that was paused at a limit continues if no limit is
   * reached.
   * @example
   * ```ts
   * await client.setTaskBudget(taskId, { max_cost: 5 });
   * ```
   */
  setTaskBudget(taskId: string, change: BudgetChange, options: WriteOptions = {}): Promise<TaskBudgetAnswer> {
    return setTaskBudget(this.#transport, taskPath(taskId), change, options);
  }

  /** Returns what the model calls of the caller's tasks used, today by agent and by day. */
  getUsage(options: UsageOptions = {}): Promise<UsageReport> {
    return getUsage(this.#transport, options);
  }

  /** Yields who acted for whom, newest first: for admins everything, for others what concerns them. */
  audit(options: AuditOptions = {}): AsyncGenerator<AuditRecord, void, undefined> {
    return auditRecords(this.#transport, options);
  }

  /** Returns the swarms in the server's registry. */
  async getSwarms(options: CallOptions = {}): Promise<readonly RemoteSwarm[]> {
    const call: TransportRequest = { method: "GET", path: "/swarms", ...callOptions(options) };
    return (await this.#transport.json(call, RemoteSwarms)).swarms;
  }

  /** Adds another swarm to the server's registry. For admins. */
  registerSwarm(options: RegisterSwarmOptions): Promise<SwarmReceipt> {
    const { name, baseUrl, authToken, volatile, metadata } = options;
    const body = defined({ name, base_url: baseUrl, auth_token: authToken, volatile, metadata });
    return this.#transport.json(post("/swarms", body, options), SwarmReceipt);
  }

  /** Writes the swarm's definition to the server's log. For admins. */
  dumpSwarm(options: CallOptions = {}): Promise<SwarmReceipt> {
    const call: TransportRequest = { method: "GET", path: "/swarms/dump", ...callOptions(options) };
    return this.#transport.json(call, SwarmReceipt);
  }

  /** Replaces the swarm's definition with one from a swarm file, as an object or JSON text. For admins. */
  loadSwarm(swarm: string | object, options: WriteOptions = {}): Promise<SwarmReceipt> {
    const json = typeof swarm === "string" ? swarm : JSON.stringify(swarm);
    return this.#transport.json(post("/swarms/load", { json }, options), SwarmReceipt);
  }

  /** Sends a message to agents of other swarms and waits for the answer. */
  sendInterswarmMessage(options: InterswarmMessageOptions): Promise<MessageAnswer> {
    const body = defined({
      user_token: options.userToken,
      body: options.body,
      targets: options.targets,
      subject: options.subject,
      msg_type: options.msgType,
      task_id: options.taskId,
      routing_info: options.routingInfo,
      stream: options.stream,
      ignore_stream_pings: options.ignoreStreamPings,
    });
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    return this.#message(post("/interswarm/message", body, { ...options, timeout }));
  }

  /** Forwards a task. For agents (remote swarms). */
  postInterswarmForward(
    message: MAILInterswarmMessage,
    options: WriteOptions = {},
  ): Promise<InterswarmReceipt> {
    return this.#transport.json(post("/interswarm/forward", { message }, options), InterswarmReceipt);
  }

  /** Answers in a forwarded task. For agents (remote swarms). */
  postInterswarmBack(message: MAILInterswarmMessage, options: WriteOptions = {}): Promise<InterswarmReceipt> {
    return this.#transport.json(post("/interswarm/back", { message }, options), InterswarmReceipt);
  }

  /** The older form of `postInterswarmForward`, which answers with the remote agent's message. */
  postInterswarmMessage(
    message: MAILInterswarmMessage,
    options: WriteOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    return this.#transport.json(post("/interswarm/message", message, { ...options, timeout }), AnyObject);
  }

  /** The older form of `postInterswarmBack`. */
  postInterswarmResponse(message: MAILMessage, options: WriteOptions = {}): Promise<InterswarmReceipt> {
    return this.#transport.json(post("/interswarm/response", message, options), InterswarmReceipt);
  }

  /** The older form of `sendInterswarmMessage`: one target, and the answer is a MAIL message. */
  postInterswarmSend(
    options: { readonly target: string; readonly message: string; readonly userToken: string } & WriteOptions,
  ): Promise<Readonly<Record<string, unknown>>> {
    const body = { target_agent: options.target, message: options.message, user_token: options.userToken };
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    return this.#transport.json(post("/interswarm/send", body, { ...options, timeout }), AnyObject);
  }

  /** The reference's debugging route in the style of OpenAI's Responses; Mailroom does not serve it. */
  async postResponses(
    request: Readonly<Record<string, unknown>>,
    options: WriteOptions = {},
  ): Promise<unknown> {
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    const call = post("/responses", request, { ...options, timeout });
    const answer = await this.#transport.json(call, Anything);
    // The reference returns JSON inside a JSON string.
    return typeof answer === "string" ? JSON.parse(answer) : answer;
  }

  async #message(call: TransportRequest): Promise<MessageAnswer> {
    const raw = await this.#transport.json(call, RawMessageAnswer);
    return {
      ...raw,
      response: raw.response ?? "",
      events: raw.events?.map(toTaskEvent),
      error: raw.error ?? undefined,
      breakpoint: raw.breakpoint ?? undefined,
      approvals: raw.approvals ?? undefined,
    };
  }

  #streaming() {
    return {
      transport: this.#transport,
      reconnects: this.#reconnects,
      ...(this.#idleLimit !== undefined && { idleLimit: this.#idleLimit }),
    };
  }

  #source(path: string): EventSource {
    return { path, ...this.#streaming() };
  }
}

function post(path: string, body: unknown, options: WriteOptions): TransportRequest {
  return { method: "POST", path, body, ...callOptions(options) };
}

function taskPath(taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}`;
}

function messageWait(kwargs: MessageOptions["kwargs"]): number {
  const seconds = kwargs?.timeout;
  return (typeof seconds === "number" && seconds > 0 ? seconds * 1000 : MESSAGE_WAIT) + GRACE;
}

function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new TypeError(`'${text}' is not an http(s) URL: write something like http://127.0.0.1:8000`);
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
