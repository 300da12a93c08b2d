/** The tasks of a server: over the network, through its control socket, or from its store. */
import { MailroomError } from "../../base/index.js";
import type {
  AwaitedReply,
  BreakpointAnswer,
  BudgetChange,
  MailClient,
  MessageAnswer,
  TaskBudgetAnswer,
  TaskEvent,
  TaskStatus,
  TaskSummary,
} from "../../client/index.js";
import type { LocalServer } from "../../server/control.js";

export interface TaskSource {
  /** Newest first. */
  list(options: { readonly status?: TaskStatus | undefined; readonly limit: number }): Promise<TaskSummary[]>;
  find(task: string): Promise<TaskSummary>;
  events(
    task: TaskSummary,
    options: { readonly follow: boolean; readonly after?: string; readonly signal: AbortSignal },
  ): AsyncIterable<TaskEvent>;
  /** Answers of other swarms that a running task waits for. */
  waits(task: TaskSummary): Promise<readonly AwaitedReply[]>;
  cancel(task: TaskSummary): Promise<void>;
  /** Changes limits: those of the owner, or, for admins, those of the operator for the task or one of its agents. */
  setBudget(
    task: TaskSummary,
    change: BudgetChange,
    options: { readonly as?: string | undefined; readonly agent?: string | undefined },
  ): Promise<TaskBudgetAnswer>;
  /** The task's limits and what it used. */
  budget(task: TaskSummary): Promise<Pick<TaskBudgetAnswer, "budget" | "usage">>;
  answer(
    task: TaskSummary,
    answer: BreakpointAnswer,
    options: { readonly as?: string | undefined; readonly signal: AbortSignal },
  ): Promise<MessageAnswer>;
  /** A client with the rights of a principal: by default the caller's own. @throws MailroomError if none is known */
  as(task: TaskSummary, principal: string | undefined): MailClient;
  close(): Promise<void>;
}

/** The caller's own tasks on any server. */
export function ownTasks(client: MailClient): TaskSource {
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
    waits: async (task) => (await client.getTask(task.task_id)).waiting_for ?? [],
    cancel: (task) => client.cancelTask(task.task_id),
    setBudget: async (task, change, { agent }) => {
      if (agent === undefined) return client.setTaskBudget(task.task_id, change);
      throw new MailroomError(
        "usage",
        "--agent: only admins set the limits of an agent, on the server's own machine",
      );
    },
    budget: async (task) => client.getTask(task.task_id),
    answer: (task, answer, { signal }) => client.answerBreakpoint(task.task_id, answer, { signal }),
    as: () => client,
    close: async () => {},
  };
}

/** All callers' tasks on the local server. */
export function localTasks(server: LocalServer): TaskSource {
  const { admin } = server.client();
  // Only the owner writes to a task (decision A6), so commands act as the owner.
  const clientAs = (task: TaskSummary, as: string | undefined) => {
    const owner = task.task_owner.slice(0, task.task_owner.lastIndexOf("@"));
    if (as !== undefined) return server.client(as);
    throw new MailroomError("not_owner", `only the owner can answer: the task belongs to ${owner}`, {
      details: { hint: `add --as ${owner} to act as the owner` },
    });
  };
  return {
    list: ({ status, limit }) => take(admin.listTasks({ ...(status && { status }) }), limit),
    find: (task) => findIn(admin.listTasks({ limit: 500 }), task),
    events: (task, { follow, after, signal }) =>
      admin.taskEvents(keyOf(task), {
        live: follow ? "round" : false,
        ...(after !== undefined && { after }),
        signal,
      }),
    waits: async (task) => (await admin.getTask(keyOf(task))).waiting_for ?? [],
    cancel: (task) => admin.cancelTask(keyOf(task)),
    setBudget: (task, change, { as, agent }) => {
      if (agent !== undefined) {
        if (as !== undefined)
          throw new MailroomError(
            "usage",
            "--agent sets limits of an admin and cannot be combined with --as",
          );
        return admin.setTaskBudget(keyOf(task), { agents: { [agent]: change } });
      }
      if (as !== undefined) return server.client(as).setTaskBudget(task.task_id, change);
      return admin.setTaskBudget(keyOf(task), change);
    },
    budget: (task) => admin.getTask(keyOf(task)),
    answer: (task, answer, { as, signal }) =>
      clientAs(task, as).answerBreakpoint(task.task_id, answer, { signal }),
    as: clientAs,
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

/** Finds a task by internal key, or by an id that only one caller uses. @throws MailroomError */
export async function findIn(tasks: AsyncIterable<TaskSummary>, wanted: string): Promise<TaskSummary> {
  const found: TaskSummary[] = [];
  for await (const task of tasks) {
    if (task.key === wanted) return task;
    if (task.task_id === wanted) found.push(task);
  }
  const [only, ...others] = found;
  if (only === undefined) {
    throw new MailroomError("unknown_task", `unknown task '${wanted}'`, {
      details: { hint: "'mailroom tasks list' shows those there are" },
    });
  }
  if (others.length === 0) return only;
  const keys = found.map((task) => `${task.key ?? "?"} (${task.task_owner})`).join(", ");
  throw new MailroomError("ambiguous_task", `${found.length} callers have a task '${wanted}'`, {
    details: { hint: `use its key: ${keys}` },
  });
}

function keyOf(task: TaskSummary): string {
  if (task.key !== undefined) return task.key;
  throw new MailroomError("unknown_task", `the server returned no key for task '${task.task_id}'`);
}
