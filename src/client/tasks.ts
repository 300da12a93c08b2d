/** Reads tasks, pages of tasks and their events, for callers and for admins. */
import { endsRound, type TaskEvent, toTaskEvent } from "./events.js";
import { callOptions, type TaskEventsOptions, type TaskListOptions } from "./options.js";
import { follow, resume, TASK_EVENTS } from "./stream.js";
import type { CallOptions, Transport, TransportRequest } from "./transport.js";
import {
  type AwaitedReply,
  EventPage,
  RawTask,
  type TaskBudget,
  TaskPage,
  type TaskStatus,
  type TaskSummary,
  type TaskUsage,
} from "./wire.js";

/** A task with its events, in the reference's form. */
export interface TaskRecord {
  readonly task_id: string;
  readonly task_owner: string;
  readonly task_contributors: readonly string[];
  readonly start_time?: string | undefined;
  readonly events: readonly TaskEvent[];
  readonly is_running: boolean;
  readonly completed: boolean;
  readonly title?: string | undefined;
  /** Derived from the two booleans on servers of the reference. */
  readonly status: TaskStatus;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Who may answer for the owner, if anybody was named. */
  readonly approvers?: readonly string[] | undefined;
  /** Answers of other swarms that the task waits for. */
  readonly waiting_for?: readonly AwaitedReply[] | undefined;
  /** What an agent needs before a paused task can continue: `credentials` or `budget`. */
  readonly reason?: string | undefined;
  /** What its model calls used, in all and by agent. */
  readonly usage?: TaskUsage | undefined;
  /** Limits on that, if there are any. */
  readonly budget?: TaskBudget | undefined;
  /** The internal key, which names the journal. Absent on servers of the reference. */
  readonly key?: string | undefined;
}

/** A page of tasks. */
export interface TaskList {
  readonly tasks: readonly TaskSummary[];
  /** Pass it as `cursor` to get the next page. Undefined on the last one. */
  readonly nextCursor: string | undefined;
}

export function toTaskRecord(raw: RawTask): TaskRecord {
  return {
    ...raw,
    task_contributors: raw.task_contributors ?? [],
    start_time: raw.start_time ?? undefined,
    events: (raw.events ?? []).map(toTaskEvent),
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
  const { status, since, until, q, agent, owner, limit = 50, cursor } = options;
  const call: TransportRequest = {
    method: "GET",
    path,
    query: { status, since, until, q, agent, owner, limit, cursor },
    ...callOptions(options),
  };
  const page = await transport.json(call, TaskPage);
  return { tasks: page.tasks, nextCursor: page.next_cursor ?? undefined };
}

/** Yields all tasks, newest first, and fetches pages as needed. */
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

/** Yields past events page by page, then live ones while the caller reads. */
export async function* taskEvents(
  source: EventSource,
  options: TaskEventsOptions,
): AsyncGenerator<TaskEvent, void, undefined> {
  const { live = "round", signal } = options;
  const { transport, path } = source;
  let { after } = options;
  let last: TaskEvent | undefined;
  for (let idle = false; ; ) {
    const call: TransportRequest = {
      method: "GET",
      path: `${path}/events`,
      query: { after },
      ...callOptions(options),
    };
    const page = await transport.json(call, EventPage);
    for (const event of page.events.map(toTaskEvent)) {
      last = event;
      after = event.id ?? after;
      yield event;
    }
    if (page.more) continue;
    if (live === false) return;
    if (live === true || page.status === "running") break;
    // The status is newer than the events on the page: read once more to get the last ones.
    if (idle || (last !== undefined && endsRound(last))) return;
    idle = true;
  }
  yield* follow({
    ...source,
    ...(signal && { signal }),
    ...TASK_EVENTS,
    pings: options.pings ?? false,
    onState: options.onState,
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
  return toTaskRecord(await transport.json({ method: "GET", path, ...callOptions(options) }, RawTask));
}
