/** The tasks of a server, wherever it is: over the network, through its control socket, or in the store it left. */
import type {
  BreakpointAnswer,
  MailClient,
  MailEvent,
  MessageAnswer,
  TaskStatus,
  TaskSummary,
} from "../client/index.js";
import type { LocalServer } from "./control/reach.js";
import { CliError } from "./exit.js";

export interface TaskDesk {
  /** Newest first. */
  list(options: { readonly status?: TaskStatus | undefined; readonly limit: number }): Promise<TaskSummary[]>;
  find(task: string): Promise<TaskSummary>;
  events(
    task: TaskSummary,
    options: { readonly follow: boolean; readonly after?: string; readonly signal: AbortSignal },
  ): AsyncIterable<MailEvent>;
  cancel(task: TaskSummary): Promise<void>;
  answer(
    task: TaskSummary,
    answer: BreakpointAnswer,
    options: { readonly as?: string | undefined; readonly signal: AbortSignal },
  ): Promise<MessageAnswer>;
  close(): Promise<void>;
}

/** The caller's own tasks on a server anywhere. */
export function ownDesk(client: MailClient): TaskDesk {
  return {
    list: ({ status, limit }) => take(client.listTasks({ ...(status && { status }) }), limit),
    find: async (task) => {
      const { start_time = "", ...rest } = await client.getTask(task);
      return { ...rest, start_time };
    },
    events: (task, { follow, after, signal }) =>
      client.taskEvents(task.task_id, {
        live: follow ? "round" : false,
        ...(after !== undefined && { after }),
        signal,
      }),
    cancel: (task) => client.cancelTask(task.task_id),
    answer: (task, answer, { signal }) => client.answerBreakpoint(task.task_id, answer, { signal }),
    close: async () => {},
  };
}

/** Everybody's tasks on the server of this machine. */
export function localDesk(server: LocalServer): TaskDesk {
  const { admin } = server.client();
  return {
    list: ({ status, limit }) => take(admin.listTasks({ ...(status && { status }) }), limit),
    find: (task) => findIn(admin.listTasks({ limit: 500 }), task),
    events: (task, { follow, after, signal }) =>
      admin.taskEvents(keyOf(task), {
        live: follow ? "round" : false,
        ...(after !== undefined && { after }),
        signal,
      }),
    cancel: (task) => admin.cancelTask(keyOf(task)),
    answer: (task, answer, { as, signal }) => {
      // Decisions A6: nobody but the owner writes into a task, so whoever does so here says that they are the owner.
      const owner = task.task_owner.slice(0, task.task_owner.lastIndexOf("@"));
      if (as === undefined) {
        throw new CliError("not_owner", `only its owner may answer: the task belongs to ${owner}`, {
          hint: `add --as ${owner} if that is you`,
        });
      }
      return server.client(as).answerBreakpoint(task.task_id, answer, { signal });
    },
    close: () => server.close(),
  };
}

export async function take<T>(items: AsyncIterable<T>, limit: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    if (taken.length >= limit) break;
    taken.push(item);
  }
  return taken;
}

/** By internal key, or by a task id that only one caller uses. @throws CliError */
export async function findIn(tasks: AsyncIterable<TaskSummary>, wanted: string): Promise<TaskSummary> {
  const found: TaskSummary[] = [];
  for await (const task of tasks) {
    if (task.key === wanted) return task;
    if (task.task_id === wanted) found.push(task);
  }
  const [only, ...others] = found;
  if (only === undefined) {
    throw new CliError("unknown_task", `there is no task '${wanted}'`, {
      hint: "'mailroom tasks list' shows those there are",
    });
  }
  if (others.length === 0) return only;
  const keys = found.map((task) => `${task.key ?? "?"} (${task.task_owner})`).join(", ");
  throw new CliError("ambiguous_task", `${found.length} callers have a task '${wanted}'`, {
    hint: `name it by its key: ${keys}`,
  });
}

function keyOf(task: TaskSummary): string {
  if (task.key !== undefined) return task.key;
  throw new CliError("unknown_task", `the server gave no key for task '${task.task_id}'`);
}
