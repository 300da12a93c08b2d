/**
 * Conversations (MAP Mail) from Node or a browser. The client never blocks reading, so that a handler may make calls,
 * and it reports every lost event.
 */
import { ConversationError } from "./conversations-errors.js";
import type {
  Conversation,
  ConversationDetails,
  ConversationEvent,
  ConversationTurn,
  Summary,
  SummaryOptions,
} from "./conversations-wire.js";

/** The used part of a WebSocket: of browsers, of Node 22 or later, or of the package `ws`. */
export interface WebSocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(type: "open" | "close" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

/** Options of {@link ConversationClient.connect}. */
export interface ConversationClientOptions {
  /** Bearer token of the caller. */
  readonly token?: string;
  /**
   * Opens the connection.
   * @defaultValue the global `WebSocket`, which Node has since version 22
   */
  readonly open?: (url: string) => WebSocketLike;
  /**
   * Milliseconds to wait for each response.
   * @defaultValue 30,000
   */
  readonly timeout?: number;
}

/** Options of {@link ConversationClient.follow}. */
export interface FollowOptions {
  /**
   * Only this conversation.
   * @defaultValue all that the caller may see
   */
  readonly conversationId?: string;
  /** Id of the last event already seen. Later ones are replayed first. */
  readonly after?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

type Answer = Record<string, unknown>;

interface Waiting {
  readonly method: string;
  readonly resolve: (result: Record<string, unknown>) => void;
  readonly reject: (error: ConversationError) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** Number of events that may wait for their reader before the subscription fails with `too_slow`. */
const MAX_QUEUED_EVENTS = 10_000;

/**
 * A connection to a server's MAP conversations.
 * @example
 * ```ts
 * const client = await ConversationClient.connect("http://127.0.0.1:8000", { token: "user:ann" });
 * const { id } = await client.create({ subject: "Lunch" });
 * await client.say(id, "Pizza?");
 * client.close();
 * ```
 */
export class ConversationClient {
  readonly #socket: WebSocketLike;
  readonly #timeout: number;
  readonly #waiting = new Map<number, Waiting>();
  readonly #readers = new Map<string, EventQueue>();
  /** Events of subscriptions whose response has not arrived yet. */
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

  /**
   * Opens a connection.
   * @param url of the server (`http://…`), or of its MAP endpoint (`ws://…/map`)
   * @throws ConversationError `unreachable`, or `refused` when the server rejects the token
   */
  static async connect(url: string, options: ConversationClientOptions = {}): Promise<ConversationClient> {
    const address = /^ws/.test(url) ? url : `${url.replace(/^http/, "ws").replace(/\/$/, "")}/map`;
    const socket = (options.open ?? ((where) => new WebSocket(where)))(address);
    const client = new ConversationClient(socket, options.timeout ?? 30_000);
    try {
      await client.#opened(address);
      await client.#enter(options.token);
      return client;
    } catch (error) {
      // The caller has no reference to close it.
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
    throw ConversationError.refused(method, { code: 1000, message: "the server requires a token" });
  }

  /** Calls any method of the protocol. @throws ConversationError with the server's error number */
  request(method: string, params: object = {}): Promise<Record<string, unknown>> {
    if (this.#lost) return Promise.reject(connectionLost());
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new ConversationError("timeout", `${method} got no response within the time limit`));
      }, this.#timeout);
      this.#waiting.set(id, { method, resolve, reject, timer });
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  /** Yields all conversations that the caller may see, oldest first. */
  async *list(filter: object = {}): AsyncGenerator<Conversation, void, undefined> {
    for (let cursor: unknown; ; ) {
      const page = await this.request("mail/list", { filter, ...(cursor !== undefined && { cursor }) });
      yield* page.conversations as Conversation[];
      if (page.hasMore !== true) return;
      cursor = page.nextCursor;
    }
  }

  /** Returns a conversation with its participants. */
  async get(conversationId: string): Promise<ConversationDetails> {
    const include = { participants: true, stats: true };
    const { conversation, participants, stats } = await this.request("mail/get", { conversationId, include });
    return { conversation, participants, stats } as ConversationDetails;
  }

  /** Yields all turns that the caller may see, oldest first. */
  async *turns(conversationId: string): AsyncGenerator<ConversationTurn, void, undefined> {
    for (let cursor: unknown; ; ) {
      const page = await this.request("mail/turns/list", {
        conversationId,
        ...(cursor !== undefined && { cursor }),
      });
      yield* page.turns as ConversationTurn[];
      if (page.hasMore !== true) return;
      cursor = page.nextCursor;
    }
  }

  /** Creates a conversation. */
  async create(params: object = {}): Promise<Conversation> {
    return (await this.request("mail/create", params)).conversation as Conversation;
  }

  /** Adds a turn with text. In a task's conversation this is a message to the task. */
  async say(conversationId: string, text: string): Promise<ConversationTurn> {
    const params = { conversationId, contentType: "text", content: { text } };
    return (await this.request("mail/turn", params)).turn as ConversationTurn;
  }

  /** Returns a summary of a conversation. A stored summary is used while it is current. */
  async summary(conversationId: string, options: SummaryOptions = {}): Promise<Summary> {
    return (await this.request("mail/summary", { conversationId, ...options })) as Summary & Answer;
  }

  /** Closes a conversation. Closing a task's conversation cancels the task. */
  async closeConversation(conversationId: string, reason?: string): Promise<Conversation> {
    const params = { conversationId, ...(reason !== undefined && { reason }) };
    return (await this.request("mail/close", params)).conversation as Conversation;
  }

  /**
   * Yields events, each once and in order. Resolves when the subscription exists, so that no later event is missed. The
   * iterator throws ConversationError `connection_lost` or `too_slow`: call `follow` again `after` the last event.
   * @example
   * ```ts
   * for await (const { type, data } of await client.follow({ conversationId })) console.log(type, data);
   * ```
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
        const event = await queue.next();
        if (event === undefined) return;
        yield event;
      }
    } finally {
      this.#readers.delete(id);
      if (!this.#lost) this.request("map/unsubscribe", { subscriptionId: id }).catch(() => {});
    }
  }

  /** Closes the connection. */
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
      else if (this.#early.push({ id: subscriptionId, event }) > MAX_QUEUED_EVENTS) this.#early.shift();
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
    // Events after a gap are not yielded: the reader calls `follow` again after its last event.
    if (this.#error !== undefined) return;
    if (this.#events.push(event) > MAX_QUEUED_EVENTS) {
      this.#events = [];
      this.fail(new ConversationError("too_slow", "too many unread events; follow again after the last one"));
    }
    this.#wake?.();
  }

  fail(error: ConversationError): void {
    this.#error ??= error;
    this.#wake?.();
  }

  /** Returns undefined after the reader stopped. */
  async next(): Promise<ConversationEvent | undefined> {
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
