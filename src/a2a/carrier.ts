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
import type { Clock, RowWrite } from "../engine/ports.js";
import { type Runtime, RuntimeError } from "../engine/runtime/index.js";
import { withResolvers } from "../engine/runtime/waiters.js";
import { createAgentAddress, parseAgentAddress } from "../mail/address.js";
import { buildResponse } from "../mail/build.js";
import { recipientsOf } from "../mail/render.js";
import { isTransient, NetError } from "../net/index.js";
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
  readonly store: A2aStore;
  /** Milliseconds for an answer. Default: 15 minutes. */
  readonly replyTimeout?: number;
  /** Milliseconds between two looks at a task that the agent goes on with. Default: 2 seconds. */
  readonly pollEvery?: number;
}

/** The agent says what it needs, and goes on with the task when it has that: by the next message, or by itself. */
const INTERRUPTED = new Set([TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED]);
const PENDING = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
  TaskState.TASK_STATE_UNSPECIFIED,
]);

export class A2aCarrier implements Carrier {
  readonly #options: A2aCarrierOptions;
  readonly #clients = new Map<string, Promise<Client>>();
  readonly #stop = new AbortController();
  readonly #runtime = withResolvers<Runtime>();

  constructor(options: A2aCarrierOptions) {
    this.#options = options;
  }

  /** Where answers go. Mail that is to be sent before waits for it: recovery begins before anybody has a mailroom. */
  bind(runtime: Runtime): void {
    this.#runtime.resolve(runtime);
  }

  owns(alias: string): boolean {
    return Object.hasOwn(this.#options.agents, alias);
  }

  async send(mail: OutgoingMail): Promise<Carriage> {
    // A2A knows no word for "our task has ended": to the agent it would be one more message, to be worked on or, worse,
    // the answer to what it asked.
    if (isEndingNotice(mail.message)) return { accepted: true };
    const runtime = await this.#runtime.promise;
    try {
      for (const address of addressed(mail)) {
        const messageId = uuidFrom(`${mail.task.key}/${mail.message.id}/${address}`);
        // A crash may have come between the answer and the word that this was carried.
        if (await this.#options.store.a2a.isSettled(messageId)) continue;
        const answer = await this.#ask(mail, address, messageId);
        const thread: ThreadPut = {
          kind: "a2a.thread.put",
          task: mail.task.key,
          address,
          thread: answer.thread,
          ...(answer.ok && { settles: messageId }),
        };
        const delivered = answer.ok && expectsAnswer(mail);
        // Together with the answer: otherwise a message that is sent again after a crash would be taken for the next one.
        if (delivered && (await deliver(runtime, mail, address, answer, [thread]))) continue;
        await this.#options.store.commit({ appends: [], rows: [thread] });
        if (!answer.ok) return { accepted: false, reason: answer.text };
      }
      return { accepted: true };
    } catch (error) {
      // The next process sends it again, under the same id.
      if (this.#stop.signal.aborted) return new Promise(() => {});
      const reason = error instanceof Error ? error.message : String(error);
      return { accepted: false, reason: `the A2A agent '${mail.swarm}' could not be asked: ${reason}` };
    }
  }

  /** What is under way is left to the next process. */
  close(): void {
    this.#stop.abort();
  }

  async #ask(mail: OutgoingMail, address: string, messageId: string): Promise<Answer> {
    const client = await this.#client(mail.swarm);
    const limit = new AbortController();
    const cancel = this.#options.clock.after(this.#options.replyTimeout ?? 900_000, () =>
      limit.abort(new Error("it did not answer in time")),
    );
    const signal = AbortSignal.any([this.#stop.signal, limit.signal]);
    const thread = await this.#options.store.a2a.thread(mail.task.key, address);
    try {
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
        await this.#pause(signal);
        result = await look(client, result, signal);
      }
      return read(result);
    } finally {
      cancel();
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const fail = () => {
        cancel();
        reject(signal.reason);
      };
      const cancel = this.#options.clock.after(this.#options.pollEvery ?? 2_000, () => {
        signal.removeEventListener("abort", fail);
        resolve();
      });
      signal.addEventListener("abort", fail, { once: true });
    });
  }

  /** The card is read once; one that could not be read is tried again with the next mail. */
  #client(alias: string): Promise<Client> {
    const peer = this.#options.agents[alias];
    if (peer === undefined) return Promise.reject(new Error("it is not configured any more"));
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
  // The SDK tells the status in words alone.
  const status = error instanceof Error ? /\bStatus: (\d{3})\b/.exec(error.message)?.[1] : undefined;
  return status === undefined || !/^4/.test(status) || ["408", "425", "429"].includes(status);
}

/** Puts the agent's answer into the task. False if that has ended meanwhile: it is too late for it. */
async function deliver(
  runtime: Runtime,
  mail: OutgoingMail,
  from: string,
  answer: Answer,
  rows: readonly RowWrite[],
): Promise<boolean> {
  const { message, id } = mail.message;
  const sender = message.sender.address;
  const response = buildResponse({
    id: uuidFrom(`answer/${mail.task.key}/${id}/${from}`),
    timestamp: new Date().toISOString(),
    taskId: mail.task.id,
    requestId: "request_id" in message ? message.request_id : id,
    sender: createAgentAddress(from),
    recipient: createAgentAddress(sender),
    subject: `Re: ${message.subject}`,
    body: answer.text,
    senderSwarm: mail.swarm,
  });
  try {
    await runtime.receive({
      instance: mail.instance,
      taskId: mail.task.id,
      owner: mail.task.owner,
      contributors: [...mail.task.contributors],
      message: response,
      to: [sender],
      adopts: false,
      resumes: false,
      rows,
    });
    return true;
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return false;
  }
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
