/** A2A agents as comm targets of the swarm: mail to `name@alias` goes to the agent behind the alias (decisions H2). */
import { createHash } from "node:crypto";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";
import type { Carriage, Carrier, OutgoingMail } from "../engine/carrier.js";
import { isEndingNotice } from "../engine/deciding/interswarm.js";
import type { Clock, Ids, RowWrite } from "../engine/ports.js";
import { isForLater, type Runtime, RuntimeError, settleMail } from "../engine/runtime/index.js";
import { createAgentAddress, parseAgentAddress } from "../mail/address.js";
import { buildResponse } from "../mail/build.js";
import { recipientsOf } from "../mail/render.js";
import { type BackoffPolicy, backoffDelay, Circuits, isTransient, NetError, pauseFor } from "../net/index.js";
import {
  type Attempt,
  type AttemptResult,
  Dispatcher,
  enqueue,
  type Final,
  type OutboxFinish,
  purgeFinished,
  type StoredItem,
} from "../outbox/index.js";
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
import type { A2aStore, Thread, ThreadPut } from "./state.js";
import { messageOf, textOf, textPart } from "./wire.js";

export interface A2aPeer {
  /** Where its card is: `<url>/.well-known/agent-card.json`. */
  readonly url: string;
  readonly token?: string;
}

export interface A2aCarrierOptions {
  readonly agents: Readonly<Record<string, A2aPeer>>;
  /** How they are reached: behind the outbound guard. */
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly store: A2aStore;
  readonly report: (problem: { code: string; message: string; cause: unknown }) => void;
  /** Milliseconds for which an agent that cannot be reached is tried again. Default: 2 minutes. */
  readonly deliveryTime?: number;
  /** Milliseconds for an answer. Default: 15 minutes. */
  readonly replyTimeout?: number;
  /** Milliseconds between two looks at a task that the agent goes on with. Default: 2 seconds. */
  readonly pollEvery?: number;
  /** Messages to one agent that may wait. Default: 10,000. */
  readonly maxWaiting?: number;
}

export const QUEUE = "a2a";

const BACKOFF: BackoffPolicy = { base: 250, factor: 2, cap: 30_000, jitter: 0.5 };
/** Short pauses: an agent that is back gets its mail soon. */
const CIRCUIT_PAUSE: BackoffPolicy = { base: 500, factor: 2, cap: 5_000, jitter: 0.2 };
/** An attempt lasts until the answer is there, and waiting costs nothing. */
const ATTEMPTS = 1_024;
const ATTEMPTS_PER_AGENT = 256;
/** How long outcomes are kept after they were told. */
const KEEP_FINISHED = 24 * 60 * 60 * 1000;

/** The agent says what it needs, and goes on with the task when it has that: by the next message, or by itself. */
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
        circuits: new Circuits({ pause: CIRCUIT_PAUSE }),
      },
    );
  }

  /** Begins to send, once there is a runtime to answer to. */
  start(runtime: Swarm): void {
    this.#runtime = runtime;
    this.#dispatcher.wake();
  }

  /** What is under way is left to the next process. To be called while the runtime still works. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#dispatcher.stop();
  }

  owns(alias: string): boolean {
    return Object.hasOwn(this.#options.agents, alias);
  }

  rows(mail: OutgoingMail): readonly RowWrite[] | Carriage {
    // A2A knows no word for "our task has ended": to the agent it would be one more message, to be worked on or, worse,
    // the answer to what it asked.
    if (isEndingNotice(mail.message)) return { ok: true };
    const { clock, ids, maxWaiting = 10_000 } = this.#options;
    const { backlog } = this.#dispatcher;
    if (backlog.isFull(mail.swarm, maxWaiting)) {
      return { ok: false, reason: `${maxWaiting} messages already wait for the A2A agent '${mail.swarm}'` };
    }
    backlog.add(mail.swarm);
    const now = clock.now();
    const name = nameOf(mail);
    return [
      enqueue({
        queue: QUEUE,
        id: ids.ordered(),
        // An agent works on several things at once, and takes its time for each.
        lane: name,
        target: mail.swarm,
        payload: JSON.stringify(mail),
        createdAt: now,
        dueAt: now,
        dedupeKey: name,
      }),
    ];
  }

  wake(mails: readonly OutgoingMail[]): void {
    if (this.#runtime !== undefined) this.#dispatcher.wake(mails.map(nameOf));
  }

  async find(mail: OutgoingMail): Promise<Carriage | "waiting" | undefined> {
    const item = await this.#options.store.outbox.byDedupeKey(QUEUE, nameOf(mail));
    if (item === undefined) return undefined;
    return item.outcome === undefined ? "waiting" : carriageOf(item.outcome, item.reason);
  }

  async #attempt({ item, signal }: Attempt): Promise<AttemptResult> {
    const { store } = this.#options;
    const mail = mailOf(item);
    const runtime = this.#started();
    const isWanted = await runtime.read(mail.task.key, ({ outbound }) =>
      outbound.some(({ message, swarm }) => message.id === mail.message.id && swarm === mail.swarm),
    );
    if (isWanted !== true) return { kind: "refused", reason: "not sent: its task was cancelled" };
    if (!this.owns(mail.swarm)) {
      return { kind: "refused", reason: `the A2A agent '${mail.swarm}' is not configured any more` };
    }
    for (const address of addressed(mail)) {
      const messageId = uuidFrom(`${mail.task.key}/${mail.message.id}/${address}`);
      // A crash may have come between the answer and the word that this was carried.
      if (await store.a2a.isSettled(messageId)) continue;
      const answer = await this.#ask(mail, address, messageId, signal).catch((error: unknown) =>
        this.#judge(item, error, signal),
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
      // Together with the answer: otherwise a message that is sent again after a crash would be taken for the next one.
      if (delivered && (await this.#deliver(runtime, mail, address, answer, [thread]))) continue;
      await store.commit({ appends: [], rows: [thread] }, "result");
      if (!answer.ok) return { kind: "refused", reason: answer.text };
    }
    return { kind: "delivered" };
  }

  /** An agent that was told of nothing yet may be told later. Else it may be at work, and is not told twice. */
  #judge(item: StoredItem, error: unknown, signal: AbortSignal): AttemptResult {
    const { clock, deliveryTime = 120_000 } = this.#options;
    const said = error instanceof NotAsked ? error.cause : error;
    const reason = signal.aborted
      ? "it did not answer in time"
      : said instanceof Error
        ? said.message
        : String(said);
    const text = `the A2A agent '${item.target}' could not be asked: ${reason}`;
    const isUntold = error instanceof NotAsked ? mayPass(said) : wasNotTaken(said);
    if (!isUntold || signal.aborted || clock.now() >= item.createdAt + deliveryTime) {
      return { kind: "refused", reason: text };
    }
    return { kind: "retry", reason: text };
  }

  async #settle(item: StoredItem, { outcome, reason }: Final, finish: OutboxFinish): Promise<void> {
    const { store, clock } = this.#options;
    const { task, message, swarm } = mailOf(item);
    const mail = { key: task.key, messageId: message.id, swarm };
    const forget = purgeFinished(QUEUE, clock.now() - KEEP_FINISHED);
    const to = { runtime: this.#started(), store };
    await settleMail(to, mail, carriageOf(outcome, reason), [finish, forget]);
  }

  #started(): Swarm {
    if (this.#runtime === undefined) throw new Error("the A2A carrier has not been started");
    return this.#runtime;
  }

  async #ask(mail: OutgoingMail, address: string, messageId: string, signal: AbortSignal): Promise<Answer> {
    const { clock, pollEvery = 2_000 } = this.#options;
    const client = await this.#client(mail.swarm).catch((error: unknown) => {
      throw new NotAsked(error);
    });
    const thread = await this.#options.store.a2a.thread(mail.task.key, address);
    const tell = (taskId: string) => {
      const message = messageOf({
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
      // It did not wait for us. What is said now begins another task in the same context.
      return tell("");
    });
    while (!isMessage(result) && PENDING.has(stateOf(result))) {
      await pauseFor(clock, pollEvery, signal);
      signal.throwIfAborted();
      result = await look(client, result, signal);
    }
    return read(result);
  }

  /**
   * Puts the agent's answer into the task, however long that cannot be written. False if the task has ended meanwhile: it
   * is too late for it.
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
    for (let failures = 1; ; failures += 1) {
      try {
        await runtime.receive(input);
        return true;
      } catch (cause) {
        if (!(cause instanceof RuntimeError) || this.#stop.signal.aborted) throw cause;
        if (!isForLater(cause)) return false;
        const text = `an answer of the A2A agent '${mail.swarm}' waits until it can be written`;
        if (failures === 1) report({ code: "a2a_answer_late", message: text, cause });
        await pauseFor(clock, backoffDelay(BACKOFF, failures, Math.random), this.#stop.signal);
      }
    }
  }

  /** The card is read once; one that could not be read is tried again with the next mail. */
  #client(alias: string): Promise<Client> {
    const peer = this.#options.agents[alias];
    if (peer === undefined) return Promise.reject(new Error("it is not configured"));
    const known = this.#clients.get(alias);
    if (known !== undefined) return known;
    const fetchImpl = withToken(this.#options.fetch, peer);
    const client = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl: this.#options.fetch }),
    }).createFromUrl(peer.url);
    this.#clients.set(alias, client);
    client.catch(() => this.#clients.delete(alias));
    return client;
  }
}

/** The agent's card could not be read, so nothing was said to it. */
class NotAsked extends Error {
  constructor(cause: unknown) {
    super("the agent was not asked", { cause });
  }
}

interface Answer {
  readonly thread: Thread;
  readonly ok: boolean;
  readonly text: string;
}

function read(result: Message | Task): Answer {
  if (isMessage(result)) {
    return { thread: { contextId: result.contextId, taskId: "" }, ok: true, text: textOf(result.parts) };
  }
  const state = stateOf(result);
  const waits = INTERRUPTED.has(state);
  const thread = { contextId: result.contextId, taskId: waits ? result.id : "" };
  const said = textOf(result.status?.message?.parts ?? []);
  const made = textOf(result.artifacts.flatMap(({ parts }) => parts));
  const text = made === "" || waits ? said : made;
  return waits || state === TaskState.TASK_STATE_COMPLETED
    ? { thread, ok: true, text }
    : { thread, ok: false, text: text === "" ? "the agent ended the task without an answer" : text };
}

/** How the task stands now; as it was if that could not be learned this time. */
async function look(client: Client, task: Task, signal: AbortSignal): Promise<Task> {
  try {
    return await client.getTask({ tenant: "", id: task.id, historyLength: 0 }, { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (mayPass(error)) return task;
    throw error;
  }
}

/** Whether the same question may be answered later. What the agent itself refuses is refused for good. */
function mayPass(error: unknown): boolean {
  if (error instanceof A2AError) return "envelopeCode" in error && error.envelopeCode === INTERNAL_ERROR;
  if (error instanceof NetError) return isTransient(error);
  const status = statusIn(error);
  return status === undefined || !/^4/.test(status) || ["408", "425", "429"].includes(status);
}

/** The SDK tells the status in words alone. */
function statusIn(error: unknown): string | undefined {
  return error instanceof Error
    ? /\b(?:Status: |Agent Card from \S+: )(\d{3})\b/.exec(error.message)?.[1]
    : undefined;
}

/** Whether the agent has certainly not begun to work on what it was told. */
function wasNotTaken(error: unknown): boolean {
  if (error instanceof NetError) return !error.sent && isTransient(error);
  return ["429", "503"].includes(statusIn(error) ?? "");
}

function responseTo({ message: mail, task, swarm }: OutgoingMail, from: string, answer: Answer, now: number) {
  const { message, id } = mail;
  return buildResponse({
    id: uuidFrom(`answer/${task.key}/${id}/${from}`),
    timestamp: new Date(now).toISOString(),
    taskId: task.id,
    requestId: "request_id" in message ? message.request_id : id,
    sender: createAgentAddress(from),
    recipient: createAgentAddress(message.sender.address),
    subject: `Re: ${message.subject}`,
    body: answer.text,
    senderSwarm: swarm,
  });
}

/** Mail of a task to an agent, under the same name whenever it is asked for. */
function nameOf({ task, message, swarm }: OutgoingMail): string {
  return `${task.key}/${message.id}/${swarm}`;
}

function mailOf({ payload }: StoredItem): OutgoingMail {
  // Our own writing, checked by the compiler where it was made.
  return JSON.parse(payload);
}

function carriageOf(outcome: Final["outcome"], reason: string | undefined): Carriage {
  return outcome === "delivered" ? { ok: true } : { ok: false, reason: reason ?? outcome };
}

function addressed(mail: OutgoingMail): string[] {
  return recipientsOf(mail.message).flatMap(({ address_type, address }) =>
    address_type === "agent" && parseAgentAddress(address).swarm === mail.swarm ? [address] : [],
  );
}

/** Answers to answers would go on for ever. */
function expectsAnswer({ message }: OutgoingMail): boolean {
  return message.msg_type === "request" || message.msg_type === "interrupt";
}

/** A2A has no subjects. */
function bodyOf({ message: { message } }: OutgoingMail): string {
  return message.body === "" ? message.subject : message.body;
}

function isMessage(result: Message | Task): result is Message {
  return "messageId" in result;
}

/** The agent refused a message because its task is over, or forgotten. */
function hasEnded(error: unknown): boolean {
  return error instanceof UnsupportedOperationError || error instanceof TaskNotFoundError;
}

function stateOf(task: Task): TaskState {
  return task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
}

/** The token is for the configured place, whatever address the card names. */
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

/** The same text gives the same id: what is sent again after a crash can be recognised. */
function uuidFrom(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
