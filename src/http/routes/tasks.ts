/** A caller's tasks: list, read, follow, cancel. */

import type { Door } from "../door.js";
import { HttpError } from "../errors.js";
import { defineRoute, NOTHING, OUR_PERSONS, PERSONS, type Route } from "../route.js";
import { EventPage, EventQuery, PageQuery, TaskPage, TaskPath, TaskRecord } from "../schemas/common.js";
import { CancelAnswer, TaskQuery } from "../schemas/server.js";
import { TaskMap } from "../schemas/tasks.js";
import { eventPage, streamEvents, wantsStream } from "../task-events.js";
import { answerNewest, answerRecord } from "../task-records.js";

/** Decisions D2: the reference's shape has whole tasks, so it has few of them. */
const NEWEST = 100;

export function taskRoutes(door: Door): Route[] {
  const { mailroom } = door;
  return [
    defineRoute({
      ...NOTHING,
      id: "listTasks",
      method: "GET",
      path: "/tasks",
      tag: "tasks",
      summary: "The caller's tasks",
      description:
        `Without parameters the ${NEWEST} newest with everything about them, by task id, as the reference does. With ` +
        "any of `limit`, `cursor` or `status` a page of summaries, newest first.",
      access: PERSONS,
      query: PageQuery,
      answers: { 200: { description: "The tasks.", schema: TaskMap.or(TaskPage) } },
      errors: ["overloaded"],
      async handle({ query, reply }, caller) {
        if (Object.keys(query).length === 0) return answerNewest(door, reply, caller, NEWEST);
        const { tasks, nextCursor } = await mailroom.instance(caller.instance).tasks(query);
        return { status: 200, body: { tasks, next_cursor: nextCursor ?? null } };
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "getTask",
      method: "GET",
      path: "/task",
      tag: "tasks",
      summary: "One task, named in the query or in a JSON body",
      access: PERSONS,
      query: TaskQuery,
      body: TaskQuery,
      bodyOptional: true,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle({ query, body, reply }, caller) {
        const taskId = query.task_id ?? body.task_id;
        if (taskId === undefined) {
          throw new HttpError("bad_request", "task_id is required", { details: { field: "task_id" } });
        }
        const task = await mailroom.instance(caller.instance).requireTask(taskId);
        return answerRecord(door, reply, caller, task);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "getTaskByPath",
      method: "GET",
      path: "/tasks/{task_id}",
      tag: "tasks",
      summary: "One task",
      access: OUR_PERSONS,
      params: TaskPath,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, reply }, caller) {
        const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
        return answerRecord(door, reply, caller, task);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "getTaskEvents",
      method: "GET",
      path: "/tasks/{task_id}/events",
      tag: "tasks",
      summary: "What happened in a task, and what happens",
      description:
        "With `Accept: text/event-stream` everything after `after` (or `Last-Event-ID`) and then what happens; otherwise " +
        "a page of JSON.",
      access: OUR_PERSONS,
      params: TaskPath,
      query: EventQuery,
      answers: {
        200: {
          description: "Events in the order of the journal.",
          schema: EventPage,
          contentType: "text/event-stream",
        },
      },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, query, request, reply }, caller) {
        const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
        request.taskKey = task.key;
        const wanted = { task, query, request };
        return wantsStream(request) ? streamEvents(door, reply, caller, wanted) : eventPage(door, wanted);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "cancelTask",
      method: "POST",
      path: "/tasks/{task_id}/cancel",
      tag: "tasks",
      summary: "Cancel a task",
      description: "What is under way is let go. A later message makes the task go on like a completed one.",
      access: OUR_PERSONS,
      params: TaskPath,
      idempotent: true,
      answers: { 200: { description: "The task is cancelled.", schema: CancelAnswer } },
      errors: ["unknown_task", "already_ended"],
      handle({ params, request }, caller) {
        const write = { request, caller, route: "cancelTask", params, body: undefined };
        return door.writes.answer(write, async (remember) => {
          const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
          request.taskKey = task.key;
          const answer = { status: 200, body: { task_id: task.id, status: "cancelled" } } as const;
          const by = `${caller.principal.role} '${caller.principal.id}'`;
          await mailroom.runtime.cancel(task.key, by, remember({ kind: "answer", ...answer }));
          return answer;
        });
      },
    }),
  ];
}
