/**
 * Conversations (MAP Mail) from Node or a browser. The client never blocks reading, so that a handler may make calls. It
 * reconnects by itself, and no followed event is lost or repeated.
 */
import { isRecord } from "../base/index.js";
import type { ConnectionState, StateListener } from "./connection-state.js";
import { ConversationError } from "./conversations-errors.js";
import type {
  Conversation,
  ConversationDetails,
  ConversationTurn,
  Participant,
  ParticipantRole,
  Permissions,
  Presence,
  Summary,
  SummaryOptions,
  Thread,
  Unread,
} from "./conversations-wire.js";
import type { ConversationEvent } from "./map/events.js";
import { Follow } from "./map/follow.js";
import type { MapLink, NotificationListener } from "./map/link.js";
import {
  type ConversationFilter,
  type EventFilter,
  type MapMethod,
  type MapMethods,
  type NewConversation,
  type NewTurn,
  REPEATABLE,
  type TurnFilter,
} from "./map/methods.js";
import { isLost, MapSession, type TokenSource } from "./map/session.js";
import { mapAddress, type WebSocketLike } from "./map/socket.js";
import type { CallOptions } from "./transport.js";

/** Options of {@link ConversationClient.connect}. */
export interface ConversationClientOptions {
  /**
   * Bearer token of the caller, or a function that returns a fresh one for each connection and before it expires.
   * @defaultValue none
   */
  readonly token?: TokenSource;
  /**
   * Opens a connection.
   * @defaultValue the package `ws` in Node, the global `WebSocket` elsewhere
   */
  readonly open?: (url: string) => WebSocketLike;
  /**
   * Milliseconds to wait for a connection and for each response.
   * @defaultValue 30,000
   */
  readonly timeout?: number;
  /**
   * Number of consecutive connections that may fail after the first one. `0`: a lost connection is not opened again.
   * @defaultValue no limit
   */
  readonly reconnects?: number;
  /**
   * Whether to keep trying if the first connection fails.
   * @defaultValue false
   */
  readonly waitForServer?: boolean;
  /**
   * Milliseconds of silence after which the connection is tested, and opened again if there is no response.
   * @defaultValue 60,000
   */
  readonly idleLimit?: number;
  /**
   * Called with every new state of the connection.
   * @defaultValue none; see `state`
   */
  readonly onState?: StateListener;
  /**
   * Called with each `map/message`: what others sent to agents that this client registered.
   * @defaultValue none
   */
  readonly onMessage?: (message: MapMessage) => void;
  /**
   * Closes the client when it aborts.
   * @defaultValue none
   */
  readonly signal?: AbortSignal;
}

/** A live message to an agent of this client (`map/message`). */
export interface MapMessage {
  readonly id: string;
  readonly from: string;
  readonly to: unknown;
  readonly timestamp: number;
  readonly payload?: unknown;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** Options of {@link ConversationClient.follow}. */
export interface FollowOptions {
  /**
   * Only this conversation.
   * @defaultValue all that the caller may see
   */
  readonly conversationId?: string;
  /**
   * Id of the last event already seen. Later ones are replayed first.
   * @defaultValue none: events from now on
   */
  readonly after?: string;
  /**
   * Further conditions. The types are those of conversations unless `eventTypes` names others.
   * @defaultValue none
   */
  readonly filter?: EventFilter;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

/** Options of lists that are read page by page. */
export interface PageOptions extends CallOptions {
  /**
   * `desc` begins with the newest.
   * @defaultValue `"asc"`, as in the protocol
   */
  readonly order?: "asc" | "desc";
  /**
   * Number of items per page. Pages are read as needed.
   * @defaultValue 50
   */
  readonly pageSize?: number;
}

/** Options of lists of turns. */
export interface TurnListOptions extends PageOptions {
  /** @defaultValue all turns outside threads */
  readonly filter?: TurnFilter;
}

/** Options of a search. */
export interface TurnSearchOptions extends CallOptions {
  /**
   * Only in this conversation.
   * @defaultValue all that the caller may read
   */
  readonly conversationId?: string;
  /**
   * Number of turns per page. Pages are read as needed.
   * @defaultValue 20
   */
  readonly pageSize?: number;
}

type Params<Method extends MapMethod> = MapMethods[Method]["params"];

const EVENT_TYPES = ["mail.*", "mailroom.*"];

/**
 * A connection to a server's MAP conversations. It reconnects by itself.
 * @example
 * ```ts
 * const client = await ConversationClient.connect("http://127.0.0.1:8000", { token: "user:ann" });
 * const { id } = await client.create({ subject: "Lunch" });
 * await client.say(id, "Pizza?");
 * for await (const turn of client.turns(id, { order: "desc" })) console.log(turn.content);
 * client.close();
 * ```
 */
export class ConversationClient {
  readonly #session: MapSession;
  readonly #timeout: number;
  readonly #follows = new Set<Follow>();
  readonly #onMessage: ((message: MapMessage) => void) | undefined;

  private constructor(url: string, options: ConversationClientOptions) {
    this.#timeout = options.timeout ?? 30_000;
    this.#onMessage = options.onMessage;
    this.#session = new MapSession({
      address: mapAddress(url),
      token: options.token,
      open: options.open,
      timeout: this.#timeout,
      reconnects: options.reconnects ?? Number.POSITIVE_INFINITY,
      idleLimit: options.idleLimit ?? 60_000,
      waitForServer: options.waitForServer ?? false,
      participantType: "client",
      onState: options.onState,
      onNotification: (...frame) => this.#notified(...frame),
      onOpen: (link, answer) => this.#opened(link, answer),
    });
    this.#session.finished.then(
      () => this.#endFollows((follow) => follow.stop()),
      (error: unknown) => this.#endFollows((follow) => follow.fail(error)),
    );
  }

  /**
   * Opens a connection.
   * @param url of the server (`http://…`), or of its MAP endpoint (`ws://…/map`)
   * @throws ConversationError `unreachable`, or `refused` when the server rejects the token or the page's origin
   * @example
   * ```ts
   * const client = await ConversationClient.connect(url, { token, onState: (state) => console.log(state.status) });
   * ```
   */
  static async connect(url: string, options: ConversationClientOptions = {}): Promise<ConversationClient> {
    const { signal } = options;
    signal?.throwIfAborted();
    const client = new ConversationClient(url, options);
    const onAbort = () => client.close();
    signal?.addEventListener("abort", onAbort, { once: true });
    client.#session.finished.catch(() => {}).finally(() => signal?.removeEventListener("abort", onAbort));
    try {
      await client.#session.link();
      return client;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  /** The state of the connection, with the code and the reason of the last close. */
  get state(): ConnectionState {
    return this.#session.state;
  }

  /** Resolves after `close`, and rejects with the reason if the client cannot or may not reconnect. */
  get finished(): Promise<void> {
    return this.#session.finished;
  }

  /**
   * Calls any method of the protocol. Without a connection it waits for one, up to its time limit. A call that only
   * reads is repeated if the connection is lost; other calls then fail with `connection_lost`.
   * @throws ConversationError with the server's error number
   * @example
   * ```ts
   * await client.request("map/send", { to: { agent: "adder" }, payload: { numbers: [19, 23] } });
   * ```
   */
  request<Method extends MapMethod>(
    method: Method,
    params: Params<Method>,
    options?: CallOptions,
  ): Promise<MapMethods[Method]["result"]>;
  request<Name extends string>(
    method: Name extends MapMethod ? never : Name,
    params?: object,
    options?: CallOptions,
  ): Promise<Record<string, unknown>>;
  request(method: string, params: object = {}, options: CallOptions = {}): Promise<Record<string, unknown>> {
    const { signal, timeout } = options;
    return this.#session.request(method, params, { signal, timeout, repeat: REPEATABLE.has(method) });
  }

  /**
   * Yields all conversations that the caller may see, oldest first unless `order` is `desc`.
   * @example
   * ```ts
   * for await (const { id, subject } of client.list({ status: ["active"] }, { order: "desc" })) console.log(id, subject);
   * ```
   */
  async *list(
    filter: ConversationFilter = {},
    options: PageOptions = {},
  ): AsyncGenerator<Conversation, void, undefined> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.request("mail/list", { filter, ...pageOf(options, cursor) }, options);
      yield* page.conversations;
      if (!page.hasMore) return;
      cursor = page.nextCursor;
    }
  }

  /** Returns a conversation with its participants. */
  async get(conversationId: string, options: CallOptions = {}): Promise<ConversationDetails> {
    const include = { participants: true, stats: true };
    const { conversation, participants, stats } = await this.request(
      "mail/get",
      { conversationId, include },
      options,
    );
    return { conversation, participants: participants ?? [], stats: stats ?? NO_STATS };
  }

  /**
   * Yields all turns that the caller may see, oldest first unless `order` is `desc`.
   * @example
   * ```ts
   * for await (const { content } of client.turns(id, { order: "desc", filter: { contentTypes: ["text"] } })) break;
   * ```
   */
  async *turns(
    conversationId: string,
    options: TurnListOptions = {},
  ): AsyncGenerator<ConversationTurn, void, undefined> {
    const { filter } = options;
    const wanted = { conversationId, ...(filter !== undefined && { filter }) };
    for (let cursor: string | undefined; ; ) {
      const page = await this.request("mail/turns/list", { ...wanted, ...pageOf(options, cursor) }, options);
      yield* page.turns;
      if (!page.hasMore) return;
      cursor = page.nextCursor;
    }
  }

  /** Yields the threads of a conversation, or those below a thread. */
  async *threads(
    conversationId: string,
    options: Omit<PageOptions, "order"> & { readonly parentThreadId?: string } = {},
  ): AsyncGenerator<Thread, void, undefined> {
    const { parentThreadId } = options;
    const wanted = { conversationId, ...(parentThreadId !== undefined && { parentThreadId }) };
    for (let cursor: string | undefined; ; ) {
      const page = await this.request("mail/thread/list", { ...wanted, ...pageOf(options, cursor) }, options);
      yield* page.threads;
      if (page.nextCursor === undefined) return;
      cursor = page.nextCursor;
    }
  }

  /** Creates a conversation. `request("mail/create", …)` also returns the invitations of new ids. */
  async create(params: NewConversation = {}, options: CallOptions = {}): Promise<Conversation> {
    return (await this.request("mail/create", params, options)).conversation;
  }

  /** Adds a turn with text. In a task's conversation this is a message to the task. */
  say(conversationId: string, text: string, options: CallOptions = {}): Promise<ConversationTurn> {
    return this.addTurn(conversationId, { contentType: "text", content: { text } }, options);
  }

  /**
   * Adds a turn of any kind.
   * @example
   * ```ts
   * await client.addTurn(id, { contentType: "data", content: { price: 12 }, visibility: { type: "private" } });
   * ```
   */
  async addTurn(conversationId: string, turn: NewTurn, options: CallOptions = {}): Promise<ConversationTurn> {
    return (await this.request("mail/turn", { conversationId, ...turn }, options)).turn;
  }

  /** Sets the status of a turn that was added as `pending` or `streaming`. */
  async updateTurn(
    conversationId: string,
    turnId: string,
    status: "streaming" | "complete" | "failed",
    options: CallOptions = {},
  ): Promise<void> {
    await this.request("mailroom/turn/update", { conversationId, turnId, status }, options);
  }

  /** Joins a conversation. */
  async join(
    conversationId: string,
    options: CallOptions & Pick<Params<"mail/join">, "role" | "catchUp"> = {},
  ): Promise<MapMethods["mail/join"]["result"]> {
    const { role, catchUp } = options;
    const params = {
      conversationId,
      ...(role !== undefined && { role }),
      ...(catchUp !== undefined && { catchUp }),
    };
    return this.request("mail/join", params, options);
  }

  /** Leaves a conversation, or removes another participant. */
  async leave(
    conversationId: string,
    options: CallOptions & { readonly reason?: string; readonly participantId?: string } = {},
  ): Promise<void> {
    const { reason, participantId } = options;
    await this.request(
      "mail/leave",
      { conversationId, ...withReason(reason), ...(participantId !== undefined && { participantId }) },
      options,
    );
  }

  /** Invites a participant. Returns the invitation if the id has no owner yet; pass it on to who registers under it. */
  async invite(
    conversationId: string,
    participant: Params<"mail/invite">["participant"],
    options: CallOptions & { readonly message?: string } = {},
  ): Promise<{ readonly participant: Participant; readonly invitation?: string }> {
    const { message } = options;
    const params = { conversationId, participant, ...(message !== undefined && { message }) };
    const answer = await this.request("mail/invite", params, options);
    const invitation = answer._meta?.invitations[participant.id];
    return { participant: answer.participant, ...(invitation !== undefined && { invitation }) };
  }

  /** Changes the role or the permissions of a member. */
  async setMember(
    conversationId: string,
    participantId: string,
    change: { readonly role?: ParticipantRole; readonly permissions?: Partial<Permissions> },
    options: CallOptions = {},
  ): Promise<Participant> {
    const params = { conversationId, participantId, ...change };
    return (await this.request("mailroom/member", params, options)).participant;
  }

  /** Creates a thread that begins at a turn. */
  async createThread(
    conversationId: string,
    rootTurnId: string,
    options: CallOptions & { readonly subject?: string; readonly parentThreadId?: string } = {},
  ): Promise<Thread> {
    const { subject, parentThreadId } = options;
    const params = {
      conversationId,
      rootTurnId,
      ...(subject !== undefined && { subject }),
      ...(parentThreadId !== undefined && { parentThreadId }),
    };
    return (await this.request("mail/thread/create", params, options)).thread;
  }

  /** Returns a summary of a conversation. A stored summary is used while it is current. */
  summary(conversationId: string, options: SummaryOptions = {}): Promise<Summary> {
    const { signal: _, timeout: __, ...wanted } = options;
    return this.request("mail/summary", { conversationId, ...wanted }, options);
  }

  /** Returns who of the participants is connected. */
  async presence(conversationId: string, options: CallOptions = {}): Promise<readonly Presence[]> {
    return (await this.request("mail/presence", { conversationId }, options)).participants;
  }

  /** Notes that the caller has read everything up to a turn. Returns how much is unread. */
  markRead(conversationId: string, turnId: string, options: CallOptions = {}): Promise<Unread> {
    return this.request("mailroom/read", { conversationId, turnId }, options);
  }

  /** Counts unread turns of others, by default in the 50 newest conversations. */
  async unread(conversationIds?: readonly string[], options: CallOptions = {}): Promise<readonly Unread[]> {
    const params = conversationIds === undefined ? {} : { conversationIds };
    return (await this.request("mailroom/unread", params, options)).unread;
  }

  /**
   * Yields turns that contain the text, newest first.
   * @example
   * ```ts
   * for await (const { conversationId, content } of client.search("invoice")) console.log(conversationId, content);
   * ```
   */
  async *search(
    query: string,
    options: TurnSearchOptions = {},
  ): AsyncGenerator<ConversationTurn, void, undefined> {
    const { conversationId } = options;
    const wanted = { query, ...(conversationId !== undefined && { conversationId }) };
    for (let cursor: string | undefined; ; ) {
      const page = await this.request("mailroom/search", { ...wanted, ...pageOf(options, cursor) }, options);
      yield* page.turns;
      if (!page.hasMore) return;
      cursor = page.nextCursor;
    }
  }

  /** Closes a conversation. Closing a task's conversation cancels the task. */
  async closeConversation(
    conversationId: string,
    reason?: string,
    options: CallOptions & { readonly status?: "completed" | "failed" } = {},
  ): Promise<Conversation> {
    const { status } = options;
    const params = { conversationId, ...withReason(reason), ...(status !== undefined && { status }) };
    return (await this.request("mail/close", params, options)).conversation;
  }

  /** Makes a closed, paused or archived conversation active again. */
  reopen(conversationId: string, reason?: string, options: CallOptions = {}): Promise<Conversation> {
    return this.#change("mail/reopen", conversationId, reason, options);
  }

  /** Pauses a conversation: no turns are accepted until it is reopened. */
  pause(conversationId: string, reason?: string, options: CallOptions = {}): Promise<Conversation> {
    return this.#change("mailroom/pause", conversationId, reason, options);
  }

  /** Archives a conversation. */
  archive(conversationId: string, reason?: string, options: CallOptions = {}): Promise<Conversation> {
    return this.#change("mailroom/archive", conversationId, reason, options);
  }

  /** Deletes a conversation with all of its turns. */
  async deleteConversation(conversationId: string, options: CallOptions = {}): Promise<void> {
    await this.request("mailroom/delete", { conversationId }, options);
  }

  /**
   * Yields events, each once and in order, over lost connections and restarts of the server. Resolves when the
   * subscription exists, so that no later event is missed. The iteration ends when the client is closed.
   * @throws ConversationError `refused` when `after` is unknown; the iterator throws why the client has ended
   * @example
   * ```ts
   * for await (const { type, data } of await client.follow({ conversationId })) console.log(type, data);
   * ```
   */
  async follow(options: FollowOptions = {}): Promise<AsyncGenerator<ConversationEvent, void, undefined>> {
    const { conversationId, after, signal } = options;
    signal?.throwIfAborted();
    const follow = new Follow({
      filter: {
        eventTypes: EVENT_TYPES,
        ...options.filter,
        ...(conversationId !== undefined && { mail: { ...options.filter?.mail, conversationId } }),
      },
      after,
      timeout: this.#timeout,
      link: () => this.#session.openLink,
      onStop: (stopped) => {
        signal?.removeEventListener("abort", onAbort);
        this.#follows.delete(stopped);
      },
    });
    const onAbort = () => follow.stop();
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#follows.add(follow);
    try {
      await this.#subscribe(follow, signal);
    } catch (error) {
      follow.stop();
      throw error;
    }
    return follow.events();
  }

  /** Closes the connection and ends everything: calls fail with `closed`, and iterations end. */
  close(): void {
    this.#session.close();
  }

  /** The same, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #subscribe(follow: Follow, signal: AbortSignal | undefined): Promise<void> {
    const limit = AbortSignal.timeout(this.#timeout);
    const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
    for (;;) {
      try {
        return await follow.subscribe(await this.#session.link(either));
      } catch (error) {
        if (isLost(error) && this.state.status !== "closed") continue;
        if (!limit.aborted || signal?.aborted === true || error !== limit.reason) throw error;
        throw new ConversationError(
          "connection_lost",
          "the subscription was not made: there is no connection",
        );
      }
    }
  }

  /** Runs after each connection. Subscriptions of the session continue at the last event that was received. */
  #opened(link: MapLink, { subscriptions }: Readonly<Record<string, unknown>>): void {
    // The server continues after the last event that it sent, which may have been lost with the connection.
    for (const subscriptionId of Array.isArray(subscriptions) ? subscriptions : []) {
      link.request("map/unsubscribe", { subscriptionId }, { timeout: this.#timeout }).catch(() => {});
    }
    for (const follow of this.#follows) void follow.resume(link);
  }

  #notified(...[{ method, params, size }, link]: Parameters<NotificationListener>): void {
    if (method === "map/event" && isRecord(params.event)) {
      for (const follow of this.#follows) {
        if (follow.receives(params.subscriptionId, link)) {
          follow.add(params.event as unknown as ConversationEvent, size);
          return;
        }
      }
    } else if (method === "map/message" && isRecord(params.message)) {
      this.#onMessage?.(params.message as unknown as MapMessage);
    }
  }

  #endFollows(end: (follow: Follow) => void): void {
    for (const follow of [...this.#follows]) end(follow);
  }

  async #change(
    method: "mail/reopen" | "mailroom/pause" | "mailroom/archive",
    conversationId: string,
    reason: string | undefined,
    options: CallOptions,
  ): Promise<Conversation> {
    return (await this.request(method, { conversationId, ...withReason(reason) }, options)).conversation;
  }
}

const NO_STATS = { totalTurns: 0, activeParticipants: 0 };

function withReason(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

function pageOf(
  { order, pageSize }: PageOptions,
  cursor: string | undefined,
): { readonly order?: "asc" | "desc"; readonly limit?: number; readonly cursor?: string } {
  return {
    ...(order !== undefined && { order }),
    ...(pageSize !== undefined && { limit: pageSize }),
    ...(cursor !== undefined && { cursor }),
  };
}
