/**
 * Conversations (MAP Mail) from Node or a browser: a small client that awaits nothing while it reads, so that a handler
 * may ask again, and that loses no event without saying so.
 */
import { ConversationError } from "./conversations-errors.js";
import type {
  Conversation,
  ConversationDetails,
  ConversationEvent,
  Summary,
  SummaryOptions,
  Turn,
} from "./conversations-wire.js";

/** The part of a WebSocket that is used: that of browsers, of Node 22, or of the package `ws`. */
export interface WebSocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(type: "open" | "close" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

export interface ConversationClientOptions {
  readonly token?: string;
  /** Default: the global `WebSocket`, which Node has since version 22. */
  readonly open?: (url: string) => WebSocketLike;
  /** Milliseconds to wait for each answer. Default 30 s. */
  readonly timeout?: number;
}

export interface FollowOptions {
  /** Only this conversation. Default: all that the caller may see. */
  readonly conversationId?: string;
  /** The last event already seen: what came after it is told first. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

type Answer = Record<string, unknown>;

interface Waiting {
  readonly method: string;
  readonly resolve: (result: Record<string, unknown>) => void;
  readonly reject: (error: ConversationError) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** Events that may wait for their reader before it is told to begin again from where it is. */
const MOST_EVENTS = 10_000;

export class ConversationClient {
  readonly #socket: WebSocketLike;
  readonly #timeout: number;
  readonly #waiting = new Map<number, Waiting>();
  readonly #readers = new Map<string, EventQueue>();
  /** Events of subscriptions whose answer is still on its way. */
  #early: { readonly id: string; readonly event: ConversationEvent }[] = [];
  #next = 1;
  #lost = false;

  private constructor(socket: WebSocketLike, timeout: number) {
    this.#socket = socket;
    this.#timeout = timeout;
    socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    socket.addEventListener("close", () => this.#end());
    socket.addEventListener("error", () => this.#end());
  }

  /** @param url of the server (`http://…`), or of its MAP itself (`ws://…/map`) */
  static async connect(url: string, options: ConversationClientOptions = {}): Promise<ConversationClient> {
    const address = /^ws/.test(url) ? url : `${url.replace(/^http/, "ws").replace(/\/$/, "")}/map`;
    const socket = (options.open ?? ((where) => new WebSocket(where)))(address);
    const client = new ConversationClient(socket, options.timeout ?? 30_000);
    try {
      await client.#opened(address);
      await client.#enter(options.token);
      return client;
    } catch (error) {
      // Nobody has it to close it.
      client.close();
      throw error;
    }
  }

  #opened(address: string): Promise<void> {
    const unreachable = new ConversationError("unreachable", `no connection to ${address}`);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(unreachable), this.#timeout);
      const settle = (done: () => void) => () => {
        clearTimeout(timer);
        done();
      };
      this.#socket.addEventListener("open", settle(resolve));
      for (const end of ["error", "close"] as const) {
        this.#socket.addEventListener(
          end,
          settle(() => reject(unreachable)),
        );
      }
    });
  }

  async #enter(token: string | undefined): Promise<void> {
    const method = "map/connect";
    const { authRequired } = await this.request(method, {
      protocolVersion: 1,
      participantType: "client",
      ...(token !== undefined && { auth: { method: "bearer", token } }),
    });
    if (authRequired === undefined) return;
    throw ConversationError.refused(method, { code: 1000, message: "the server asks for a token" });
  }

  /** Any method of the protocol. @throws ConversationError with the number that the server gave */
  request(method: string, params: object = {}): Promise<Record<string, unknown>> {
    if (this.#lost) return Promise.reject(connectionLost());
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new ConversationError("timeout", `${method} was not answered in time`));
      }, this.#timeout);
      this.#waiting.set(id, { method, resolve, reject, timer });
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  /** All conversations that the caller may see, oldest first. */
  async *list(filter: object = {}): AsyncGenerator<Conversation, void, undefined> {
    for (let cursor: unknown; ; ) {
      const page = await this.request("mail/list", { filter, ...(cursor !== undefined && { cursor }) });
      yield* page.conversations as Conversation[];
      if (page.hasMore !== true) return;
      cursor = page.nextCursor;
    }
  }

  async get(conversationId: string): Promise<ConversationDetails> {
    const include = { participants: true, stats: true };
    const { conversation, participants, stats } = await this.request("mail/get", { conversationId, include });
    return { conversation, participants, stats } as ConversationDetails;
  }

  /** All turns that the caller may see, oldest first. */
  async *turns(conversationId: string): AsyncGenerator<Turn, void, undefined> {
    for (let cursor: unknown; ; ) {
      const page = await this.request("mail/turns/list", {
        conversationId,
        ...(cursor !== undefined && { cursor }),
      });
      yield* page.turns as Turn[];
      if (page.hasMore !== true) return;
      cursor = page.nextCursor;
    }
  }

  async create(params: object = {}): Promise<Conversation> {
    return (await this.request("mail/create", params)).conversation as Conversation;
  }

  /** Says something in a conversation. In that of a task this is a message to the task. */
  async say(conversationId: string, text: string): Promise<Turn> {
    const params = { conversationId, contentType: "text", content: { text } };
    return (await this.request("mail/turn", params)).turn as Turn;
  }

  /** What was said, in short: kept while it holds, made anew otherwise. */
  async summary(conversationId: string, options: SummaryOptions = {}): Promise<Summary> {
    return (await this.request("mail/summary", { conversationId, ...options })) as Summary & Answer;
  }

  /** Closes a conversation. That of a task is cancelled. */
  async closeConversation(conversationId: string, reason?: string): Promise<Conversation> {
    const params = { conversationId, ...(reason !== undefined && { reason }) };
    return (await this.request("mail/close", params)).conversation as Conversation;
  }

  /**
   * What happens, each event once and in order. Resolves when it has begun: of what happens from then on nothing is
   * missed. The events fail with ConversationError `connection_lost` or `too_slow`: begin again `after` the last one.
   */
  async follow(options: FollowOptions = {}): Promise<AsyncGenerator<ConversationEvent, void, undefined>> {
    const { conversationId, after, signal } = options;
    const { subscriptionId } = await this.request("map/subscribe", {
      filter: { eventTypes: ["mail.*"], ...(conversationId !== undefined && { mail: { conversationId } }) },
      ...(after !== undefined && { replayFrom: after }),
    });
    const id = String(subscriptionId);
    const queue = new EventQueue(signal);
    this.#readers.set(id, queue);
    for (const early of this.#early.filter((one) => one.id === id)) queue.add(early.event);
    this.#early = this.#early.filter((one) => one.id !== id);
    if (this.#lost) queue.fail(connectionLost());
    return this.#events(id, queue);
  }

  async *#events(id: string, queue: EventQueue): AsyncGenerator<ConversationEvent, void, undefined> {
    try {
      for (;;) {
        const event = await queue.take();
        if (event === undefined) return;
        yield event;
      }
    } finally {
      this.#readers.delete(id);
      if (!this.#lost) this.request("map/unsubscribe", { subscriptionId: id }).catch(() => {});
    }
  }

  close(): void {
    this.#socket.close();
    this.#end();
  }

  #receive(text: string): void {
    const frame = JSON.parse(text) as Incoming;
    if (frame.method === "map/event" && frame.params !== undefined) {
      const { subscriptionId, event } = frame.params;
      const reader = this.#readers.get(subscriptionId);
      if (reader !== undefined) reader.add(event);
      else if (this.#early.push({ id: subscriptionId, event }) > MOST_EVENTS) this.#early.shift();
      return;
    }
    const waiting = typeof frame.id === "number" ? this.#waiting.get(frame.id) : undefined;
    if (waiting === undefined || typeof frame.id !== "number") return;
    this.#waiting.delete(frame.id);
    clearTimeout(waiting.timer);
    if (frame.error === undefined) waiting.resolve(frame.result ?? {});
    else waiting.reject(ConversationError.refused(waiting.method, frame.error));
  }

  #end(): void {
    if (this.#lost) return;
    this.#lost = true;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(connectionLost());
    }
    this.#waiting.clear();
    for (const queue of this.#readers.values()) queue.fail(connectionLost());
  }
}

interface Incoming {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly subscriptionId: string; readonly event: ConversationEvent };
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

function connectionLost(): ConversationError {
  return new ConversationError("connection_lost", "the connection is lost; connect again");
}

class EventQueue {
  #events: ConversationEvent[] = [];
  #error: ConversationError | undefined;
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#stopped = signal?.aborted === true;
    signal?.addEventListener("abort", () => {
      this.#stopped = true;
      this.#wake?.();
    });
  }

  add(event: ConversationEvent): void {
    // What comes behind a gap is not shown: the reader begins again after the last one that it has seen.
    if (this.#error !== undefined) return;
    if (this.#events.push(event) > MOST_EVENTS) {
      this.#events = [];
      this.fail(
        new ConversationError("too_slow", "too many events wait to be read; begin again after the last one"),
      );
    }
    this.#wake?.();
  }

  fail(error: ConversationError): void {
    this.#error ??= error;
    this.#wake?.();
  }

  /** Nothing once the reader was told to stop. */
  async take(): Promise<ConversationEvent | undefined> {
    for (;;) {
      if (this.#stopped) return undefined;
      const event = this.#events.shift();
      if (event !== undefined) return event;
      if (this.#error !== undefined) throw this.#error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
