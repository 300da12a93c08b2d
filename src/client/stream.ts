/** A stream of events that survives its connections. */
import { MailConnectionError, MailStreamError } from "./errors.js";
import { endsRound, type MailEvent } from "./events.js";
import { canTryAgain, pause } from "./retry.js";
import { isEventStream, readEvents } from "./sse.js";
import { type Call, type Transport, withKey } from "./transport.js";

/** Servers ping every 15 seconds: a connection that is silent for this long is dead. */
const IDLE_LIMIT = 60_000;

export interface FollowOptions {
  readonly transport: Transport;
  readonly signal?: AbortSignal;
  /** How many times in a row a connection may fail without bringing an event. */
  readonly reconnects: number;
  readonly idleLimit?: number;
  readonly pings: boolean;
  /** The request after which `after` is the last event that was seen; nothing if there is no way to go on. */
  readonly request: (position: Position) => Promise<Call | undefined>;
  /** Told of each answer before its events are read. */
  readonly onOpen?: (response: Response) => void;
  /** Whether nothing comes after this event. */
  readonly isLast: (event: MailEvent) => boolean;
}

export interface Position {
  /** The last event's id that was seen, on any connection. */
  readonly after: string | undefined;
  readonly taskId: string | undefined;
  /** How many connections there have been. */
  readonly connections: number;
}

/** @throws MailStreamError when the stream is lost for good, MailClientError when the server refuses it. */
export async function* follow(options: FollowOptions): AsyncGenerator<MailEvent, void, undefined> {
  const { signal } = options;
  let after: string | undefined;
  let taskId: string | undefined;
  let failures = 0;
  let failure: unknown;
  for (let connections = 0; ; connections += 1) {
    try {
      const call = await options.request({ after, taskId, connections });
      if (call === undefined) throw lost("this server cannot resume a stream", failure);
      failure = undefined;
      for await (const event of connect(options, call)) {
        failures = 0;
        if (event.id !== undefined) after = event.id;
        taskId = event.data.task_id ?? taskId;
        if (event.event === "ping" && !options.pings) continue;
        yield event;
        if (options.isLast(event)) return;
      }
      // Closed in good order, but before the end: the server goes down, or we were too slow for it.
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (!canTryAgain(error) && !isSilence(error)) throw error;
      failure = error;
    }
    failures += 1;
    if (failures > options.reconnects)
      throw lost(`${failures} connections in a row brought nothing`, failure);
    await pause(options.transport.backoff(failures, failure), signal);
  }

  function lost(reason: string, cause?: unknown): MailStreamError {
    const message = `the stream of events was cut before the task had ended: ${reason}. The task itself goes on`;
    return new MailStreamError("stream_lost", message, { taskId, lastEventId: after, cause });
  }
}

async function* connect(options: FollowOptions, call: Call): AsyncGenerator<MailEvent, void, undefined> {
  const { transport, idleLimit = IDLE_LIMIT } = options;
  const { response, signal, abort } = await transport.open(call);
  options.onOpen?.(response);
  if (response.status === 204 || response.body === null) return;
  if (!isEventStream(response)) {
    abort(undefined);
    throw new MailStreamError("not_a_stream", `${call.method} ${call.path} did not answer with a stream`);
  }
  const silence = new MailConnectionError("timeout", transport.url, `nothing came for ${idleLimit} ms`);
  try {
    yield* readEvents(response.body, { idleLimit, onIdle: () => abort(silence) });
  } catch (error) {
    throw transport.failure(error, call, signal);
  }
}

function isSilence(error: unknown): boolean {
  return error instanceof MailConnectionError && error.code === "timeout";
}

export interface MessageStreamOptions {
  readonly transport: Transport;
  readonly signal?: AbortSignal;
  readonly reconnects: number;
  readonly pings: boolean;
  readonly idleLimit?: number;
}

/**
 * Posts a message and follows what happens until the round has ended. The first connection is the answer of the POST;
 * later ones read on in the task's journal after the last event that was seen. Where none was seen yet, the POST is
 * made again with its idempotency key, which takes effect only once.
 */
export function messageEvents(
  post: Call,
  options: MessageStreamOptions,
): AsyncGenerator<MailEvent, void, undefined> {
  const { transport } = options;
  const keyed = withKey({ ...post, headers: { accept: "text/event-stream" } });
  let journal: string | undefined;
  return follow({
    ...options,
    onOpen: (response) => {
      journal ??= localPath(response.headers.get("location"), transport.url);
    },
    request: async ({ after, taskId, connections }) => {
      if (connections === 0) return keyed;
      // Only a server that numbers its events can take up where it was.
      const path = journal ?? (taskId === undefined ? undefined : eventsPath(taskId));
      if (after !== undefined && path !== undefined) return resume(path, after, options);
      if (journal?.includes("after=")) return resume(journal, undefined, options);
      return taskId === undefined && (await transport.deduplicates(options.signal)) ? keyed : undefined;
    },
    isLast: endsRound,
  });
}

function eventsPath(taskId: string): string {
  return `/tasks/${encodeURIComponent(taskId)}/events`;
}

export function resume(path: string, after: string | undefined, options: { signal?: AbortSignal }): Call {
  // The header wins over `?after=` on the server; both at once would only invite disagreement.
  const bare = after === undefined ? path : path.replace(/\?.*$/, "");
  return {
    method: "GET",
    path: bare,
    headers: { accept: "text/event-stream", ...(after !== undefined && { "last-event-id": after }) },
    ...(options.signal && { signal: options.signal }),
  };
}

/** A `Location` is followed only on the server that gave it: the token goes nowhere else. */
function localPath(location: string | null, base: string): string | undefined {
  if (location === null || !URL.canParse(location, `${base}/`)) return undefined;
  const url = new URL(location, `${base}/`);
  if (url.origin !== new URL(base).origin) return undefined;
  const root = new URL(base).pathname.replace(/\/$/, "");
  const path = url.pathname.startsWith(`${root}/`) ? url.pathname.slice(root.length) : url.pathname;
  return `${path}${url.search}`;
}
