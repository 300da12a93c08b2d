/** Pages of tasks by several statuses, time, text and agent, on top of the store's own lists. */
import type { z } from "zod";
import { MailroomError } from "../../base/index.js";
import {
  INSTANCE_ROLES,
  type InstanceId,
  summaryOf,
  type TaskReads,
  type TaskRow,
  type TaskStatus,
} from "../../engine/index.js";
import type { NextTurn, TaskPage } from "../../extension/index.js";
import type { MailDoor } from "./door.js";
import type { TaskPageQuery } from "./schemas/tasks.js";

export interface TaskFilter {
  readonly instance?: InstanceId;
  readonly statuses?: readonly TaskStatus[];
  /** Creation, in milliseconds since the epoch: at or after `since`, before `until`. */
  readonly since?: number;
  readonly until?: number;
  /** Part of the title or the task id, in any case. */
  readonly text?: string;
  /** An agent that took part: `name`, `name@swarm` or `@swarm`. */
  readonly agent?: string;
  readonly limit: number;
  readonly cursor?: string;
}

export interface FilteredPage {
  readonly tasks: readonly TaskRow[];
  readonly nextCursor: string | undefined;
  /** How many tasks were looked at. */
  readonly scanned: number;
}

export function toFilter(
  query: z.output<typeof TaskPageQuery>,
  instance: InstanceId | undefined,
): TaskFilter {
  const { status, since, until, q, agent, limit = 100, cursor } = query;
  return {
    ...(instance !== undefined && { instance }),
    ...(status !== undefined && { statuses: [status].flat() }),
    ...(since !== undefined && { since: Date.parse(since) }),
    ...(until !== undefined && { until: Date.parse(until) }),
    ...(q !== undefined && { text: q }),
    ...(agent !== undefined && { agent }),
    limit,
    ...(cursor !== undefined && { cursor }),
  };
}

/** @param owner `role:id` */
export function instanceNamed(owner: string): InstanceId {
  const colon = owner.indexOf(":");
  const role = INSTANCE_ROLES.find((name) => name === owner.slice(0, colon));
  if (role === undefined) throw new MailroomError("bad_request", `owner: '${owner}' is not role:id`);
  return { role, id: owner.slice(colon + 1) };
}

export async function taskPage(
  { mailroom, digests }: Pick<MailDoor, "mailroom" | "digests">,
  filter: TaskFilter,
  nextTurn: NextTurn,
): Promise<z.output<typeof TaskPage>> {
  const { agent, text } = filter;
  const involves = agent === undefined ? undefined : (row: TaskRow) => digests.involves(row.key, agent);
  const { tasks, nextCursor, scanned } = await filteredTasks(
    mailroom.store.tasks,
    filter,
    nextTurn,
    involves,
  );
  return {
    tasks: tasks.map(summaryOf),
    next_cursor: nextCursor ?? null,
    ...((text !== undefined || agent !== undefined) && { scanned }),
  };
}

/** A page ends after this number of tasks, however few of them match. */
const MOST_SCANNED = 10_000;
/** The same where journals are read. */
const MOST_READ = 500;
/** Journals of one turn. */
const READ_AT_ONCE = 10;
const AT_ONCE = 500;

/** @param involves reads the journal of a task that passes the rest of the filter */
async function filteredTasks(
  reads: TaskReads,
  filter: TaskFilter,
  nextTurn: NextTurn,
  involves: ((row: TaskRow) => Promise<boolean>) | undefined,
): Promise<FilteredPage> {
  const { instance, statuses = [], limit, since } = filter;
  const [status, ...others] = statuses;
  const matches = matcherOf(filter);
  const isScan = filter.text !== undefined || involves !== undefined || others.length > 0;
  const atOnce = isScan ? AT_ONCE : limit + 1;
  let read = 0;
  const tasks: TaskRow[] = [];
  const oldest = since === undefined ? "" : keyAt(since);
  let cursor = earlier(filter.cursor, filter.until === undefined ? undefined : keyAt(filter.until));
  for (let scanned = 0; ; await nextTurn()) {
    const page = await reads.list({
      ...(instance !== undefined && { instance }),
      ...(status !== undefined && others.length === 0 && { status }),
      ...(cursor !== undefined && { cursor }),
      limit: Math.min(atOnce, AT_ONCE),
    });
    for (const row of page.tasks) {
      if (row.key < oldest) return { tasks, nextCursor: undefined, scanned };
      if (matches(row)) {
        if (tasks.length === limit || read === MOST_READ) return { tasks, nextCursor: cursor, scanned };
        if (involves !== undefined && ++read % READ_AT_ONCE === 0) await nextTurn();
        if (involves === undefined || (await involves(row))) tasks.push(row);
      }
      scanned++;
      cursor = row.key;
    }
    if (page.nextCursor === undefined) return { tasks, nextCursor: undefined, scanned };
    cursor = page.nextCursor;
    if (scanned >= MOST_SCANNED) return { tasks, nextCursor: cursor, scanned };
  }
}

function matcherOf({ statuses, text }: TaskFilter): (row: TaskRow) => boolean {
  const wanted = text?.toLowerCase();
  const allowed = statuses === undefined || statuses.length === 0 ? undefined : new Set(statuses);
  return ({ status, title, taskId }) =>
    (allowed === undefined || allowed.has(status)) &&
    (wanted === undefined ||
      title?.toLowerCase().includes(wanted) === true ||
      taskId.toLowerCase().includes(wanted));
}

/** Lists go from newer to older keys, so the smaller one is further on. */
function earlier(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}

/** Keys are UUIDv7: they begin with the time. */
function keyAt(ms: number): string {
  const digits = Math.max(0, ms).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
