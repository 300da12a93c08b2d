/**
 * Decisions G2. A message of a peer becomes a task of our swarm, one task per thread, and the finish message goes
 * back once. Every step is committed with the mark that says it was done, so a crash repeats nothing.
 */
import { RowConflictError, type Store, type TaskIndex } from "../../engine/ports.js";
import { type Outcome, outcomeOf, type Runtime, RuntimeError } from "../../engine/runtime/index.js";
import { createAgentAddress } from "../../mail/address.js";
import { buildResponse } from "../../mail/build.js";
import { RateLimiter } from "../limits.js";
import { isMuted } from "../membership/admit.js";
import type { MeshNode } from "../node.js";
import type { MeshReads, QueuedMessage } from "../queue.js";
import { derivedUuid } from "../sending.js";
import { formatTime, parseTime } from "../time.js";
import type { QueueMark } from "../writes.js";
import { type ContextOptions, contextOf, renderBody } from "./context.js";
import { readOrigin } from "./origin.js";

export interface InboundOptions {
  readonly node: MeshNode;
  readonly runtime: Runtime;
  readonly store: { readonly commit: Store["commit"]; readonly mesh: MeshReads; readonly tasks: TaskIndex };
  /** The agent that gets the mail. Default: the swarm's entrypoint. */
  readonly entrypoint?: string;
  readonly context?: ContextOptions;
  /** Tasks that one peer may open in an hour. Default 20. */
  readonly tasksPerHour?: number;
}

const PAGE = 50;

export class InboundBridge {
  readonly #options: InboundOptions;
  readonly #opened: RateLimiter;
  readonly #stop = new AbortController();
  readonly #watching = new Map<string, Promise<void>>();
  #unsubscribe: (() => void) | undefined;
  #pumping: Promise<void> | undefined;
  #again = false;

  constructor(options: InboundOptions) {
    this.#options = options;
    this.#opened = new RateLimiter({ count: options.tasksPerHour ?? 20, window: 3_600_000 });
  }

  /** Takes up what was queued before, also by an earlier process, and from then on what comes. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#options.node.onMessage(() => this.#pump());
    for (const message of await this.#options.store.mesh.queued("processing", 10_000)) this.#watch(message);
    this.#pump();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#stop.abort();
    await Promise.allSettled([this.#pumping, ...this.#watching.values()]);
  }

  /** Resolves when nothing waits to be taken up. */
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
    for (;;) {
      const waiting = await this.#options.store.mesh.queued("pending", PAGE);
      for (const message of waiting) {
        try {
          await this.#take(message);
        } catch (cause) {
          if (this.#stop.signal.aborted) return;
          // When not even that can be noted, the store is in trouble: what waits is taken up with the next message.
          if (!(await this.#fail(message, cause))) return;
        }
      }
      if (waiting.length < PAGE) return;
    }
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
    } catch (error) {
      // The task has ended or is gone: the message is kept and shown, nothing more.
      if (!(error instanceof RuntimeError)) throw error;
      await this.#mark(message, "completed");
    }
  }

  async #open(message: QueuedMessage): Promise<void> {
    const { node, runtime, store, entrypoint, context = { messages: 10 } } = this.#options;
    const peer = `${message.swarmId}/${message.senderId}`;
    if (!this.#opened.take(peer, node.core.now).allowed) {
      node.core.parts.report({
        code: "mesh_bridge_limit",
        message: `${message.senderId} has opened as many tasks as it may in an hour: message ${message.messageId} is kept in the inbox`,
      });
      return this.#mark(message, "completed");
    }
    const body = renderBody(message, await contextOf(node, store.mesh, message, context));
    const posted = await runtime.post(
      { role: "user", id: `mesh/${peer}` },
      {
        taskId: message.threadId ?? message.messageId,
        subject: `Message from ${message.senderId}`,
        body,
        ...(entrypoint !== undefined && { entrypoint }),
        rows: (at) => [{ ...this.#markRow(message, "processing"), taskKey: `${at.key}#${at.number}` }],
      },
    );
    this.#watch({ ...message, taskKey: `${posted.key}#${posted.number}` });
  }

  /** Waits for the end of the round that the message began; after a restart it is found in the journal. */
  #watch(message: QueuedMessage): void {
    if (this.#watching.has(message.id)) return;
    const watched = this.#sendBack(message)
      .catch((cause: unknown) => {
        if (this.#stop.signal.aborted) return;
        const text = `the answer to ${message.messageId} could not be sent`;
        this.#options.node.core.parts.report({ code: "mesh_bridge_failed", message: text, cause });
      })
      .finally(() => this.#watching.delete(message.id));
    this.#watching.set(message.id, watched);
  }

  async #sendBack(message: QueuedMessage): Promise<void> {
    const { node, store } = this.#options;
    const outcome = await this.#outcomeOf(message);
    if (outcome === undefined) return;
    const text = answerText(outcome);
    const reply = node.replyRows(message, text, derivedUuid(`reply/${node.id}/${message.id}`)) ?? [];
    const done = this.#markRow(message, "completed", ["processing"]);
    try {
      await store.commit({ appends: [], rows: [done, ...reply] });
      node.wake();
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
    }
  }

  async #outcomeOf({ taskKey = "" }: QueuedMessage): Promise<Outcome | undefined> {
    const [key = "", number = "0"] = taskKey.split("#");
    const { runtime } = this.#options;
    for await (const { entry } of runtime.follow(key, { after: Number(number), signal: this.#stop.signal })) {
      const outcome = outcomeOf(entry);
      // A pause is not the end: somebody here has to be asked first.
      if (outcome !== undefined && outcome.status !== "paused") return outcome;
    }
    return undefined;
  }

  #isExpired({ envelope }: QueuedMessage): boolean {
    const { expires_at }: { expires_at?: string } = JSON.parse(envelope);
    const at = expires_at === undefined ? undefined : parseTime(expires_at);
    return at !== undefined && at <= this.#options.node.core.now;
  }

  #markRow(
    { id }: QueuedMessage,
    status: QueueMark["status"],
    from: QueueMark["from"] = ["pending"],
  ): QueueMark {
    return { kind: "mesh.queue.mark", id, from, status, at: this.#options.node.core.now };
  }

  async #mark(message: QueuedMessage, status: QueueMark["status"]): Promise<void> {
    try {
      await this.#options.store.commit({ appends: [], rows: [this.#markRow(message, status)] });
    } catch (error) {
      if (!(error instanceof RowConflictError)) throw error;
    }
  }

  async #fail(message: QueuedMessage, cause: unknown): Promise<boolean> {
    const text = `message ${message.messageId} of ${message.senderId} could not become a task: ${String(cause)}`;
    this.#options.node.core.parts.report({ code: "mesh_bridge_failed", message: text, cause });
    return this.#mark(message, "failed").then(
      () => true,
      () => false,
    );
  }
}

function answerText({ status, message, error }: Outcome): string {
  if (status === "completed") return message.message.body || "done";
  return `The task ended as ${status}${error === undefined ? "" : `: ${error.message}`}`;
}
