/** Serves an agent of a swarm from another process, over any number of connections. */
import { messageOf, Semaphore, sleep, truncate, urgentClock } from "../base/index.js";
import {
  type AgentAnswer,
  type AgentMail,
  type AgentReply,
  answerMail,
  type LentMail,
  toLentMail,
} from "./agent-mail.js";
import type { ConnectionState, StateListener } from "./connection-state.js";
import { ConversationError, isTemporary, reasonOf } from "./conversations-errors.js";
import type { MapLink, NotificationListener } from "./map/link.js";
import { isLost, MapSession, type TokenSource } from "./map/session.js";
import { mapAddress, type WebSocketLike } from "./map/socket.js";
import { backoff } from "./retry.js";

/** Options of {@link serveAgent}. */
export interface ServeAgentOptions {
  /** A member token of the agent (`mailroom token create --role member --id <name>`), or a function that returns one. */
  readonly token: TokenSource;
  /** The agent's name. The swarm declares it with `remote: true`. */
  readonly name: string;
  /** Answers one message: returns the text of the reply, or calls verbs of `mail`. */
  readonly run: (mail: AgentMail) => AgentReply | Promise<AgentReply>;
  /**
   * Messages that are answered at once, each of a different task.
   * @defaultValue 64, which is as many as the server hands out
   */
  readonly concurrency?: number;
  /**
   * Milliseconds that one `run` may take. After that its turn has failed.
   * @defaultValue one hour
   */
  readonly runTimeout?: number;
  /**
   * Milliseconds to wait for a connection and for each response of the server.
   * @defaultValue 30,000
   */
  readonly timeout?: number;
  /**
   * Number of consecutive connections that may fail, the first one included.
   * @defaultValue no limit: it waits for the server
   */
  readonly reconnects?: number;
  /**
   * Called with what `run` throws, and with answers that the server rejects.
   * @defaultValue writes to `console.error`
   */
  readonly onError?: (error: unknown, mail: Pick<AgentMail, "id" | "from" | "taskId">) => void;
  /**
   * Called with every new state of the connection.
   * @defaultValue none
   */
  readonly onState?: StateListener;
  /**
   * Opens a connection.
   * @defaultValue the package `ws` in Node, the global `WebSocket` elsewhere
   */
  readonly open?: (url: string) => WebSocketLike;
  /**
   * Closes the agent when it aborts.
   * @defaultValue none
   */
  readonly signal?: AbortSignal;
}

/** An agent that is being served. */
export interface ServedAgent extends AsyncDisposable {
  readonly name: string;
  /** The state of the connection. */
  readonly state: ConnectionState;
  /**
   * Resolves after `close`. Rejects when the agent can no longer be served: the token was revoked (`refused`), another
   * process serves it (`replaced`).
   */
  readonly finished: Promise<void>;
  /** Stops. Unanswered mail returns to the server and waits for the next process. */
  close(): Promise<void>;
}

const RUN_TIMEOUT = 3_600_000;
/** Messages that the server hands out at once. */
const MAX_LENT = 64;
/** The close code for a frame above the server's limit. */
const FRAME_TOO_LARGE = 1009;
const TOO_LARGE = "the answer is larger than the server accepts in one frame (map.limits.frame)";
/** Characters of a failure's reason that are sent. */
const LONGEST_REASON = 2_000;

/**
 * Serves an agent of a swarm from this process. Resolves when the agent receives its mail. Lost connections and restarts
 * of the server are survived: a message whose answer was not accepted is handed out again, and a result that is known is
 * sent without another `run`.
 *
 * One process serves an agent. If another one begins to, this one ends with `replaced`.
 * @throws ConversationError `refused` when the token is wrong, or the swarm has no such remote agent
 * @example
 * ```ts
 * import { serveAgent } from "agent-mailroom/client";
 *
 * const agent = await serveAgent("http://127.0.0.1:8000", {
 *   token: process.env.MAILROOM_TOKEN ?? "",
 *   name: "coder",
 *   run: (mail) => `Reviewed: ${mail.body}`,
 * });
 * await agent.finished;
 * ```
 */
export async function serveAgent(url: string, options: ServeAgentOptions): Promise<ServedAgent> {
  const { signal } = options;
  signal?.throwIfAborted();
  const service = new AgentService(url, options);
  const onAbort = () => void service.close();
  signal?.addEventListener("abort", onAbort, { once: true });
  service.finished.catch(() => {}).finally(() => signal?.removeEventListener("abort", onAbort));
  try {
    await service.ready();
    return service;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** A message that is being answered, or whose answer has not been accepted yet. */
interface Job {
  readonly mail: LentMail;
  readonly stop: AbortController;
  /** The connection over which it is lent, and the attempt. Undefined while it is not lent to this process. */
  lent: { readonly link: MapLink; readonly attempt: number } | undefined;
  outcome: { readonly answer: AgentAnswer } | { readonly failure: string } | undefined;
  started: boolean;
  sending: boolean;
}

class AgentService implements ServedAgent {
  readonly name: string;
  readonly #options: ServeAgentOptions;
  readonly #session: MapSession;
  readonly #jobs = new Map<string, Job>();
  readonly #slots: Semaphore;
  readonly #timeout: number;
  /** The largest outcome that was sent over each connection. */
  readonly #largest = new WeakMap<MapLink, { readonly job: Job; readonly size: number }>();
  /** The subscription to registrations under the agent's name. */
  #watching: { readonly link: MapLink; readonly subscriptionId: unknown } | undefined;

  constructor(url: string, options: ServeAgentOptions) {
    this.#options = options;
    this.name = options.name;
    this.#timeout = options.timeout ?? 30_000;
    this.#slots = new Semaphore({ limit: options.concurrency ?? MAX_LENT });
    this.#session = new MapSession({
      address: mapAddress(url),
      token: options.token,
      open: options.open,
      timeout: this.#timeout,
      reconnects: options.reconnects ?? Number.POSITIVE_INFINITY,
      idleLimit: 60_000,
      waitForServer: true,
      participantType: "agent",
      onState: options.onState,
      onNotification: (...frame) => this.#notified(...frame),
      onOpen: (link, answer) => this.#register(link, answer),
    });
    const end = () => {
      for (const job of this.#jobs.values()) job.stop.abort(new Error("the agent is no longer served here"));
      this.#jobs.clear();
    };
    this.#session.finished.then(end, end);
  }

  get state(): ConnectionState {
    return this.#session.state;
  }

  get finished(): Promise<void> {
    return this.#session.finished;
  }

  async ready(): Promise<void> {
    await this.#session.link();
  }

  async close(): Promise<void> {
    const link = this.#session.openLink;
    this.#session.close();
    await link?.closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #register(link: MapLink, answer: Readonly<Record<string, unknown>>): Promise<void> {
    const { name } = this;
    const { participantId, reconnected, ownedAgents } = answer;
    // Another process has registered while this one was disconnected.
    if (this.#watching !== undefined && reconnected === true && !listed(ownedAgents, name))
      throw replaced(name);
    if (participantId !== `member:${name}`) {
      const message = `the token belongs to ${participantId}; to serve '${name}' it must be that of member:${name}`;
      throw new ConversationError("refused", message);
    }
    void link.closed.then(() => this.#withdraw(link));
    const call = { timeout: this.#timeout };
    const { _meta } = await link.request("map/agents/register", { agentId: name }, call);
    if ((_meta as { readonly remote?: unknown } | undefined)?.remote !== true) {
      const message = `the swarm has no remote agent '${name}'; declare it with remote: true`;
      throw new ConversationError("refused", message);
    }
    // From now on every registration under this name is that of another process.
    const filter = { eventTypes: ["agent_registered"], fromAgents: [name] };
    await link.request(
      "map/subscribe",
      { filter },
      {
        ...call,
        onResult: ({ subscriptionId }) => {
          this.#watching = { link, subscriptionId };
        },
      },
    );
  }

  #notified(...[{ method, params }, link]: Parameters<NotificationListener>): void {
    if (method === "map/event") {
      const { subscriptionId, link: watched } = this.#watching ?? {};
      // Not one of an earlier connection: those also show the registrations of this process.
      if (watched === link && subscriptionId === params.subscriptionId)
        this.#session.fail(replaced(this.name));
    } else if (method === "map/message") {
      const mail = toLentMail(params.message);
      if (mail !== undefined) this.#take(mail, link);
    }
  }

  #take(mail: LentMail, link: MapLink): void {
    const key = `${mail.conversationId}\n${mail.id}`;
    const lent = { link, attempt: mail.attempt };
    const known = this.#jobs.get(key);
    if (known !== undefined) {
      // Lent again after a lost connection: the result is still needed.
      known.lent = lent;
      void this.#send(key, known);
      return;
    }
    this.#makeRoom();
    const stop = new AbortController();
    const job: Job = { mail, lent, stop, outcome: undefined, started: false, sending: false };
    this.#jobs.set(key, job);
    void this.#work(key, job);
  }

  async #work(key: string, job: Job): Promise<void> {
    const leave = await this.#slots.acquire();
    try {
      if (this.#jobs.get(key) !== job) return;
      job.started = true;
      job.outcome = await this.#outcome(job);
    } finally {
      leave();
    }
    await this.#send(key, job);
  }

  async #outcome(job: Job): Promise<Job["outcome"]> {
    const { run, runTimeout = RUN_TIMEOUT } = this.#options;
    const { signal } = job.stop;
    let cancel = (): void => {};
    const stopped = new Promise<never>((_, reject) => {
      cancel = urgentClock.after(runTimeout, () => {
        job.stop.abort(new ConversationError("timeout", `run did not return within ${runTimeout} ms`));
      });
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    try {
      return { answer: await Promise.race([answerMail(job.mail, run, signal), stopped]) };
    } catch (error) {
      if (signal.aborted && !(signal.reason instanceof ConversationError)) return undefined;
      this.#report(error, job.mail);
      return { failure: truncate(messageOf(error), LONGEST_REASON) || "run failed" };
    } finally {
      cancel();
    }
  }

  /** Sends the outcome if it is known and the message is lent. Otherwise it waits until both are. */
  async #send(key: string, job: Job): Promise<void> {
    if (job.sending) return;
    job.sending = true;
    try {
      for (let failures = 1; this.#jobs.get(key) === job; failures++) {
        const { lent, outcome, mail } = job;
        if (lent === undefined || outcome === undefined) return;
        try {
          this.#note(lent.link, job, outcome);
          await this.#settle(lent, mail, outcome);
          this.#jobs.delete(key);
          return;
        } catch (error) {
          if (isTooLarge(error) && this.#largest.get(lent.link)?.job === job) {
            // Sent again, it would close every connection.
            const refused = new ConversationError("refused", TOO_LARGE);
            this.#report(refused, mail);
            job.outcome = { failure: refused.message };
          }
          if (job.lent !== lent) continue;
          if (isLost(error)) {
            job.lent = undefined;
            return;
          }
          if (error instanceof ConversationError && (isTemporary(error) || error.code === "timeout")) {
            await sleep(urgentClock, error.retryAfter ?? backoff(failures, error));
          } else if (reasonOf(error) === "stale_attempt" || "failure" in outcome) {
            // Cancelled meanwhile, or answered by an earlier request whose response was lost.
            this.#jobs.delete(key);
          } else {
            this.#report(error, mail);
            job.outcome = { failure: truncate(messageOf(error), LONGEST_REASON) };
          }
        }
      }
    } finally {
      job.sending = false;
    }
  }

  /** The server does not say which frame was too large, but only the largest can be. */
  #note(link: MapLink, job: Job, outcome: NonNullable<Job["outcome"]>): void {
    const size = new TextEncoder().encode(JSON.stringify(outcome)).length;
    if (size > (this.#largest.get(link)?.size ?? 0)) this.#largest.set(link, { job, size });
  }

  async #settle(
    { link, attempt }: NonNullable<Job["lent"]>,
    { id: messageId, conversationId }: LentMail,
    outcome: NonNullable<Job["outcome"]>,
  ): Promise<void> {
    const named = { messageId, attempt, conversationId };
    const call = { timeout: this.#timeout };
    if ("answer" in outcome) await link.request("mailroom/answer", { ...named, ...outcome.answer }, call);
    else await link.request("mailroom/fail", { ...named, reason: outcome.failure }, call);
  }

  /** The connection is lost: the server hands its messages out again. */
  #withdraw(link: MapLink): void {
    for (const [key, job] of this.#jobs) {
      if (job.lent?.link !== link) continue;
      job.lent = undefined;
      if (!job.started) this.#jobs.delete(key);
    }
  }

  /** Results that the server does not ask for again were accepted before the connection was lost. */
  #makeRoom(): void {
    for (const [key, { lent, outcome }] of this.#jobs) {
      if (this.#jobs.size < MAX_LENT) return;
      if (lent === undefined && outcome !== undefined) this.#jobs.delete(key);
    }
  }

  #report(error: unknown, mail: LentMail): void {
    const { onError = reportToConsole } = this.#options;
    try {
      onError(error, mail);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ConversationError && error.closing?.code === FRAME_TOO_LARGE;
}

function replaced(name: string): ConversationError {
  return new ConversationError("replaced", `another process serves '${name}' now`);
}

function listed(names: unknown, name: string): boolean {
  return Array.isArray(names) && names.includes(name);
}

function reportToConsole(error: unknown, { id, from }: Pick<AgentMail, "id" | "from">): void {
  console.error(`message ${id} from ${from}:`, error);
}
