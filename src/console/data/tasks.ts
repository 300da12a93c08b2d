/**
 * The list of tasks: pages of the server, kept up to date by the feed. Rows are plain objects in a map; signals tell only
 * that something changed.
 */
import { signal } from "@preact/signals";
import { ApiError, caller, isAdmin, request } from "./api.js";
import { digestVersion, knownDigest, wantDigest } from "./digest.js";
import { onFeed } from "./feed.js";
import type { FeedTask, Status, TaskCounts, TaskSummary } from "./shapes.js";

export interface TaskRow {
  readonly key: string;
  readonly taskId: string;
  readonly owner: string;
  readonly status: Status;
  readonly title: string;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** The last number of its journal, as far as the feed told it. */
  readonly number: number;
  readonly doing: readonly string[];
  /** When the feed last changed it, for the tint. */
  readonly changedAt: number;
}

export interface TaskFilter {
  readonly status: readonly Status[];
  readonly owner: string;
  /** A time (ISO 8601), or how long ago: `15m`, `24h`, `7d`. */
  readonly since: string;
  /** A time (ISO 8601). */
  readonly until: string;
  readonly text: string;
  /** An agent that took part: `name`, `name@swarm` or `@swarm`. */
  readonly agent: string;
}

const NO_FILTER: TaskFilter = { status: [], owner: "", since: "", until: "", text: "", agent: "" };

export const counts = signal<TaskCounts | undefined>(undefined);
/** Rises when rows changed. */
export const tasksVersion = signal(0);
export const loading = signal(false);
export const listError = signal<Error | undefined>(undefined);
export const hasMore = signal(false);
/** Tasks that the server has looked at for a text or an agent. */
export const lookedAt = signal(0);
/** Tasks that came or moved while the list was held still. */
export const heldBack = signal(0);

const PAGE = 200;
const SETTLE = 250;
/** Tasks that are cancelled together. */
const MOST_CANCELLED = 5_000;

const rows = new Map<string, TaskRow>();
/** Keys that came with a page of the list, not with the feed. */
const paged = new Set<string>();
/** Keys of tasks in which the agent of the filter took part. */
const involved = new Set<string>();
let shown: TaskRow[] = [];
let filter: TaskFilter = NO_FILTER;
let cursor: string | null | undefined;
let generation = 0;
let settling: number | undefined;
let held = false;

export function taskRows(): readonly TaskRow[] {
  return shown;
}

function fromSummary(task: TaskSummary, before: TaskRow | undefined): TaskRow {
  return {
    key: task.key ?? task.task_id,
    taskId: task.task_id,
    owner: task.task_owner,
    status: task.status,
    title: task.title ?? "",
    startedAt: Date.parse(task.start_time),
    updatedAt: Date.parse(task.updated_time ?? task.start_time),
    number: before?.number ?? 0,
    doing: before?.doing ?? [],
    changedAt: before?.changedAt ?? 0,
  };
}

function since(text: string): number | undefined {
  const found = /^(\d+)(m|h|d)$/.exec(text);
  if (found === null) {
    const at = Date.parse(text);
    return Number.isNaN(at) ? undefined : at;
  }
  const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[found[2] ?? "m"] ?? 60_000;
  return Date.now() - Number(found[1]) * unit;
}

function matches(row: TaskRow): boolean {
  if (filter.status.length > 0 && !filter.status.includes(row.status)) return false;
  if (filter.owner !== "" && !row.owner.startsWith(filter.owner)) return false;
  const from = since(filter.since);
  if (from !== undefined && row.startedAt < from) return false;
  const until = since(filter.until);
  if (until !== undefined && row.startedAt > until) return false;
  if (filter.agent !== "" && !involved.has(row.key) && !involves(row.key, filter.agent)) return false;
  const text = filter.text.toLowerCase();
  return text === "" || row.title.toLowerCase().includes(text) || row.taskId.toLowerCase().includes(text);
}

function involves(key: string, agent: string): boolean {
  const { agents = [], others = [] } = knownDigest(key) ?? {};
  return [...agents, ...others].some(
    (name) => name === agent || (agent.startsWith("@") && name.endsWith(agent)),
  );
}

const RANK: Readonly<Record<Status, number>> = {
  paused: 0,
  running: 1,
  completed: 1,
  failed: 1,
  cancelled: 1,
};

function before(a: TaskRow, b: TaskRow): number {
  return RANK[a.status] - RANK[b.status] || b.updatedAt - a.updatedAt || (a.key < b.key ? 1 : -1);
}

/**
 * What waits for a person comes first, then what moved last. A list that is held still keeps its order: what was read
 * is added at its end, what is new is only counted.
 */
function settle(): void {
  window.clearTimeout(settling);
  settling = undefined;
  if (held && shown.length > 0) {
    const known = new Set(shown.map(({ key }) => key));
    const unknown = [...rows.values()].filter((row) => !known.has(row.key) && matches(row));
    heldBack.value = unknown.filter(({ key }) => !paged.has(key)).length;
    const more = unknown.filter(({ key }) => paged.has(key)).sort(before);
    shown = [...shown.flatMap(({ key }) => rows.get(key) ?? []), ...more];
  } else {
    shown = [...rows.values()].filter(matches).sort(before);
    heldBack.value = 0;
  }
  tasksVersion.value++;
}

function settleSoon(): void {
  if (settling === undefined) settling = window.setTimeout(settle, SETTLE);
}

/** While somebody points at the list, rows keep their places. */
export function holdStill(still: boolean): void {
  if (held === still) return;
  held = still;
  if (!still) settleSoon();
}

export function releaseHeld(): void {
  held = false;
  settle();
}

function query(
  more: Readonly<Record<string, string | number | readonly string[] | undefined>> = {},
  of: TaskFilter = filter,
) {
  const from = since(of.since);
  return {
    limit: PAGE,
    status: of.status.length > 0 ? of.status : undefined,
    since: from === undefined ? undefined : new Date(from).toISOString(),
    until: of.until === "" ? undefined : of.until,
    q: of.text === "" ? undefined : of.text,
    agent: of.agent === "" ? undefined : of.agent,
    owner: isAdmin() && of.owner !== "" ? of.owner : undefined,
    ...more,
  };
}

interface Page {
  readonly tasks: readonly TaskSummary[];
  readonly next_cursor?: string | null | undefined;
  readonly scanned?: number;
}

function path(): string {
  return isAdmin() ? "admin/tasks" : "tasks";
}

function takeIn(page: Page): void {
  for (const task of page.tasks) {
    const key = task.key ?? task.task_id;
    const known = rows.get(key);
    const row = fromSummary(task, known);
    paged.add(key);
    if (filter.agent !== "") involved.add(key);
    if (known === undefined || known.updatedAt <= row.updatedAt) rows.set(key, row);
  }
}

/** All tasks of the filter that can be cancelled, at most some thousand. */
export async function cancellableTasks(): Promise<readonly TaskRow[]> {
  const status = (["running", "paused"] as const).filter(
    (each) => filter.status.length === 0 || filter.status.includes(each),
  );
  const found: TaskRow[] = [];
  let after: string | null | undefined;
  while (status.length > 0 && after !== null && found.length < MOST_CANCELLED) {
    const page: Page = await request<Page>(path(), { query: query({ status, cursor: after }) });
    found.push(...page.tasks.map((task) => fromSummary(task, undefined)));
    after = page.next_cursor ?? null;
  }
  return found;
}

/** How many tasks a filter has: `12`, or `200+` if there are more than the server says at once. */
export async function countTasks(of: TaskFilter): Promise<string> {
  const { tasks, next_cursor } = await request<Page>(path(), { query: query({}, of) });
  return `${tasks.length}${next_cursor == null ? "" : "+"}`;
}

/** The task that runs, if there is exactly one. */
export async function onlyRunning(): Promise<TaskRow | undefined> {
  const { tasks } = await request<Page>(path(), { query: { status: ["running"], limit: 2 } });
  const [task, other] = tasks;
  return task === undefined || other !== undefined ? undefined : fromSummary(task, undefined);
}

export async function showTasks(next: TaskFilter): Promise<void> {
  if (next.agent !== filter.agent) involved.clear();
  filter = next;
  lookedAt.value = 0;
  const mine = ++generation;
  cursor = undefined;
  listError.value = undefined;
  held = false;
  settle();
  await loadMore(mine);
  if (mine !== generation || next.status.length > 0) return;
  // What waits for somebody may be old: it is not on the first page then.
  const waiting = await request<Page>(path(), { query: query({ status: ["paused", "running"] }) }).catch(
    () => undefined,
  );
  if (mine !== generation || waiting === undefined) return;
  takeIn(waiting);
  settle();
}

export async function loadMore(mine = generation): Promise<void> {
  if (cursor === null || (loading.value && mine === generation && cursor !== undefined)) return;
  loading.value = true;
  try {
    const page = await request<Page>(path(), { query: query({ cursor: cursor ?? undefined }) });
    if (mine !== generation) return;
    cursor = page.next_cursor ?? null;
    hasMore.value = cursor !== null;
    lookedAt.value += page.scanned ?? 0;
    takeIn(page);
    settle();
  } catch (error) {
    if (mine === generation && !(error instanceof ApiError && error.status === 401)) {
      listError.value = error instanceof Error ? error : new Error(String(error));
    }
  } finally {
    if (mine === generation) loading.value = false;
  }
}

function apply(task: FeedTask): void {
  const before = rows.get(task.key);
  if (before !== undefined && before.number > task.number) return;
  rows.set(task.key, {
    ...fromSummary(task, before),
    updatedAt: task.at,
    number: task.number,
    doing: task.doing,
    changedAt: performance.now(),
  });
  // Whether its agent took part is in the digest.
  if (filter.agent !== "") wantDigest(task.key, task.task_id, task.number);
  settleSoon();
}

async function loadCounts(): Promise<void> {
  counts.value = await request<TaskCounts>(`${path()}/counts`).catch(() => counts.value);
}

export function startTasks(): void {
  onFeed("task", apply);
  digestVersion.subscribe(() => {
    if (filter.agent !== "") settleSoon();
  });
  onFeed("counts", (data) => {
    counts.value = data;
  });
  onFeed("removed", ({ key }) => {
    rows.delete(key);
    settleSoon();
  });
  onFeed("reset", () => {
    void showTasks(filter);
    void loadCounts();
  });
  caller.subscribe((who) => {
    if (who === undefined || who === null) return;
    rows.clear();
    paged.clear();
    shown = [];
    void loadCounts();
  });
}
