/** A task's events as a page or as a stream, for its owner and for admins alike. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Task } from "../library/task.js";
import type { Door } from "./door.js";
import { type Caller, type Handled, JSON_TEXT, STREAMED } from "./route.js";
import type { EventQuery } from "./schemas/common.js";
import { streamTask } from "./task-stream.js";

/** Characters after which a page has no further event. */
const LONGEST_PAGE = 4 * 1024 * 1024;

export interface WantedEvents {
  readonly task: Task;
  readonly query: z.output<typeof EventQuery>;
  readonly request: FastifyRequest;
}

/** Only who asks for a stream gets one: it has no end of its own. */
export function wantsStream({ method, headers }: Pick<FastifyRequest, "method" | "headers">): boolean {
  return method === "GET" && headers.accept?.toLowerCase().includes("text/event-stream") === true;
}

/** A page ends when it is long enough, by number or by length; whoever wants more asks for the next one. */
export async function eventPage(door: Door, { task, query, request }: WantedEvents): Promise<Handled> {
  const after = lastSeen({ query, request });
  const limit = Math.min(query.limit ?? door.limits.eventPage, door.limits.eventPage);
  const events: string[] = [];
  let length = 0;
  let last = after ?? null;
  let more = false;
  for await (const event of task.events(after === undefined ? {} : { after })) {
    more = events.length === limit || length > LONGEST_PAGE;
    if (more) break;
    const text = JSON.stringify(event);
    events.push(text);
    length += text.length;
    last = event.id;
  }
  const head = JSON.stringify({ task_id: task.id, status: await task.status() });
  const tail = JSON.stringify({ next_after: last, more });
  // Written by hand because each event is text already: to know its length.
  const body = `${head.slice(0, -1)},"events":[${events.join(",")}],${tail.slice(1)}`;
  return { status: 200, headers: JSON_TEXT, body };
}

export async function streamEvents(
  door: Door,
  reply: FastifyReply,
  caller: Caller,
  { task, query, request }: WantedEvents,
): Promise<Handled> {
  const leave = door.streams.take(caller.name);
  try {
    const stream = await streamTask({
      ...door.streaming,
      reply,
      caller,
      task,
      after: lastSeen({ query, request }),
      end: { kind: query.until === "round" ? "round" : "never" },
    });
    if (stream.ended === "too_slow") door.metrics.droppedListener();
    return STREAMED;
  } finally {
    leave();
  }
}

/** A browser that reconnects repeats the URL it began with, so the header comes first. */
function lastSeen({ query, request }: Pick<WantedEvents, "query" | "request">): string | undefined {
  const header = request.headers["last-event-id"];
  return typeof header === "string" && header !== "" ? header : query.after;
}
