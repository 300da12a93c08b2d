/** The scope of one caller: its own tasks only. */
import { MailroomError } from "../base/index.js";
import type {
  InstanceId,
  MailEvent,
  PostInput,
  PostReceipt,
  Runtime,
  TaskReads,
  TaskStatus,
} from "../engine/index.js";
import { summaryOf, type TaskSummary } from "../engine/index.js";
import type { Answer } from "./answer.js";
import { outcomeWithText, Task, type TextDelta } from "./task.js";

/** How a message is posted: the task it belongs to, its subject, its recipients and its limits. */
export interface AskOptions extends Omit<PostInput, "body" | "rows"> {
  /** Receives the text that agents write, while they write it. */
  readonly onDelta?: (delta: TextDelta) => void;
}

export interface StreamOptions extends AskOptions {
  readonly signal?: AbortSignal;
}

/** The receipt of a durable message, and a handle on its task. */
export interface PostedTask extends PostReceipt {
  readonly task: Task;
}

export interface TaskList {
  readonly tasks: readonly TaskSummary[];
  readonly nextCursor?: string;
}

/**
 * The scope of one caller: it sees its own tasks only (law 6). `mailroom.user(id)` and `mailroom.admin(id)` make it.
 *
 * @example
 * const answer = await mailroom.user("ann").ask("What is the weather in Tokyo?");
 * if (answer.status === "completed") console.log(answer.response);
 */
export class Instance {
  readonly id: InstanceId;
  readonly #runtime: Runtime;
  readonly #index: TaskReads;

  constructor(id: InstanceId, runtime: Runtime, index: TaskReads) {
    this.id = id;
    this.#runtime = runtime;
    this.#index = index;
  }

  /** Sends a message to the swarm and waits for the result. A failed task is a result, not an exception. */
  async ask(body: string, options: AskOptions = {}): Promise<Answer> {
    const { onDelta, ...rest } = options;
    return outcomeWithText(this.#runtime, await this.#runtime.post(this.id, { body, ...rest }), onDelta);
  }

  /** Sends a message to the swarm. Resolves as soon as it is durable. */
  async post(body: string, options: Omit<AskOptions, "onDelta"> = {}): Promise<PostedTask> {
    const posted = await this.#runtime.post(this.id, { body, ...options });
    return { ...posted, task: this.#handle(posted.taskId, posted.key) };
  }

  /** Sends a message to the swarm and yields events until its round has ended. */
  async *stream(body: string, options: StreamOptions = {}): AsyncGenerator<MailEvent, void, undefined> {
    const { signal, onDelta, ...rest } = options;
    const posted = await this.post(body, rest);
    yield* posted.task.events({
      after: `${posted.number - 1}`,
      live: posted,
      ...(signal !== undefined && { signal }),
      ...(onDelta !== undefined && { onDelta }),
    });
  }

  /** A task of this caller. */
  async task(taskId: string): Promise<Task | undefined> {
    const key = await this.#runtime.find(this.id, taskId);
    return key === undefined ? undefined : this.#handle(taskId, key);
  }

  /** @throws MailroomError `unknown_task` */
  async requireTask(taskId: string): Promise<Task> {
    const task = await this.task(taskId);
    if (task === undefined) throw new MailroomError("unknown_task", `unknown task '${taskId}'`);
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
