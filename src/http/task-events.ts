/** A task's events as a page or as a stream, for its owner and for admins alike. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { MailEvent } from "../engine/view/events.js";
import type { Task } from "../library/task.js";
import type { Door } from "./door.js";
import { type Caller, type Handled, STREAMED } from "./route.js";
import type { EventQuery } from "./schemas/common.js";
import { streamTask } from "./task-stream.js";

export interface WantedEvents {
  readonly task: Task;
  readonly query: z.output<typeof EventQuery>;
  readonly request: FastifyRequest;
}

/** Only who asks for a stream gets one: it has no end of its own. */
export function wantsStream({ method, headers }: Pick<FastifyRequest, "method" | "headers">): boolean {
  return method === "GET" && headers.accept?.toLowerCase().includes("text/event-stream") === true;
}

export async function eventPage(door: Door, { task, query, request }: WantedEvents): Promise<Handled> {
  const after = lastSeen({ query, request });
  const limit = Math.min(query.limit ?? door.limits.eventPage, door.limits.eventPage);
  const events: MailEvent[] = [];
  let more = false;
  for await (const event of task.events(after === undefined ? {} : { after })) {
    more = events.length === limit;
    if (more) break;
    events.push(event);
  }
  const status = await task.status();
  const next_after = events.at(-1)?.id ?? after ?? null;
  return { status: 200, body: { task_id: task.id, status, events, next_after, more } };
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
