/** A task's events as a page or as a stream, for its owner and for admins. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { EventQuery } from "../extension/index.js";
import { type Caller, type RouteResult, STREAMED } from "../extension/index.js";
import type { Task } from "../library/index.js";
import type { HttpContext } from "./context.js";
import type { JsonStream } from "./json-stream.js";
import { type StreamEnd, streamTask } from "./task-stream.js";

/** Characters after which a page ends. */
const LONGEST_PAGE = 4 * 1024 * 1024;

export interface WantedEvents {
  readonly task: Task;
  readonly query: z.output<typeof EventQuery>;
  readonly request: FastifyRequest;
}

/** A stream needs an explicit request, because it may never end. */
export function wantsStream({ method, headers }: Pick<FastifyRequest, "method" | "headers">): boolean {
  return method === "GET" && headers.accept?.toLowerCase().includes("text/event-stream") === true;
}

/** A page ends at a limit of events or of characters; clients request the next one. */
export async function* eventPage(context: HttpContext, { task, query, request }: WantedEvents): JsonStream {
  const after = lastSeen({ query, request });
  const limit = Math.min(query.limit ?? context.limits.eventPage, context.limits.eventPage);
  let count = 0;
  let length = 0;
  let last = after ?? null;
  let more = false;
  yield `{"task_id":${JSON.stringify(task.id)},"events":[`;
  for await (const event of task.events(after === undefined ? {} : { after })) {
    more = count === limit || length > LONGEST_PAGE;
    if (more) break;
    const text = JSON.stringify(event);
    yield count === 0 ? text : `,${text}`;
    count++;
    length += text.length;
    last = event.id;
  }
  const tail = JSON.stringify({ status: await task.status(), next_after: last, more });
  yield `],${tail.slice(1)}`;
}

export async function streamEvents(
  context: HttpContext,
  reply: FastifyReply,
  caller: Caller,
  { task, query, request }: WantedEvents,
): Promise<RouteResult> {
  const leave = context.streams.take(caller.name);
  try {
    const stream = await streamTask({
      ...context.streaming,
      reply,
      caller,
      task,
      after: lastSeen({ query, request }),
      end: endOf(query),
    });
    if (stream.ended === "too_slow") context.metrics.droppedListener();
    return STREAMED;
  } finally {
    leave();
  }
}

function endOf({ round, until }: WantedEvents["query"]): StreamEnd {
  if (round !== undefined) return { kind: "outcome", start: { number: round } };
  return { kind: until === "round" ? "round" : "never" };
}

/** A reconnecting browser repeats its original URL, so the header takes precedence. */
function lastSeen({ query, request }: Pick<WantedEvents, "query" | "request">): string | undefined {
  const header = request.headers["last-event-id"];
  return typeof header === "string" && header !== "" ? header : query.after;
}
