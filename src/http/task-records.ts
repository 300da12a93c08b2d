/** Complete tasks in the reference's form, as JSON. */

import type { FastifyReply } from "fastify";
import { MailroomError } from "../base/index.js";
import { recordOf, type TaskRecord } from "../engine/index.js";
import type { Caller, RouteResponse } from "../extension/index.js";
import type { JournalKey } from "../journal/index.js";
import type { Instance, Task } from "../library/index.js";
import type { HttpContext } from "./context.js";
import { type JsonStream, sendJsonStream } from "./json-stream.js";

/** @throws MailroomError `unknown_task` */
export async function answerRecord(
  context: HttpContext,
  reply: FastifyReply,
  caller: Caller,
  task: Task,
): Promise<RouteResponse> {
  const title = (await context.mailroom.store.tasks.byKey(task.key))?.title;
  return sendJsonStream(context, reply, caller.name, required(context, task, title));
}

/** The newest tasks, by id. */
export async function answerNewest(
  context: HttpContext,
  reply: FastifyReply,
  caller: Caller,
  limit: number,
): Promise<RouteResponse> {
  return sendJsonStream(
    context,
    reply,
    caller.name,
    newest(context, context.mailroom.instance(caller.instance), limit),
  );
}

async function* newest(context: HttpContext, instance: Instance, limit: number): JsonStream {
  const { tasks } = await instance.tasks({ limit });
  let before = "{";
  for (const { task_id, title } of tasks) {
    const task = await instance.task(task_id);
    const record = task && (await withoutEvents(context, task.key, title ?? undefined));
    if (task === undefined || record === undefined) continue;
    yield `${before}${JSON.stringify(task_id)}:`;
    yield* jsonWithEvents(record, task);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

async function* required(context: HttpContext, task: Task, title: string | undefined): JsonStream {
  const record = await withoutEvents(context, task.key, title);
  if (record === undefined) throw new MailroomError("unknown_task", `unknown task '${task.id}'`);
  yield* jsonWithEvents(record, task);
}

/** Read before the events, so that a client that sees an ended task also sees its ending. */
function withoutEvents(
  { mailroom }: HttpContext,
  key: JournalKey,
  title: string | undefined,
): Promise<TaskRecord | undefined> {
  return mailroom.runtime.read(key, (state) => recordOf(state, [], title, mailroom.runtime.rules));
}

/** A record whose `events` are read from the task while it is written. */
export async function* jsonWithEvents(
  record: Readonly<Record<string, unknown>> | TaskRecord,
  task: Task,
): JsonStream {
  let before = "{";
  for (const [name, value] of Object.entries(record)) {
    yield `${before}${JSON.stringify(name)}:`;
    if (name === "events") yield* eventList(task);
    else yield JSON.stringify(value);
    before = ",";
  }
  yield "}";
}

async function* eventList(task: Task): JsonStream {
  let before = "[";
  for await (const event of task.events()) {
    yield before + JSON.stringify(event);
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}
