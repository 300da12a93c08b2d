/** A typed client of a MAIL server: ours, or one of the reference. Runs wherever there is `fetch`. */
import type { MAILInterswarmMessage, MAILMessage } from "../mail/message.js";
import { AdminClient } from "./admin.js";
import { MailClientError } from "./errors.js";
import { eventOf, type MailEvent } from "./events.js";
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
  recordOf,
  type TaskList,
  type TaskRecord,
  taskEvents,
  taskPage,
} from "./tasks.js";
import {
  type Call,
  type CallOptions,
  type FetchFunction,
  Transport,
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
  type TaskStatus,
  type TaskSummary,
} from "./wire.js";

export interface MailClientOptions {
  readonly token?: string;
  /** Milliseconds for ordinary calls. Default: 30 seconds. */
  readonly timeout?: number;
  /** How often a call that could not be made is made again. Default: 2. */
  readonly retries?: number;
  /** Milliseconds before the first repetition; each later one waits about twice as long. Default: 200. */
  readonly retryPause?: number;
  /** How many times in a row a stream may be cut without bringing an event. Default: 10. */
  readonly reconnects?: number;
  /** Milliseconds of silence after which a stream is taken for dead. Default: one minute; servers ping every 15 s. */
  readonly idleLimit?: number;
  /** Default: the global one. */
  readonly fetch?: FetchFunction;
}

export interface Caller {
  readonly role: string;
  readonly id: string;
}

/** How a round of a task ended, or that it has not (`status: "running"`). */
export interface MessageAnswer {
  readonly response: string;
  readonly events: readonly MailEvent[] | undefined;
  /** Absent on servers of the reference, as is the status. */
  readonly task_id?: string | undefined;
  readonly status?: TaskStatus | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** The calls that a paused task waits for. */
  readonly breakpoint?: readonly BreakpointCall[] | undefined;
  /** What an agent needs before a paused task can go on (`credentials`); the response says how it can be given. */
  readonly reason?: string | undefined;
}

/** The server waits for an hour unless told otherwise; the client a little longer. */
const MESSAGE_WAIT = 3_600_000;
const GRACE = 30_000;

export class MailClient {
  readonly url: string;
  readonly admin: AdminClient;
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
  }

  /** `GET /`: what kind of server this is, and which swarm it serves. */
  ping(options: CallOptions = {}): Promise<ServerInfo> {
    return this.#transport.json({ method: "GET", path: "/", ...callOptions(options) }, ServerInfo);
  }

  getHealth(options: CallOptions = {}): Promise<Health> {
    return this.#transport.json({ method: "GET", path: "/health", ...callOptions(options) }, Health);
  }

  /** For admins: what `/health` shall say. */
  updateHealth(status: string, options: WriteOptions = {}): Promise<Health> {
    return this.#transport.json(post("/health", { status }, options), Health);
  }

  /** Uses this token from now on, if the server accepts it; otherwise none. */
  async login(token: string, options: CallOptions = {}): Promise<Caller> {
    this.#token = token;
    try {
      return await this.whoami(options);
    } catch (error) {
      if (error instanceof MailClientError) this.#token = undefined;
      throw error;
    }
  }

  logout(): void {
    this.#token = undefined;
  }

  async whoami(options: CallOptions = {}): Promise<Caller> {
    const call: Call = { method: "GET", path: "/whoami", ...callOptions(options) };
    const { role, id, username } = await this.#transport.json(call, Identity);
    return { role, id: id ?? username ?? "" };
  }

  getStatus(options: CallOptions = {}): Promise<ServerStatus> {
    return this.#transport.json({ method: "GET", path: "/status", ...callOptions(options) }, ServerStatus);
  }

  /** Puts a message to the swarm and waits for what becomes of it. A failed task is an answer, not an exception. */
  async postMessage(body: string, options: MessageOptions = {}): Promise<MessageAnswer> {
    const timeout = options.timeout ?? messageWait(options.kwargs);
    return this.#message(post("/message", messageBody(body, options), { ...options, timeout }));
  }

  /**
   * Puts a message to the swarm and yields what happens until the round has ended. A connection that is cut is taken up
   * again where it was, so that every event comes exactly once.
   * @throws MailStreamError when that is not possible; the task goes on all the same.
   */
  postMessageStream(
    body: string,
    options: MessageStreamOptions = {},
  ): AsyncGenerator<MailEvent, void, undefined> {
    const call = post("/message", { ...messageBody(body, options), stream: true }, options);
    return messageEvents(call, {
      ...this.#streaming(),
      pings: options.pings ?? false,
      ...(options.signal && { signal: options.signal }),
    });
  }

  /** The caller's newest tasks by id, in the reference's form. For all of them use `listTasks`. */
  async getTasks(options: CallOptions = {}): Promise<Readonly<Record<string, TaskRecord>>> {
    const call: Call = { method: "GET", path: "/tasks", ...callOptions(options) };
    const tasks = await this.#transport.json(call, RawTasks);
    return Object.fromEntries(Object.entries(tasks).map(([id, task]) => [id, recordOf(task)]));
  }

  /** All of the caller's tasks, newest first, fetched page by page as they are asked for. */
  listTasks(options: TaskListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    return allTasks(this.#transport, "/tasks", options);
  }

  getTaskPage(options: TaskListOptions = {}): Promise<TaskList> {
    return taskPage(this.#transport, "/tasks", options);
  }

  async getTask(taskId: string, options: CallOptions = {}): Promise<TaskRecord> {
    try {
      return await readTask(this.#transport, taskPath(taskId), options);
    } catch (error) {
      // A server of the reference has no such route, and its own wants a body on a GET, which `fetch` cannot send.
      const missing = error instanceof MailClientError && error.status === 404;
      if (!missing || (await this.#transport.deduplicates(options.signal))) throw error;
      const task = (await this.getTasks(options))[taskId];
      if (task === undefined) throw error;
      return task;
    }
  }

  /** A task's events from the first, or after the one given, and then as they happen. */
  taskEvents(taskId: string, options: TaskEventsOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    return taskEvents(this.#source(taskPath(taskId)), options);
  }

  /** @throws MailClientError with status 409 when the task has ended */
  async cancelTask(taskId: string, options: WriteOptions = {}): Promise<void> {
    await this.#transport.json(post(`${taskPath(taskId)}/cancel`, {}, options), AnyObject);
  }

  /** Answers the calls that a paused task waits for, and waits for what becomes of it. */
  answerBreakpoint(
    taskId: string,
    results: BreakpointAnswer,
    options: WriteOptions & { readonly wait?: boolean } = {},
  ): Promise<MessageAnswer> {
    const timeout = options.timeout ?? MESSAGE_WAIT + GRACE;
    const body = defined({ results, wait: options.wait });
    return this.#message(post(`${taskPath(taskId)}/breakpoint`, body, { ...options, timeout }));
  }

  async getSwarms(options: CallOptions = {}): Promise<readonly RemoteSwarm[]> {
    const call: Call = { method: "GET", path: "/swarms", ...callOptions(options) };
    return (await this.#transport.json(call, RemoteSwarms)).swarms;
  }

  /** For admins: makes another swarm known to this one. */
  registerSwarm(options: RegisterSwarmOptions): Promise<SwarmReceipt> {
    const { name, baseUrl, authToken, volatile, metadata } = options;
    const body = defined({ name, base_url: baseUrl, auth_token: authToken, volatile, metadata });
    return this.#transport.json(post("/swarms", body, options), SwarmReceipt);
  }

  /** For admins. */
  dumpSwarm(options: CallOptions = {}): Promise<SwarmReceipt> {
    const call: Call = { method: "GET", path: "/swarms/dump", ...callOptions(options) };
    return this.#transport.json(call, SwarmReceipt);
  }

  /** For admins: replaces the definition of the swarm by one from a swarm file, as an object or as JSON text. */
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

  /** For agents (remote swarms): hands a task over. */
  postInterswarmForward(
    message: MAILInterswarmMessage,
    options: WriteOptions = {},
  ): Promise<InterswarmReceipt> {
    return this.#transport.json(post("/interswarm/forward", { message }, options), InterswarmReceipt);
  }

  /** For agents (remote swarms): answers in a task that was handed over. */
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
    // The reference answers with JSON inside of a JSON string.
    return typeof answer === "string" ? JSON.parse(answer) : answer;
  }

  async #message(call: Call): Promise<MessageAnswer> {
    const raw = await this.#transport.json(call, RawMessageAnswer);
    return {
      ...raw,
      response: raw.response ?? "",
      events: raw.events?.map(eventOf),
      error: raw.error ?? undefined,
      breakpoint: raw.breakpoint ?? undefined,
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

function post(path: string, body: unknown, options: WriteOptions): Call {
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
