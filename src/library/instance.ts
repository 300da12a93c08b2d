/** The scope of one caller: its tasks, and nobody else's (law 5). */
import type { InstanceId, TaskIndex, TaskStatus } from "../engine/ports.js";
import type { Posted, PostInput, Runtime } from "../engine/runtime/index.js";
import { RuntimeError } from "../engine/runtime/index.js";
import type { MailEvent } from "../engine/view/events.js";
import { summaryOf, type TaskSummary } from "../engine/view/record.js";
import { type Answer, answerOf } from "./answer.js";
import { Task } from "./task.js";

export type AskOptions = Omit<PostInput, "body" | "rows">;

export interface StreamOptions extends AskOptions {
  readonly signal?: AbortSignal;
}

export interface PostedTask extends Posted {
  readonly task: Task;
}

export interface TaskList {
  readonly tasks: readonly TaskSummary[];
  readonly nextCursor?: string;
}

export class Instance {
  readonly id: InstanceId;
  readonly #runtime: Runtime;
  readonly #index: TaskIndex;

  constructor(id: InstanceId, runtime: Runtime, index: TaskIndex) {
    this.id = id;
    this.#runtime = runtime;
    this.#index = index;
  }

  /** Puts a message to the swarm and waits for what becomes of it. A failed task is an answer, not an exception. */
  async ask(body: string, options: AskOptions = {}): Promise<Answer> {
    const posted = await this.#runtime.post(this.id, { body, ...options });
    return answerOf(posted, await posted.outcome);
  }

  /** Puts a message to the swarm. Resolves as soon as it is durable: from then on nothing loses it. */
  async post(body: string, options: AskOptions = {}): Promise<PostedTask> {
    const posted = await this.#runtime.post(this.id, { body, ...options });
    return { ...posted, task: this.#handle(posted.taskId, posted.key) };
  }

  /** Puts a message to the swarm and yields what happens until its round has ended. */
  async *stream(body: string, options: StreamOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    const { signal, ...rest } = options;
    const posted = await this.post(body, rest);
    yield* posted.task.events({
      after: `${posted.number - 1}`,
      live: posted,
      ...(signal !== undefined && { signal }),
    });
  }

  /** A task of this caller. */
  async task(taskId: string): Promise<Task | undefined> {
    const key = await this.#runtime.find(this.id, taskId);
    return key === undefined ? undefined : this.#handle(taskId, key);
  }

  /** @throws RuntimeError `unknown_task` */
  async requireTask(taskId: string): Promise<Task> {
    const task = await this.task(taskId);
    if (task === undefined) throw new RuntimeError("unknown_task", `there is no task '${taskId}'`);
    return task;
  }

  /** The caller's tasks, newest first. */
  async tasks(options: { status?: TaskStatus; limit?: number; cursor?: string } = {}): Promise<TaskList> {
    const { limit = 100, ...rest } = options;
    const page = await this.#index.list({ instance: this.id, limit, ...rest });
    return {
      tasks: page.tasks.map(summaryOf),
      ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }),
    };
  }

  #handle(id: string, key: string): Task {
    const title = async (of: string) => (await this.#index.byKey(of))?.title;
    return new Task({ id, key, runtime: this.#runtime, instance: this.id, title });
  }
}
