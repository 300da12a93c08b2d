/** Streams of events that survive lost connections. */
import { messageOf, sleep, urgentClock } from "../base/index.js";
import { notify, type StateListener } from "./connection-state.js";
import { MailConnectionError, MailStreamError } from "./errors.js";
import { endsRound, type TaskEvent, toTaskEvent } from "./events.js";
import { canRetry } from "./retry.js";
import { isEventStream, readEvents, type SseEvent } from "./sse.js";
import { type Transport, type TransportRequest, withKey } from "./transport.js";

/** Servers ping every 15 seconds: a connection that is silent for this long is dead. */
const IDLE_LIMIT = 60_000;

/** The comment that our server sends when the round of the posted message has ended. */
const END_OF_ROUND = "end of round";

interface AnyEvent {
  readonly id?: string | undefined;
  readonly event: string;
}

export interface FollowOptions<Event extends AnyEvent> {
  readonly transport: Transport;
  readonly signal?: AbortSignal;
  /** Number of consecutive connections that may fail without an event. */
  readonly reconnects: number;
  readonly idleLimit?: number;
  readonly pings: boolean;
  /** Returns the request that continues after the event `after`, or undefined if that is impossible. */
  readonly request: (position: Position) => Promise<TransportRequest | undefined>;
  /** Called with each response before its events are read. */
  readonly onOpen?: (response: Response) => void;
  /** Returns nothing for an event that the caller does not want. */
  readonly parse: (event: SseEvent) => Event | undefined;
  readonly taskIdOf?: (event: Event) => string | undefined;
  /** Whether this event is the last one. */
  readonly isLast: (event: Event) => boolean;
  /**
   * Whether the server says itself when the stream is over. An event that looks like the last one may then belong to
   * another message.
   */
  readonly saysEnd?: () => boolean;
  readonly onState?: StateListener | undefined;
}

export interface Position {
  /** Id of the last event, on any connection. */
  readonly after: string | undefined;
  readonly taskId: string | undefined;
  /** Number of connections so far. */
  readonly connections: number;
}

/** @throws MailStreamError when the stream cannot be resumed, MailClientError when the server rejects it. */
export async function* follow<Event extends AnyEvent>(
  options: FollowOptions<Event>,
): AsyncGenerator<Event, void, undefined> {
  const { signal } = options;
  let after: string | undefined;
  let taskId: string | undefined;
  let failures = 0;
  let failure: unknown;
  let reason = "the stream has ended";
  let closed: unknown;
  try {
    for (let connections = 0; ; connections += 1) {
      let over = false;
      try {
        notify(options.onState, { status: "connecting", attempt: failures + 1 });
        const call = await options.request({ after, taskId, connections });
        if (call === undefined) throw lost("this server cannot resume a stream", failure);
        failure = undefined;
        const onEnd = () => {
          over = true;
        };
        for await (const received of connect(options, call, connections, onEnd)) {
          failures = 0;
          if (received.id !== undefined) after = received.id;
          const event = options.parse(received);
          if (event === undefined) continue;
          taskId = options.taskIdOf?.(event) ?? taskId;
          if (event.event === "ping" && !options.pings) continue;
          yield event;
          if (options.saysEnd?.() !== true && options.isLast(event)) return;
        }
        if (over) return;
        // A clean close before the end: the server is shutting down, or the client was too slow.
      } catch (error) {
        if (signal?.aborted === true) throw signal.reason;
        if (over) return;
        if (!canRetry(error) && !isSilence(error)) throw error;
        failure = error;
      }
      failures += 1;
      if (failures > options.reconnects)
        throw lost(`${failures} consecutive connections yielded no event`, failure);
      const delay = options.transport.backoff(failures, failure);
      const why = failure === undefined ? "the server closed the stream" : messageOf(failure);
      notify(options.onState, { status: "waiting", attempt: failures, delay, reason: why });
      await sleep(urgentClock, delay, signal);
    }
  } catch (error) {
    reason = messageOf(error);
    closed = error;
    throw error;
  } finally {
    notify(options.onState, {
      status: "closed",
      reason,
      ...(closed !== undefined && { error: closed }),
    });
  }

  function lost(reason: string, cause?: unknown): MailStreamError {
    const message = `the event stream ended before the task: ${reason}; the task continues`;
    return new MailStreamError("stream_lost", message, { taskId, lastEventId: after, cause });
  }
}

async function* connect<Event extends AnyEvent>(
  options: FollowOptions<Event>,
  call: TransportRequest,
  connections: number,
  onEnd: () => void,
): AsyncGenerator<SseEvent, void, undefined> {
  const { transport, idleLimit = IDLE_LIMIT } = options;
  const { response, signal, abort } = await transport.open(call);
  options.onOpen?.(response);
  if (response.status === 204 || response.body === null) return;
  if (!isEventStream(response)) {
    abort(undefined);
    throw new MailStreamError("not_a_stream", `${call.method} ${call.path} did not return a stream`);
  }
  notify(options.onState, { status: "open", resumed: connections > 0 });
  const silence = new MailConnectionError("timeout", transport.url, `no data for ${idleLimit} ms`);
  try {
    yield* readEvents(response.body, {
      idleLimit,
      onIdle: () => abort(silence),
      onComment: (text) => {
        if (text.trim() === END_OF_ROUND) onEnd();
      },
    });
  } catch (error) {
    throw transport.failure(error, call, signal);
  }
}

function isSilence(error: unknown): boolean {
  return error instanceof MailConnectionError && error.code === "timeout";
}

/** How events of tasks are read. */
export const TASK_EVENTS = {
  parse: ({ id, event, data }: SseEvent) => toTaskEvent({ id, event, data }),
  taskIdOf: ({ data }: TaskEvent) => data.task_id,
} as const;

export interface MessageStreamOptions {
  readonly transport: Transport;
  readonly signal?: AbortSignal;
  readonly reconnects: number;
  readonly pings: boolean;
  readonly idleLimit?: number;
  readonly onState?: StateListener | undefined;
}

/**
 * Posts a message and yields events until the round has ended. The first connection is the response of the POST.
 * Later ones continue in the task's journal after the last event. Before the first event, the POST is repeated with its
 * idempotency key, so that it takes effect only once.
 */
export function messageEvents(
  post: TransportRequest,
  options: MessageStreamOptions,
): AsyncGenerator<TaskEvent, void, undefined> {
  const { transport } = options;
  const keyed = withKey({ ...post, headers: { accept: "text/event-stream" } });
  let journal: string | undefined;
  return follow({
    ...options,
    ...TASK_EVENTS,
    onOpen: (response) => {
      journal ??= localPath(response.headers.get("location"), transport.url);
    },
    request: async ({ after, taskId, connections }) => {
      if (connections === 0) return keyed;
      // Only a server that numbers its events can resume a stream.
      const path = journal ?? (taskId === undefined ? undefined : eventsPath(taskId));
      if (after !== undefined && path !== undefined) return resume(path, after, options);
      if (journal?.includes("after=")) return resume(journal, undefined, options);
      return taskId === undefined && (await transport.deduplicates(options.signal)) ? keyed : undefined;
    },
    isLast: endsRound,
    // The stream ends with the round of its own message. Earlier messages of the task may end theirs before.
    saysEnd: () => journal?.includes("round=") === true,
  });
}

function eventsPath(taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}/events`;
}

export function resume(
  path: string,
  after: string | undefined,
  options: { signal?: AbortSignal },
): TransportRequest {
  // The server prefers the header to `?after=`, so only one of them is sent.
  const [bare = path, query = ""] = path.split("?");
  const kept = new URLSearchParams(query);
  if (after !== undefined) kept.delete("after");
  return {
    method: "GET",
    path: kept.size === 0 ? bare : `${bare}?${kept}`,
    headers: { accept: "text/event-stream", ...(after !== undefined && { "last-event-id": after }) },
    ...(options.signal && { signal: options.signal }),
  };
}

/** Follows a `Location` only on the same origin, because the token must not go elsewhere. */
function localPath(location: string | null, base: string): string | undefined {
  if (location === null || !URL.canParse(location, `${base}/`)) return undefined;
  const url = new URL(location, `${base}/`);
  if (url.origin !== new URL(base).origin) return undefined;
  const root = new URL(base).pathname.replace(/\/$/, "");
  const path = url.pathname.startsWith(`${root}/`) ? url.pathname.slice(root.length) : url.pathname;
  return `${path}${url.search}`;
}
