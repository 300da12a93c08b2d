/** Calls that show what a server does: journals, digests, search, the feed, and what only admins see. */
import type { StateListener } from "./connection-state.js";
import {
  FEED_EVENTS,
  type FeedEvent,
  JournalPage,
  OutboxItem,
  OutboxPage,
  SearchPage,
  StatsPage,
  TaskCounts,
  type TaskDigest,
  TaskDigests,
  TokenList,
  Traffic,
} from "./observation.js";
import { callOptions } from "./options.js";
import { follow } from "./stream.js";
import type { CallOptions, Transport, WriteOptions } from "./transport.js";
import { AnyObject } from "./wire.js";

/** Options of journals. `before` reads backward; a large number reads from the end. */
export interface JournalOptions extends CallOptions {
  /** Only entries after this number. */
  readonly after?: number;
  /** Only entries before this number. */
  readonly before?: number;
  /** Entries of the page at most. */
  readonly limit?: number;
}

/** Options of a search. */
export interface SearchOptions extends CallOptions {
  /** Only entries of this kind. */
  readonly kind?: string;
  /** Only entries of this agent. */
  readonly agent?: string;
  /** Only entries since then (ISO 8601). */
  readonly since?: string;
  /** Hits of the page at most. */
  readonly limit?: number;
  /** For admins: only their own tasks. */
  readonly own?: boolean;
}

/** Options of the feed. */
export interface FeedOptions extends Pick<CallOptions, "signal"> {
  /** The last id already seen, or the `cursor` of a journal. */
  readonly after?: string;
  /** A task id of the caller, or for admins a key: its entries are in the feed. */
  readonly watch?: string;
  /** For admins: only their own tasks. */
  readonly own?: boolean;
  /** For admins: a row of figures each second. */
  readonly stats?: boolean;
  /**
   * Called with every new state of the feed's connection.
   * @defaultValue none
   */
  readonly onState?: StateListener;
}

/** Options of the outbox. */
export interface OutboxOptions extends CallOptions {
  /** Only deliveries of this queue. */
  readonly queue?: string;
  /** Only deliveries with this status. */
  readonly status?: "waiting" | "delivered" | "refused" | "expired";
  /** Only deliveries to this server. */
  readonly target?: string;
  /** The number of the last delivery of the previous page. */
  readonly after?: number;
  /** Deliveries of the page at most. */
  readonly limit?: number;
}

/**
 * What a caller sees of its own tasks. Available as `client.observe`.
 * @example
 * for await (const { event, data } of client.observe.feed()) console.log(event, data);
 */
export class ObserveClient {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns part of a task's journal. */
  getJournal(taskId: string, options: JournalOptions = {}): Promise<JournalPage> {
    return journal(this.#transport, `/tasks/${encodeURIComponent(taskId)}`, options);
  }

  /** Returns tasks in figures. Unknown tasks are left out. */
  async getDigests(tasks: readonly string[], options: CallOptions = {}): Promise<readonly TaskDigest[]> {
    const call = { method: "POST", path: "/tasks/digest", body: { tasks }, ...callOptions(options) } as const;
    return (await this.#transport.json(call, TaskDigests)).digests;
  }

  /** Returns the number of the caller's tasks by status. */
  countTasks(options: CallOptions = {}): Promise<TaskCounts> {
    return this.#transport.json(
      { method: "GET", path: "/tasks/counts", ...callOptions(options) },
      TaskCounts,
    );
  }

  /** Searches in what was said. */
  search(words: string, options: SearchOptions = {}): Promise<SearchPage> {
    const { kind, agent, since, limit, own } = options;
    const query = { q: words, kind, agent, since, limit, own: flag(own) };
    return this.#transport.json(
      { method: "GET", path: "/search", query, ...callOptions(options) },
      SearchPage,
    );
  }

  /**
   * Yields what happens in tasks, without end. A lost connection is resumed after the last event.
   * @example
   * ```ts
   * for await (const { event, data } of client.observe.feed({ signal })) console.log(event, data);
   * ```
   */
  feed(options: FeedOptions = {}): AsyncGenerator<FeedEvent, void, undefined> {
    const { signal, watch, own, stats, onState } = options;
    // Where the feed begins, for a connection that is lost before the first event with an id.
    let begin = options.after;
    return follow({
      transport: this.#transport,
      ...(signal && { signal }),
      onState,
      reconnects: Number.POSITIVE_INFINITY,
      pings: true,
      request: async ({ after = begin }) => ({
        method: "GET",
        path: "/feed",
        query: { after, watch, own: flag(own), stats: flag(stats) },
        headers: { accept: "text/event-stream" },
        ...(signal && { signal }),
      }),
      parse: ({ event, id, data }) => {
        const parsed = toFeedEvent(event, id, JSON.parse(data));
        if (parsed?.event === "hello") begin = parsed.data.cursor;
        return parsed;
      },
      isLast: () => false,
    });
  }
}

/**
 * What admins see. Available as `client.admin.observe`.
 * @example
 * const { items } = await client.admin.observe.getOutbox({ status: "waiting" });
 */
export class AdminObserveClient {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns part of the journal of any task. */
  getJournal(key: string, options: JournalOptions = {}): Promise<JournalPage> {
    return journal(this.#transport, `/admin/tasks/${encodeURIComponent(key)}`, options);
  }

  /** Returns anybody's tasks in figures. */
  async getDigests(keys: readonly string[], options: CallOptions = {}): Promise<readonly TaskDigest[]> {
    const call = {
      method: "POST",
      path: "/admin/tasks/digest",
      body: { keys },
      ...callOptions(options),
    } as const;
    return (await this.#transport.json(call, TaskDigests)).digests;
  }

  /** Returns the number of all tasks by status. */
  countTasks(options: CallOptions = {}): Promise<TaskCounts> {
    const call = { method: "GET", path: "/admin/tasks/counts", ...callOptions(options) } as const;
    return this.#transport.json(call, TaskCounts);
  }

  /** Returns how the server did, by second or minute. */
  getStats(
    options: CallOptions & { readonly step?: "1s" | "1m"; readonly since?: number } = {},
  ): Promise<StatsPage> {
    const { step, since } = options;
    const call = {
      method: "GET",
      path: "/admin/stats",
      query: { step, since },
      ...callOptions(options),
    } as const;
    return this.#transport.json(call, StatsPage);
  }

  /** Returns who wrote to whom in the last milliseconds. */
  getTraffic(options: CallOptions & { readonly window?: number } = {}): Promise<Traffic> {
    const { window } = options;
    const call = {
      method: "GET",
      path: "/admin/traffic",
      query: { window },
      ...callOptions(options),
    } as const;
    return this.#transport.json(call, Traffic);
  }

  /** Returns mail to other servers. */
  getOutbox(options: OutboxOptions = {}): Promise<OutboxPage> {
    const { queue, status, target, after, limit } = options;
    const query = { queue, status, target, after, limit };
    return this.#transport.json(
      { method: "GET", path: "/admin/outbox", query, ...callOptions(options) },
      OutboxPage,
    );
  }

  /** Delivers waiting mail now. */
  retryDelivery(id: string, options: WriteOptions = {}): Promise<OutboxItem> {
    return this.#change(id, "retry", options);
  }

  /** Gives waiting mail up. */
  abandonDelivery(id: string, options: WriteOptions = {}): Promise<OutboxItem> {
    return this.#change(id, "abandon", options);
  }

  /** Returns a page of tokens, without their secrets. */
  getTokens(options: CallOptions & { readonly cursor?: number } = {}) {
    const { cursor } = options;
    const call = {
      method: "GET",
      path: "/admin/tokens",
      query: { cursor },
      ...callOptions(options),
    } as const;
    return this.#transport.json(call, TokenList);
  }

  /** Revokes a token by its id. */
  async revokeToken(tokenId: string, options: WriteOptions = {}): Promise<void> {
    const path = `/admin/tokens/${encodeURIComponent(tokenId)}/revoke`;
    await this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, AnyObject);
  }

  #change(id: string, what: string, options: WriteOptions): Promise<OutboxItem> {
    const path = `/admin/outbox/${encodeURIComponent(id)}/${what}`;
    return this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, OutboxItem);
  }
}

function journal(transport: Transport, path: string, options: JournalOptions): Promise<JournalPage> {
  const { after, before, limit } = options;
  const query = { after, before, limit };
  return transport.json(
    { method: "GET", path: `${path}/journal`, query, ...callOptions(options) },
    JournalPage,
  );
}

function flag(value: boolean | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

/** Returns nothing for an event that this client does not know. */
function toFeedEvent(event: string, id: string | undefined, data: unknown): FeedEvent | undefined {
  switch (event) {
    case "hello":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "task":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "entries":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "token":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "counts":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "stats":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "swarm":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "removed":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "reset":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    case "ping":
      return { event, id, data: FEED_EVENTS[event].parse(data) };
    default:
      return undefined;
  }
}
