/** What waits for the caller: paused tasks, oldest first. */
import { signal } from "@preact/signals";
import { principalOf } from "../model/words.js";
import { caller, callerName, isAdmin, request } from "./api.js";
import { setAttention } from "./attention.js";
import { onFeed } from "./feed.js";
import type { Approval, FeedTask, OpenCall, TaskSummary } from "./shapes.js";

export interface WaitingTask {
  readonly key: string;
  readonly taskId: string;
  readonly owner: string;
  readonly title: string;
  readonly since: number;
  readonly number: number;
  /** Still waits; one that was answered stays in the list until the next is taken. */
  readonly waits: boolean;
  /** Somebody else's task that the caller was named for: its open calls are all that the caller sees of it. */
  readonly calls?: readonly OpenCall[] | undefined;
}

export const waiting = signal<readonly WaitingTask[]>([]);
export const waitingLoaded = signal(false);

function publish(tasks: readonly WaitingTask[]): void {
  waiting.value = [...tasks].sort((a, b) => a.since - b.since || (a.key < b.key ? -1 : 1));
  setAttention("needs-you", tasks.filter(({ waits }) => waits).length);
}

/** In development mode the page acts as every owner; otherwise as the caller alone. */
function seesAll(): boolean {
  return caller.value?.dev === true && isAdmin();
}

export async function loadWaiting(): Promise<void> {
  const query = { status: "paused", limit: 200 };
  const [page, named] = await Promise.all([
    request<{ tasks: TaskSummary[] }>(seesAll() ? "admin/tasks" : "tasks", { query }).catch(() => undefined),
    request<{ approvals: Approval[] }>("approvals", { query: { limit: 200 } }).catch(() => undefined),
  ]);
  if (page === undefined) return;
  const own = page.tasks.map((task) => ({
    key: task.key ?? task.task_id,
    taskId: task.task_id,
    owner: task.task_owner,
    title: task.title ?? "",
    since: Date.parse(task.updated_time ?? task.start_time),
    number: 0,
    waits: true,
  }));
  const known = new Set(own.map(({ key }) => key));
  const others = (named?.approvals ?? [])
    .filter(({ key, right }) => right === "approver" && !known.has(key))
    .map(({ key, task_id, task_owner, title, since, calls }) => ({
      key,
      taskId: task_id,
      owner: task_owner,
      title: title ?? "",
      since: Date.parse(since),
      number: 0,
      waits: true,
      calls,
    }));
  publish([...own, ...others]);
  waitingLoaded.value = true;
}

function changed(task: FeedTask): void {
  const known = waiting.value.find(({ key }) => key === task.key);
  if (task.status !== "paused") {
    if (known?.waits === true)
      publish(waiting.value.map((each) => (each === known ? { ...each, waits: false } : each)));
    return;
  }
  if (!seesAll() && principalOf(task.task_owner) !== callerName()) return;
  const next: WaitingTask = {
    key: task.key,
    taskId: task.task_id,
    owner: task.task_owner,
    title: task.title ?? "",
    since: known?.waits === true ? known.since : task.at,
    number: task.number,
    waits: true,
  };
  publish([...waiting.value.filter(({ key }) => key !== task.key), next]);
}

/** Drops what was answered meanwhile. */
export function sweep(): void {
  if (waiting.value.some(({ waits }) => !waits)) publish(waiting.value.filter(({ waits }) => waits));
}

export function startAttention(): void {
  onFeed("task", changed);
  onFeed("reset", () => void loadWaiting());
  onFeed("removed", ({ key }) => publish(waiting.value.filter((each) => each.key !== key)));
  caller.subscribe((who) => {
    if (who !== undefined && who !== null) void loadWaiting();
  });
}
