/** What only admins may see: every task, by its internal key. All of it is logged by the server (decisions A6). */
import type { MailEvent } from "./events.js";
import { callOptions, type TaskEventsOptions, type TaskListOptions } from "./options.js";
import {
  allTasks,
  type EventSource,
  readTask,
  type TaskList,
  type TaskRecord,
  taskEvents,
  taskPage,
} from "./tasks.js";
import type { CallOptions, WriteOptions } from "./transport.js";
import { AnyObject, type TaskSummary } from "./wire.js";

const TASKS = "/admin/tasks";

export class AdminClient {
  readonly #source: (path: string) => EventSource;

  constructor(source: (path: string) => EventSource) {
    this.#source = source;
  }

  /** Everybody's tasks, newest first. */
  listTasks(options: TaskListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    return allTasks(this.#transport, TASKS, options);
  }

  getTaskPage(options: TaskListOptions = {}): Promise<TaskList> {
    return taskPage(this.#transport, TASKS, options);
  }

  getTask(key: string, options: CallOptions = {}): Promise<TaskRecord> {
    return readTask(this.#transport, pathOf(key), options);
  }

  taskEvents(key: string, options: TaskEventsOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    return taskEvents(this.#source(pathOf(key)), options);
  }

  async cancelTask(key: string, options: WriteOptions = {}): Promise<void> {
    const path = `${pathOf(key)}/cancel`;
    await this.#transport.json({ method: "POST", path, body: {}, ...callOptions(options) }, AnyObject);
  }

  get #transport() {
    return this.#source("").transport;
  }
}

function pathOf(key: string): string {
  return `${TASKS}/${encodeURIComponent(key)}`;
}
