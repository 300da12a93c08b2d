/** Reading tasks: one, all, page by page, and their events. The same for a caller's own and for an admin's view. */
import { endsRound, eventOf, type MailEvent } from "./events.js";
import { callOptions, type TaskEventsOptions, type TaskListOptions } from "./options.js";
import { follow, resume } from "./stream.js";
import type { Call, CallOptions, Transport } from "./transport.js";
import { EventPage, RawTask, TaskPage, type TaskStatus, type TaskSummary } from "./wire.js";

/** The reference's task record, its events in one form. */
export interface TaskRecord {
  readonly task_id: string;
  readonly task_owner: string;
  readonly task_contributors: readonly string[];
  readonly start_time?: string | undefined;
  readonly events: readonly MailEvent[];
  readonly is_running: boolean;
  readonly completed: boolean;
  readonly title?: string | undefined;
  /** Read off the two booleans where a server of the reference gives no status. */
  readonly status: TaskStatus;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** The internal key, which names the journal. Absent on servers of the reference. */
  readonly key?: string | undefined;
}

export interface TaskList {
  readonly tasks: readonly TaskSummary[];
  readonly nextCursor: string | undefined;
}

export function recordOf(raw: RawTask): TaskRecord {
  return {
    ...raw,
    task_contributors: raw.task_contributors ?? [],
    start_time: raw.start_time ?? undefined,
    events: (raw.events ?? []).map(eventOf),
    title: raw.title ?? undefined,
    status: raw.status ?? (raw.is_running ? "running" : "completed"),
    error: raw.error ?? undefined,
  };
}

export async function taskPage(
  transport: Transport,
  path: string,
  options: TaskListOptions,
): Promise<TaskList> {
  const { status, limit = 50, cursor } = options;
  const call: Call = { method: "GET", path, query: { status, limit, cursor }, ...callOptions(options) };
  const page = await transport.json(call, TaskPage);
  return { tasks: page.tasks, nextCursor: page.next_cursor ?? undefined };
}

/** All tasks, newest first, fetched as they are asked for. */
export async function* allTasks(
  transport: Transport,
  path: string,
  options: TaskListOptions,
): AsyncGenerator<TaskSummary, void, undefined> {
  let { cursor } = options;
  do {
    const page = await taskPage(transport, path, { ...options, ...(cursor !== undefined && { cursor }) });
    yield* page.tasks;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

export interface EventSource {
  readonly transport: Transport;
  /** `/tasks/{id}` or `/admin/tasks/{key}` */
  readonly path: string;
  readonly reconnects: number;
  readonly idleLimit?: number;
}

/** First what has happened, page by page; then what happens, for as long as the caller wants to know. */
export async function* taskEvents(
  source: EventSource,
  options: TaskEventsOptions,
): AsyncGenerator<MailEvent, void, undefined> {
  const { live = "round", signal } = options;
  const { transport, path } = source;
  let { after } = options;
  let last: MailEvent | undefined;
  for (let stood = false; ; ) {
    const call: Call = { method: "GET", path: `${path}/events`, query: { after }, ...callOptions(options) };
    const page = await transport.json(call, EventPage);
    for (const event of page.events.map(eventOf)) {
      last = event;
      after = event.id ?? after;
      yield event;
    }
    if (page.more) continue;
    if (live === false) return;
    if (live === true || page.status === "running") break;
    // The status is newer than the events on the page: one more look, lest the last of them be missed.
    if (stood || (last !== undefined && endsRound(last))) return;
    stood = true;
  }
  yield* follow({
    ...source,
    ...(signal && { signal }),
    pings: options.pings ?? false,
    request: async (position) =>
      resume(`${path}/events`, position.after ?? after, { ...(signal && { signal }) }),
    isLast: (event) => live === "round" && endsRound(event),
  });
}

export async function readTask(
  transport: Transport,
  path: string,
  options: CallOptions,
): Promise<TaskRecord> {
  return recordOf(await transport.json({ method: "GET", path, ...callOptions(options) }, RawTask));
}
