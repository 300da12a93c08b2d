/**
 * A peer's message becomes a task of the local swarm, one task per thread, and a reply goes to the agent that waits
 * for it (decision G2). Every step is committed together with the status that records it, so a crash repeats nothing.
 */

import { isPublicError, isRetryable, retryDelay } from "../../base/index.js";
import type { InstanceId, Runtime, Store, TaskReads } from "../../engine/index.js";
import { RowConflictError } from "../../journal/index.js";
import { buildResponse, createAgentAddress } from "../../mail/index.js";
import type { MeshAgent } from "../agent.js";
import { RateLimiter } from "../limits.js";
import { isMuted } from "../membership/admit.js";
import type { QueuedMessage } from "../messages.js";
import type { MeshReads } from "../ports.js";
import { derivedUuid } from "../send/message.js";
import { formatTime, parseTime } from "../time.js";
import type { QueueStatusChange } from "../writes.js";
import { buildMessageContext, type MessageContextOptions } from "./message-context.js";
import { readOrigin } from "./origin.js";
import { RETRY_DELAYS, Replies } from "./replies.js";

export interface InboundOptions {
  readonly agent: MeshAgent;
  readonly runtime: Runtime;
  readonly store: { readonly commit: Store["commit"]; readonly mesh: MeshReads; readonly tasks: TaskReads };
  /** The agent that receives the mail. Default: the swarm's entrypoint. */
  readonly entrypoint?: string;
  readonly context?: MessageContextOptions;
  /** Tasks that one peer can open per hour. Default 20. */
  readonly tasksPerHour?: number;
  /** Further messages of one peer per hour, to its tasks or in reply to one of our messages. Default 60. */
  readonly messagesPerHour?: number;
}

const PAGE = 50;
/** Beyond this number it is cheaper to scan all pending messages. */
const MOST_ARRIVED = 1_000;
const HOUR = 3_600_000;

export class InboundBridge {
  readonly #options: InboundOptions;
  readonly #opened: RateLimiter;
  readonly #further: RateLimiter;
  readonly #stop = new AbortController();
  readonly #replies: Replies;
  #unsubscribe: (() => void) | undefined;
  #pumping: Promise<void> | undefined;
  #again = false;
  /** Messages that arrived since, in order. */
  #arrived: string[] = [];
  /** Peers and threads whose messages are postponed. Their later messages also wait, so that none overtakes another. */
  readonly #postponed = new Set<string>();
  #failures = 0;
  #isLate = false;
  /** Whether all pending messages must be scanned: after the start, and when postponed messages are due. */
  #startOver = true;
  #cancelRetry: (() => void) | undefined;

  constructor(options: InboundOptions) {
    const { agent, runtime, store, tasksPerHour = 20, messagesPerHour = 60 } = options;
    this.#options = options;
    this.#opened = new RateLimiter({ count: tasksPerHour, window: HOUR });
    this.#further = new RateLimiter({ count: messagesPerHour, window: HOUR });
    const { signal } = this.#stop;
    this.#replies = new Replies({ agent, runtime, store, signal, onEnded: () => this.#retrySoon() });
  }

  /** Processes messages that are already queued, also by an earlier process, and then new ones as they arrive. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#options.agent.onMessage(({ id }) => {
      if (this.#arrived.push(id) > MOST_ARRIVED) this.#startOver = true;
      this.#pump();
    });
    let last: string | undefined;
    for (;;) {
      const page = await this.#options.store.mesh.queued("processing", PAGE, last);
      for (const message of page) this.#replies.watch(message);
      if (page.length < PAGE) break;
      last = page.at(-1)?.id;
    }
    this.#pump();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#cancelRetry?.();
    this.#stop.abort();
    await Promise.all([this.#pumping, this.#replies.stopped()]);
  }

  /** Resolves when only postponed messages are pending. */
  async quiet(): Promise<void> {
    while (this.#pumping !== undefined) await this.#pumping;
  }

  #pump(): void {
    if (this.#stop.signal.aborted) return;
    if (this.#pumping !== undefined) {
      this.#again = true;
      return;
    }
    this.#pumping = this.#takeAll().finally(() => {
      this.#pumping = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.#pump();
    });
  }

  async #takeAll(): Promise<void> {
    try {
      if (this.#startOver) await this.#processPending();
      for (let id = this.#arrived.shift(); id !== undefined; id = this.#arrived.shift()) {
        const message = await this.#options.store.mesh.message(id);
        if (message !== undefined && isWaiting(message)) await this.#takeOrPutOff(message);
        if (this.#stop.signal.aborted) return;
      }
    } catch (cause) {
      // Keeps the order: later messages must not overtake one that could not be processed.
      this.#startOver = true;
      this.#postpone(cause);
    }
    if (this.#cancelRetry !== undefined || this.#startOver) return;
    this.#isLate = false;
    this.#failures = 0;
  }

  /** The position of a message orders the pages of one scan only: a late message may sort before it. */
  async #processPending(): Promise<void> {
    this.#startOver = false;
    this.#postponed.clear();
    this.#arrived = [];
    let last: string | undefined;
    for (;;) {
      const page = await this.#options.store.mesh.queued("pending", PAGE, last);
      for (const message of page) {
        await this.#takeOrPutOff(message);
        if (this.#stop.signal.aborted) return;
      }
      if (page.length < PAGE) return;
      last = page.at(-1)?.id;
    }
  }

  async #takeOrPutOff(message: QueuedMessage): Promise<void> {
    try {
      await this.#take(message).catch((cause: unknown) => {
        if (!isFinal(cause)) throw cause;
        return this.#fail(message, cause);
      });
    } catch (cause) {
      if (mayPass(cause)) this.#postpone(cause);
    }
  }

  /** Remaining messages wait for the timer, together with later messages of the same peer or thread. */
  #postpone(cause: unknown): void {
    if (this.#cancelRetry !== undefined || this.#stop.signal.aborted) return;
    const { report } = this.#options.agent.context.parts;
    const message = `messages from peers cannot become tasks yet and are retried: ${String(cause)}`;
    if (!this.#isLate) report({ code: "mesh_bridge_late", message, cause });
    this.#isLate = true;
    this.#failures += 1;
    this.#retryLater();
  }

  #retryLater(): void {
    const { clock, random = Math.random } = this.#options.agent.context.parts;
    this.#cancelRetry = clock.after(retryDelay(RETRY_DELAYS, this.#failures, random), () => {
      this.#cancelRetry = undefined;
      this.#startOver = true;
      this.#pump();
    });
  }

  /** A task ended, so there may be capacity: resets the retry delay. Several ends cause one retry. */
  #retrySoon(): void {
    if (this.#cancelRetry === undefined || this.#failures <= 1) return;
    this.#cancelRetry();
    this.#failures = 1;
    this.#retryLater();
  }

  async #take(message: QueuedMessage): Promise<void> {
    const { agent, store } = this.#options;
    if (isMuted(agent.context.view, message.swarmId, message.senderId))
      return this.#mark(message, "completed");
    if (this.#isExpired(message)) return this.#mark(message, "expired");
    if (message.inReplyTo !== undefined) {
      const [sent] = (await store.mesh.sentById(message.inReplyTo)).filter(
        ({ recipientId, swarmId }) => recipientId === message.senderId && swarmId === message.swarmId,
      );
      if (sent !== undefined) return this.#answer(message, sent.origin);
    }
    await this.#open(message);
  }

  /** Delivers a reply to the agent that sent the original message. A reply never opens or resumes a task. */
  async #answer(message: QueuedMessage, originText: string | undefined): Promise<void> {
    const { agent, runtime } = this.#options;
    const origin = readOrigin(originText);
    const swarm = agent.context.view.swarms.get(message.swarmId);
    if (origin === undefined || swarm === undefined) return this.#mark(message, "completed");
    const question = `reply/${peerOf(message)}/${message.inReplyTo}`;
    if (!this.#further.check(question, agent.context.now).allowed) {
      return this.#leaveInInbox(message, "has reached the limit of replies to one message per hour");
    }
    const mail = buildResponse({
      id: derivedUuid(`mesh/${message.id}`),
      timestamp: formatTime(message.receivedAt),
      taskId: origin.taskId,
      requestId: origin.requestId,
      sender: createAgentAddress(`${message.senderId}@${swarm.alias}`),
      recipient: createAgentAddress(origin.agent),
      subject: origin.subject,
      body: message.content,
      senderSwarm: swarm.alias,
    });
    try {
      await runtime.receive({
        instance: origin.instance,
        taskId: origin.taskId,
        owner: origin.owner,
        contributors: origin.contributors,
        message: mail,
        to: [origin.agent],
        adopts: false,
        resumes: false,
        rows: [this.#markRow(message, "completed")],
      });
      this.#further.consume(question, agent.context.now);
    } catch (error) {
      // The task has ended or was removed: the message only stays in the inbox.
      if (!isFinal(error)) throw error;
      await this.#mark(message, "completed");
    }
  }

  async #open(message: QueuedMessage): Promise<void> {
    const { agent, runtime, store, entrypoint, context = { messages: 10 } } = this.#options;
    const peer = peerOf(message);
    const instance: InstanceId = { role: "user", id: `mesh/${peer}` };
    const taskId = message.threadId ?? message.messageId;
    const isKnown = (await store.tasks.find(instance, taskId)) !== undefined;
    const lane = isKnown ? `thread/${peer}/${taskId}` : peer;
    if (this.#postponed.has(lane)) return;
    const limiter = isKnown ? this.#further : this.#opened;
    if (!limiter.check(peer, agent.context.now).allowed) {
      const what = isKnown ? "messages to its tasks" : "new tasks";
      return this.#leaveInInbox(message, `has reached the limit of ${what} per hour`);
    }
    const about = await buildMessageContext(agent, store.mesh, message, context);
    try {
      const posted = await runtime.post(instance, {
        taskId,
        subject: `Message from ${message.senderId}`,
        body: message.content,
        ...(about !== undefined && { routingInfo: { context: about } }),
        ...(entrypoint !== undefined && { entrypoint }),
        rows: (at) => [{ ...this.#markRow(message, "processing"), taskKey: `${at.key}#${at.number}` }],
      });
      limiter.consume(peer, agent.context.now);
      this.#failures = 0;
      this.#replies.watch({ ...message, taskKey: `${posted.key}#${posted.number}` });
    } catch (error) {
      if (mayPass(error)) this.#postponed.add(lane);
      throw error;
    }
  }

  #isExpired({ envelope }: QueuedMessage): boolean {
    const { expires_at }: { expires_at?: string } = JSON.parse(envelope);
    const at = expires_at === undefined ? undefined : parseTime(expires_at);
    return at !== undefined && at <= this.#options.agent.context.now;
  }

  async #leaveInInbox(message: QueuedMessage, why: string): Promise<void> {
    this.#options.agent.context.parts.report({
      code: "mesh_bridge_limit",
      message: `${message.senderId} ${why}: message ${message.messageId} stays in the inbox`,
    });
    await this.#mark(message, "completed");
  }

  #markRow({ id }: QueuedMessage, status: QueueStatusChange["status"]): QueueStatusChange {
    return { kind: "mesh.queue.mark", id, from: ["pending"], status, at: this.#options.agent.context.now };
  }

  async #mark(message: QueuedMessage, status: QueueStatusChange["status"]): Promise<void> {
    await this.#options.store.commit({ appends: [], rows: [this.#markRow(message, status)] });
  }

  async #fail(message: QueuedMessage, cause: unknown): Promise<void> {
    const text = `message ${message.messageId} from ${message.senderId} could not become a task: ${String(cause)}`;
    this.#options.agent.context.parts.report({ code: "mesh_bridge_failed", message: text, cause });
    await this.#mark(message, "failed");
  }
}

function peerOf({ swarmId, senderId }: QueuedMessage): string {
  return `${swarmId}/${senderId}`;
}

/** A message that was archived or deleted before it became a task never becomes one. */
function isWaiting({ status, box }: QueuedMessage): boolean {
  return status === "pending" && (box === "unread" || box === "read");
}

/** Whether the runtime would reject it again. */
function isFinal(error: unknown): boolean {
  return isPublicError(error) && !isRetryable(error);
}

/**
 * Errors other than rejections are store failures and can pass, except a status conflict: the message was already
 * processed.
 */
function mayPass(error: unknown): boolean {
  return !isFinal(error) && !(error instanceof RowConflictError);
}
