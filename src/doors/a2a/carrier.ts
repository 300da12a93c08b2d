/**
 * A2A agents as comm targets of the swarm: delivers mail for `name@alias` to the agent with this alias (decision H2).
 */

import { createHash } from "node:crypto";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";
import type { Clock, Ids } from "../../base/index.js";
import {
  CircuitBreaker,
  isPublicError,
  isRetryable,
  messageOf,
  type Report,
  type RetryPolicy,
  retry,
  sleep,
} from "../../base/index.js";
import type { Carrier, DeliveryResult, OutgoingMail } from "../../engine/index.js";
import { type Runtime, settleMail } from "../../engine/index.js";
import type { RowWrite } from "../../journal/index.js";
import {
  buildResponse,
  createAgentAddress,
  isEndingNotice,
  parseAgentAddress,
  recipientsOf,
} from "../../mail/index.js";

import { isTransient, NetError } from "../../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  deliveryResult,
  enqueueMail,
  type FinalOutcome,
  mailIn,
  mailKey,
  type OutboxFinish,
  purgeFinished,
  type StoredItem,
} from "../../outbox/index.js";
import type { A2aContext, FullStore, ThreadPut } from "../../store/index.js";
import {
  A2AError,
  INTERNAL_ERROR,
  type Message,
  Role,
  type Task,
  TaskNotFoundError,
  TaskState,
  UnsupportedOperationError,
} from "./sdk.js";
import { answerText, buildMessage, textPart } from "./wire.js";

export interface A2aPeer {
  /** Base URL of its card: `<url>/.well-known/agent-card.json`. */
  readonly url: string;
  readonly token?: string;
}

export type A2aCarrierStore = Pick<FullStore, "commit" | "a2a" | "outbox">;

export interface A2aCarrierOptions {
  readonly agents: Readonly<Record<string, A2aPeer>>;
  /** The HTTP client, behind the outbound guard. */
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly store: A2aCarrierStore;
  readonly report: Report;
  /** Milliseconds to retry an unreachable agent. Default: 2 minutes. */
  readonly deliveryTime?: number;
  /** Milliseconds to wait for an answer. Default: 15 minutes. */
  readonly replyTimeout?: number;
  /** Milliseconds between polls of a task that the agent is working on. Default: 2 seconds. */
  readonly pollEvery?: number;
  /** Maximum number of messages that wait for one agent. Default: 10,000. */
  readonly maxWaiting?: number;
}

const QUEUE = "a2a";

const BACKOFF: RetryPolicy = { base: 250, factor: 2, cap: 30_000, jitter: 0.5 };
/** Short delays, so that a recovered agent gets its mail soon. */
const CIRCUIT_PAUSE: RetryPolicy = { base: 500, factor: 2, cap: 5_000, jitter: 0.2 };
/** High, because an attempt lasts until the answer arrives, and waiting is cheap. */
const ATTEMPTS = 1_024;
const ATTEMPTS_PER_AGENT = 256;
/** How long outcomes are kept after they were reported. */
const KEEP_FINISHED = 24 * 60 * 60 * 1000;

/** The agent states what it needs and continues the task when it has that, with or without another message. */
const INTERRUPTED = new Set([TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED]);
const PENDING = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
  TaskState.TASK_STATE_UNSPECIFIED,
]);

type Swarm = Pick<Runtime, "command" | "read" | "receive">;

export class A2aCarrier implements Carrier {
  readonly #options: A2aCarrierOptions;
  readonly #dispatcher: Dispatcher;
  readonly #clients = new Map<string, Promise<Client>>();
  readonly #stop = new AbortController();
  #runtime: Swarm | undefined;

  constructor(options: A2aCarrierOptions) {
    this.#options = options;
    const { store, clock, report, replyTimeout = 900_000 } = options;
    this.#dispatcher = new Dispatcher(
      { store, reads: store.outbox, clock, report },
      {
        queue: QUEUE,
        handler: (attempt) => this.#attempt(attempt),
        settle: (item, final, finish) => this.#settle(item, final, finish),
        concurrency: ATTEMPTS,
        targetConcurrency: ATTEMPTS_PER_AGENT,
        timeLimit: replyTimeout,
        backoff: BACKOFF,
        circuits: new CircuitBreaker({ pause: CIRCUIT_PAUSE }),
      },
    );
  }

  /** Starts sending. Requires the runtime, which receives the answers. */
  start(runtime: Swarm): void {
    this.#runtime = runtime;
    this.#dispatcher.wake();
  }

  /** For administrators. */
  get outbox(): Dispatcher {
    return this.#dispatcher;
  }

  /** Leaves running deliveries to the next process. Call it before the runtime closes. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#dispatcher.stop();
  }

  owns(alias: string): boolean {
    return Object.hasOwn(this.#options.agents, alias);
  }

  rows(mail: OutgoingMail): readonly RowWrite[] | DeliveryResult {
    // A2A has no notice of an ended task. The agent would treat it as another message, or as the answer to its
    // question.
    if (isEndingNotice(mail.message)) return { ok: true };
    const { clock, ids, maxWaiting = 10_000 } = this.#options;
    const { backlog } = this.#dispatcher;
    if (backlog.isFull(mail.swarm, maxWaiting)) {
      return { ok: false, reason: `${maxWaiting} messages already wait for the A2A agent '${mail.swarm}'` };
    }
    backlog.add(mail.swarm);
    const now = clock.now();
    // A lane for each message: an agent may work on several concurrently.
    return [enqueueMail(mail, { queue: QUEUE, id: ids.ordered(), lane: mailKey(mail), now })];
  }

  wake(mails: readonly OutgoingMail[]): void {
    if (this.#runtime !== undefined) this.#dispatcher.wake(mails.map(mailKey));
  }

  async find(mail: OutgoingMail): Promise<DeliveryResult | "waiting" | undefined> {
    const item = await this.#options.store.outbox.byDedupeKey(QUEUE, mailKey(mail));
    if (item === undefined) return undefined;
    return item.outcome === undefined ? "waiting" : deliveryResult(item.outcome, item.reason);
  }

  async #attempt({ item, signal }: Attempt): Promise<AttemptResult> {
    const { store } = this.#options;
    const mail = mailIn(item);
    const runtime = this.#started();
    const isWanted = await runtime.read(
      mail.task.key,
      ({ outbound, outstanding }) =>
        outbound.some(({ message, swarm }) => message.id === mail.message.id && swarm === mail.swarm) ||
        // Another of its recipients may have answered already.
        outstanding.some(({ requestId, to }) => requestId === requestIdOf(mail) && isIn(to, mail.swarm)),
    );
    if (isWanted !== true) return { kind: "refused", reason: "not sent because its task was cancelled" };
    if (!this.owns(mail.swarm)) {
      return { kind: "refused", reason: `the A2A agent '${mail.swarm}' is no longer configured` };
    }
    for (const address of addressed(mail)) {
      const messageId = uuidFrom(`${mail.task.key}/${mail.message.id}/${address}`);
      // A crash may have happened between committing the answer and settling the delivery.
      if (await store.a2a.isSettled(messageId)) continue;
      const answer = await this.#ask(mail, address, messageId, signal).catch((error: unknown) =>
        this.#classifyFailure(item, error, signal),
      );
      if ("kind" in answer) return answer;
      const thread: ThreadPut = {
        kind: "a2a.thread.put",
        task: mail.task.key,
        address,
        thread: answer.thread,
        ...(answer.ok && { settles: messageId }),
      };
      const delivered = answer.ok && expectsAnswer(mail);
      // Committed with the answer; otherwise a message that is repeated after a crash would count as the next one.
      if (delivered && (await this.#deliver(runtime, mail, address, answer, [thread]))) continue;
      await store.commit({ appends: [], rows: [thread] }, "result");
      if (!answer.ok) return { kind: "refused", reason: answer.text };
    }
    return { kind: "delivered" };
  }

  /** Retry only if the agent has certainly not received the message. Otherwise it may be working on it. */
  #classifyFailure(item: StoredItem, error: unknown, signal: AbortSignal): AttemptResult {
    const { clock, deliveryTime = 120_000 } = this.#options;
    const cause = error instanceof CardUnavailable ? error.cause : error;
    const reason = signal.aborted ? "it did not answer within the time limit" : messageOf(cause);
    const text = `the A2A agent '${item.target}' did not answer: ${reason}`;
    const canRetry = error instanceof CardUnavailable ? isTransientError(cause) : wasNotReceived(cause);
    if (!canRetry || signal.aborted || clock.now() >= item.createdAt + deliveryTime) {
      return { kind: "refused", reason: text };
    }
    return { kind: "retry", reason: text };
  }

  async #settle(item: StoredItem, { outcome, reason }: FinalOutcome, finish: OutboxFinish): Promise<void> {
    const { store, clock } = this.#options;
    const { task, message, swarm } = mailIn(item);
    const mail = { key: task.key, messageId: message.id, swarm };
    const forget = purgeFinished(QUEUE, clock.now() - KEEP_FINISHED);
    const to = { runtime: this.#started(), store };
    await settleMail(to, mail, deliveryResult(outcome, reason), [finish, forget]);
  }

  #started(): Swarm {
    if (this.#runtime === undefined) throw new Error("the A2A carrier has not been started");
    return this.#runtime;
  }

  async #ask(mail: OutgoingMail, address: string, messageId: string, signal: AbortSignal): Promise<Answer> {
    const { clock, pollEvery = 2_000 } = this.#options;
    const client = await this.#client(mail.swarm).catch((error: unknown) => {
      throw new CardUnavailable(error);
    });
    const thread = await this.#options.store.a2a.thread(mail.task.key, address);
    const tell = (taskId: string) => {
      const message = buildMessage({
        id: messageId,
        contextId: thread?.contextId ?? "",
        taskId,
        role: Role.ROLE_USER,
        parts: [textPart(bodyOf(mail))],
      });
      return client.sendMessage(
        { tenant: "", message, metadata: undefined, configuration: undefined },
        { signal },
      );
    };
    const open = thread?.taskId ?? "";
    let result = await tell(open).catch((error: unknown) => {
      if (open === "" || !hasEnded(error)) throw error;
      // The agent's task is no longer waiting. The message begins another task in the same context.
      return tell("");
    });
    while (!isMessage(result) && PENDING.has(stateOf(result))) {
      await sleep(clock, pollEvery, signal);
      result = await look(client, result, signal);
    }
    return read(result);
  }

  /**
   * Posts the agent's answer to the task, retrying while the store cannot write. Returns false if the task has ended
   * meanwhile.
   */
  async #deliver(
    runtime: Swarm,
    mail: OutgoingMail,
    from: string,
    answer: Answer,
    rows: readonly RowWrite[],
  ): Promise<boolean> {
    const { clock, report } = this.#options;
    const message = responseTo(mail, from, answer, clock.now());
    const input = {
      instance: mail.instance,
      taskId: mail.task.id,
      owner: mail.task.owner,
      contributors: [...mail.task.contributors],
      message,
      to: [mail.message.message.sender.address],
      adopts: false,
      resumes: false,
      rows,
    };
    const classify = (cause: unknown, failures: number) => {
      if (!isPublicError(cause) || !isRetryable(cause)) return "stop";
      const text = `cannot store an answer of the A2A agent '${mail.swarm}'; retrying`;
      if (failures === 1) report({ code: "a2a_answer_late", message: text, cause });
      return "retry";
    };
    const { signal } = this.#stop;
    try {
      await retry(() => runtime.receive(input), {
        policy: BACKOFF,
        clock,
        random: Math.random,
        signal,
        classify,
      });
      return true;
    } catch (cause) {
      if (!isPublicError(cause) || signal.aborted) throw cause;
      return false;
    }
  }

  /** The card is read once; after a failure the next delivery reads it again. */
  #client(alias: string): Promise<Client> {
    const peer = this.#options.agents[alias];
    if (peer === undefined) return Promise.reject(new Error("it is not configured"));
    const known = this.#clients.get(alias);
    if (known !== undefined) return known;
    const fetchImpl = withToken(this.#options.fetch, peer);
    // Agents of version 0.3 are still common.
    const legacyCompat = { enabled: true };
    const client = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl: this.#options.fetch, legacyCompat }),
    }).createFromUrl(peer.url);
    this.#clients.set(alias, client);
    client.catch(() => this.#clients.delete(alias));
    return client;
  }
}

/** The agent's card could not be read, so the agent has received nothing. */
class CardUnavailable extends Error {
  constructor(cause: unknown) {
    super("the agent was not called", { cause });
  }
}

interface Answer {
  readonly thread: A2aContext;
  readonly ok: boolean;
  readonly text: string;
}

function read(result: Message | Task): Answer {
  if (isMessage(result)) {
    return { thread: { contextId: result.contextId, taskId: "" }, ok: true, text: answerText(result.parts) };
  }
  const state = stateOf(result);
  const waits = INTERRUPTED.has(state);
  const thread = { contextId: result.contextId, taskId: waits ? result.id : "" };
  const statusText = answerText(result.status?.message?.parts ?? []);
  const made = answerText(result.artifacts.flatMap(({ parts }) => parts));
  const text = made === "" || waits ? statusText : made;
  return waits || state === TaskState.TASK_STATE_COMPLETED
    ? { thread, ok: true, text }
    : { thread, ok: false, text: text === "" ? "the agent ended the task without an answer" : text };
}

/** Returns the task's current state, or the previous one if the poll failed. */
async function look(client: Client, task: Task, signal: AbortSignal): Promise<Task> {
  try {
    return await client.getTask({ tenant: "", id: task.id, historyLength: 0 }, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (isTransientError(error)) return task;
    throw error;
  }
}

/** Whether a retry can succeed. A rejection by the agent itself is final. */
function isTransientError(error: unknown): boolean {
  if (error instanceof A2AError) return "envelopeCode" in error && error.envelopeCode === INTERNAL_ERROR;
  if (error instanceof NetError) return isTransient(error);
  const status = statusIn(error);
  return status === undefined || !/^4/.test(status) || ["408", "425", "429"].includes(status);
}

/** The SDK reports the status only in the message. */
function statusIn(error: unknown): string | undefined {
  return error instanceof Error
    ? /\b(?:Status: |Agent Card from \S+: )(\d{3})\b/.exec(error.message)?.[1]
    : undefined;
}

/** Whether the agent has certainly not begun to work on the message. */
function wasNotReceived(error: unknown): boolean {
  if (error instanceof NetError) return !error.mayHaveArrived && isTransient(error);
  return ["429", "503"].includes(statusIn(error) ?? "");
}

function responseTo(outgoing: OutgoingMail, from: string, answer: Answer, now: number) {
  const { message: mail, task, swarm } = outgoing;
  const { message, id } = mail;
  return buildResponse({
    id: uuidFrom(`answer/${task.key}/${id}/${from}`),
    timestamp: new Date(now).toISOString(),
    taskId: task.id,
    requestId: requestIdOf(outgoing),
    sender: createAgentAddress(from),
    recipient: createAgentAddress(message.sender.address),
    subject: `Re: ${message.subject}`,
    body: answer.text,
    senderSwarm: swarm,
  });
}

function addressed(mail: OutgoingMail): string[] {
  return recipientsOf(mail.message).flatMap(({ address_type, address }) =>
    address_type === "agent" && parseAgentAddress(address).swarm === mail.swarm ? [address] : [],
  );
}

/** Answers to answers would never end. */
function expectsAnswer({ message }: OutgoingMail): boolean {
  return message.msg_type !== "response";
}

function requestIdOf({ message: { id, message } }: OutgoingMail): string {
  if ("request_id" in message) return message.request_id;
  return "broadcast_id" in message ? message.broadcast_id : id;
}

function isIn(address: string, swarm: string): boolean {
  return parseAgentAddress(address).swarm === swarm;
}

/** A2A has no subjects. */
function bodyOf({ message: { message } }: OutgoingMail): string {
  return message.body === "" ? message.subject : message.body;
}

function isMessage(result: Message | Task): result is Message {
  return "messageId" in result;
}

/** The agent rejected a message because its task has ended or is unknown. */
function hasEnded(error: unknown): boolean {
  return error instanceof UnsupportedOperationError || error instanceof TaskNotFoundError;
}

function stateOf(task: Task): TaskState {
  return task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
}

/** The token is sent only to the configured origin, not to other URLs in the card. */
function withToken(send: typeof fetch, { url, token }: A2aPeer): typeof fetch {
  if (token === undefined) return send;
  return (input, init) => {
    const target = input instanceof Request ? input.url : String(input);
    if (new URL(target).origin !== new URL(url).origin) return send(input, init);
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return send(input, { ...init, headers });
  };
}

/** The same text gives the same id, so that the agent can recognize a repeated message. */
function uuidFrom(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
