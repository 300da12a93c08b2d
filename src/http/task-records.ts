/** Whole tasks in the reference's form, as JSON. */
import type { FastifyReply } from "fastify";
import type { JournalKey } from "../engine/ports.js";
import { RuntimeError } from "../engine/runtime/index.js";
import { recordOf, type TaskRecord } from "../engine/view/record.js";
import type { Instance } from "../library/instance.js";
import type { Task } from "../library/task.js";
import type { Door } from "./door.js";
import { answerPieces, type Pieces } from "./json-pieces.js";
import type { Answer, Caller } from "./route.js";

/** @throws RuntimeError `unknown_task` */
export async function answerRecord(
  door: Door,
  reply: FastifyReply,
  caller: Caller,
  task: Task,
): Promise<Answer> {
  const release = await door.wholeTasks.take(caller.name);
  const title = (await door.mailroom.store.tasks.byKey(task.key))?.title;
  return answerPieces(door, reply, required(door, task, title), release);
}

/** The newest tasks by their ids. */
export async function answerNewest(
  door: Door,
  reply: FastifyReply,
  caller: Caller,
  limit: number,
): Promise<Answer> {
  const release = await door.wholeTasks.take(caller.name);
  return answerPieces(door, reply, newest(door, door.mailroom.instance(caller.instance), limit), release);
}

async function* newest(door: Door, instance: Instance, limit: number): Pieces {
  const { tasks } = await instance.tasks({ limit });
  let before = "{";
  for (const { task_id, title } of tasks) {
    const task = await instance.task(task_id);
    const record = task && (await withoutEvents(door, task.key, title ?? undefined));
    if (task === undefined || record === undefined) continue;
    yield `${before}${JSON.stringify(task_id)}:`;
    yield* whole(record, task);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

async function* required(door: Door, task: Task, title: string | undefined): Pieces {
  const record = await withoutEvents(door, task.key, title);
  if (record === undefined) throw new RuntimeError("unknown_task", `there is no task '${task.id}' any more`);
  yield* whole(record, task);
}

/** Read before the events: whoever sees that a task has ended sees how. */
function withoutEvents(
  { mailroom }: Door,
  key: JournalKey,
  title: string | undefined,
): Promise<TaskRecord | undefined> {
  return mailroom.runtime.read(key, (state) => recordOf(state, [], title));
}

async function* whole(record: TaskRecord, task: Task): Pieces {
  let before = "{";
  for (const [name, value] of Object.entries(record)) {
    yield `${before}${JSON.stringify(name)}:`;
    if (name === "events") yield* eventList(task);
    else yield JSON.stringify(value);
    before = ",";
  }
  yield "}";
}

async function* eventList(task: Task): Pieces {
  let before = "[";
  for await (const event of task.events()) {
    yield before + JSON.stringify(event);
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}
