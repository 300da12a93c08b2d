/**
 * Decisions G2. A message of a peer becomes a task of our swarm, one task per thread, and a reply goes to the agent that
 * is waiting for it. Every step is committed with the mark that says it was done, so a crash repeats nothing.
 */
import { type InstanceId, RowConflictError, type Store, type TaskIndex } from "../../engine/ports.js";
import { isForLater, type Runtime, RuntimeError } from "../../engine/runtime/index.js";
import { createAgentAddress } from "../../mail/address.js";
import { buildResponse } from "../../mail/build.js";
import { backoffDelay } from "../../net/index.js";
import { RateLimiter } from "../limits.js";
import { isMuted } from "../membership/admit.js";
import type { MeshNode } from "../node.js";
import type { MeshReads, QueuedMessage } from "../queue.js";
import { derivedUuid } from "../sending.js";
import { formatTime, parseTime } from "../time.js";
import type { QueueMark } from "../writes.js";
import { Answers } from "./answers.js";
import { type ContextOptions, contextOf, renderBody } from "./context.js";
import { readOrigin } from "./origin.js";
import { PAUSES } from "./pauses.js";

export interface InboundOptions {
  readonly node: MeshNode;
  readonly runtime: Runtime;
  readonly store: { readonly commit: Store["commit"]; readonly mesh: MeshReads; readonly tasks: TaskIndex };
  /** The agent that gets the mail. Default: the swarm's entrypoint. */
  readonly entrypoint?: string;
  readonly context?: ContextOptions;
  /** Tasks that one peer may open in an hour. Default 20. */
  readonly tasksPerHour?: number;
  /** Further messages of one peer in an hour: to the tasks that it has here, or in reply to one of ours. Default 60. */
  readonly messagesPerHour?: number;
}

const PAGE = 50;
/** Beyond this many it costs less to look at everything that waits. */
const MOST_ARRIVED = 1_000;
const HOUR = 3_600_000;

export class InboundBridge {
  readonly #options: InboundOptions;
  readonly #opened: RateLimiter;
  readonly #further: RateLimiter;
  readonly #stop = new AbortController();
  readonly #answers: Answers;
  #unsubscribe: (() => void) | undefined;
  #pumping: Promise<void> | undefined;
  #again = false;
  /** Messages that came since, in order. */
  #arrived: string[] = [];
  /** Where a message was put off, later ones wait as well, so that none overtakes another. */
  readonly #held = new Set<string>();
  #failures = 0;
  #isLate = false;
  /** Everything that waits is to be looked at: at the start, and when what was put off is due again. */
  #startOver = true;
  #cancelRetry: (() => void) | undefined;

  constructor(options: InboundOptions) {
    const { node, runtime, store, tasksPerHour = 20, messagesPerHour = 60 } = options;
    this.#options = options;
    this.#opened = new RateLimiter({ count: tasksPerHour, window: HOUR });
    this.#further = new RateLimiter({ count: messagesPerHour, window: HOUR });
    const { signal } = this.#stop;
    this.#answers = new Answers({ node, runtime, store, signal, onEnded: () => this.#retrySoon() });
  }

  /** Takes up what was queued before, also by an earlier process, and from then on what comes. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#options.node.onMessage(({ id }) => {
      if (this.#arrived.push(id) > MOST_ARRIVED) this.#startOver = true;
      this.#pump();
    });
    let last: string | undefined;
    for (;;) {
      const page = await this.#options.store.mesh.queued("processing", PAGE, last);
      for (const message of page) this.#answers.watch(message);
      if (page.length < PAGE) break;
      last = page.at(-1)?.id;
    }
    this.#pump();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#cancelRetry?.();
    this.#stop.abort();
    await Promise.all([this.#pumping, this.#answers.stopped()]);
  }

  /** Resolves when nothing waits to be taken up but what was put off. */
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
      if (this.#startOver) await this.#takeWaiting();
      for (let id = this.#arrived.shift(); id !== undefined; id = this.#arrived.shift()) {
        const message = await this.#options.store.mesh.message(id);
        if (message !== undefined && isWaiting(message)) await this.#takeOrPutOff(message);
        if (this.#stop.signal.aborted) return;
      }
    } catch (cause) {
      // None that could not be looked at is overtaken.
      this.#startOver = true;
      this.#putOff(cause);
    }
    if (this.#cancelRetry !== undefined || this.#startOver) return;
    this.#isLate = false;
    this.#failures = 0;
  }

  /** The place of a message orders the pages of one look and is kept no longer: what comes late may stand before it. */
  async #takeWaiting(): Promise<void> {
    this.#startOver = false;
    this.#held.clear();
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
      if (mayPass(cause)) this.#putOff(cause);
    }
  }

  /** What is left waits for the clock, and with it what came after it at the same place. */
  #putOff(cause: unknown): void {
    if (this.#cancelRetry !== undefined || this.#stop.signal.aborted) return;
    const { report } = this.#options.node.core.parts;
    const message = `messages of peers wait until they can become tasks: ${String(cause)}`;
    if (!this.#isLate) report({ code: "mesh_bridge_late", message, cause });
    this.#isLate = true;
    this.#failures += 1;
    this.#retryLater();
  }

  #retryLater(): void {
    const { clock, random = Math.random } = this.#options.node.core.parts;
    this.#cancelRetry = clock.after(backoffDelay(PAUSES, this.#failures, random), () => {
      this.#cancelRetry = undefined;
      this.#startOver = true;
      this.#pump();
    });
  }

  /** A task has ended, so there may be room: the long pauses are over. Many that end are still one try. */
  #retrySoon(): void {
    if (this.#cancelRetry === undefined || this.#failures <= 1) return;
    this.#cancelRetry();
    this.#failures = 1;
    this.#retryLater();
  }

  async #take(message: QueuedMessage): Promise<void> {
    const { node, store } = this.#options;
    if (isMuted(node.core.view, message.swarmId, message.senderId)) return this.#mark(message, "completed");
    if (this.#isExpired(message)) return this.#mark(message, "expired");
    if (message.inReplyTo !== undefined) {
      const [sent] = (await store.mesh.sentById(message.inReplyTo)).filter(
        ({ recipientId, swarmId }) => recipientId === message.senderId && swarmId === message.swarmId,
      );
      if (sent !== undefined) return this.#answer(message, sent.origin);
    }
    await this.#open(message);
  }

  /** A reply to something that an agent of ours said goes to that agent, and never opens or resumes a task. */
  async #answer(message: QueuedMessage, originText: string | undefined): Promise<void> {
    const { node, runtime } = this.#options;
    const origin = readOrigin(originText);
    const swarm = node.core.view.swarms.get(message.swarmId);
    if (origin === undefined || swarm === undefined) return this.#mark(message, "completed");
    const question = `reply/${peerOf(message)}/${message.inReplyTo}`;
    if (!this.#further.look(question, node.core.now).allowed) {
      return this.#leaveInInbox(message, "has replied to one message as often as it may in an hour");
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
      this.#further.take(question, node.core.now);
    } catch (error) {
      // The task has ended or is gone: the message is kept and shown, nothing more.
      if (!isFinal(error)) throw error;
      await this.#mark(message, "completed");
    }
  }

  async #open(message: QueuedMessage): Promise<void> {
    const { node, runtime, store, entrypoint, context = { messages: 10 } } = this.#options;
    const peer = peerOf(message);
    const instance: InstanceId = { role: "user", id: `mesh/${peer}` };
    const taskId = message.threadId ?? message.messageId;
    const isKnown = (await store.tasks.find(instance, taskId)) !== undefined;
    const place = isKnown ? `thread/${peer}/${taskId}` : peer;
    if (this.#held.has(place)) return;
    const limiter = isKnown ? this.#further : this.#opened;
    if (!limiter.look(peer, node.core.now).allowed) {
      const what = isKnown ? "written to its tasks as often" : "opened as many tasks";
      return this.#leaveInInbox(message, `has ${what} as it may in an hour`);
    }
    try {
      const posted = await runtime.post(instance, {
        taskId,
        subject: `Message from ${message.senderId}`,
        body: renderBody(message, await contextOf(node, store.mesh, message, context)),
        ...(entrypoint !== undefined && { entrypoint }),
        rows: (at) => [{ ...this.#markRow(message, "processing"), taskKey: `${at.key}#${at.number}` }],
      });
      limiter.take(peer, node.core.now);
      this.#failures = 0;
      this.#answers.watch({ ...message, taskKey: `${posted.key}#${posted.number}` });
    } catch (error) {
      if (mayPass(error)) this.#held.add(place);
      throw error;
    }
  }

  #isExpired({ envelope }: QueuedMessage): boolean {
    const { expires_at }: { expires_at?: string } = JSON.parse(envelope);
    const at = expires_at === undefined ? undefined : parseTime(expires_at);
    return at !== undefined && at <= this.#options.node.core.now;
  }

  async #leaveInInbox(message: QueuedMessage, why: string): Promise<void> {
    this.#options.node.core.parts.report({
      code: "mesh_bridge_limit",
      message: `${message.senderId} ${why}: message ${message.messageId} is kept in the inbox`,
    });
    await this.#mark(message, "completed");
  }

  #markRow({ id }: QueuedMessage, status: QueueMark["status"]): QueueMark {
    return { kind: "mesh.queue.mark", id, from: ["pending"], status, at: this.#options.node.core.now };
  }

  async #mark(message: QueuedMessage, status: QueueMark["status"]): Promise<void> {
    await this.#options.store.commit({ appends: [], rows: [this.#markRow(message, status)] });
  }

  async #fail(message: QueuedMessage, cause: unknown): Promise<void> {
    const text = `message ${message.messageId} of ${message.senderId} could not become a task: ${String(cause)}`;
    this.#options.node.core.parts.report({ code: "mesh_bridge_failed", message: text, cause });
    await this.#mark(message, "failed");
  }
}

function peerOf({ swarmId, senderId }: QueuedMessage): string {
  return `${swarmId}/${senderId}`;
}

/** What was put away before it became a task never becomes one. */
function isWaiting({ status, box }: QueuedMessage): boolean {
  return status === "pending" && (box === "unread" || box === "read");
}

/** Whether the runtime would refuse it again. */
function isFinal(error: unknown): boolean {
  return error instanceof RuntimeError && !isForLater(error);
}

/** What is no refusal is trouble with the store; but for a mark that does not fit: somebody else has taken the message. */
function mayPass(error: unknown): boolean {
  return !isFinal(error) && !(error instanceof RowConflictError);
}
