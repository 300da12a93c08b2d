/** A caller's tasks: list, read, follow, cancel. */
import { MailroomError } from "../../../base/index.js";
import {
  defineRoute,
  EventPage,
  EventQuery,
  MAIL_USERS,
  NO_INPUT,
  type Route,
  TaskPage,
  TaskPath,
  TaskRecord,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { CancelAnswer, TaskQuery } from "../schemas/server.js";
import { TaskMap, TaskPageQuery } from "../schemas/tasks.js";
import { taskPage, toFilter } from "../task-filter.js";

/** The reference's shape contains whole tasks, so it is limited to a few (decision D2). */
const NEWEST = 100;

export function taskRoutes(door: MailDoor): Route[] {
  const { mailroom } = door;
  return [
    defineRoute({
      ...NO_INPUT,
      id: "listTasks",
      method: "GET",
      path: "/tasks",
      tag: "tasks",
      summary: "List the caller's tasks",
      description:
        `Without parameters the ${NEWEST} newest with everything about them, by task id, as the reference does. With ` +
        "any parameter a page of summaries, newest first.",
      access: MAIL_USERS,
      query: TaskPageQuery,
      answers: { 200: { description: "The tasks.", schema: TaskMap.or(TaskPage) } },
      errors: ["overloaded"],
      async handle({ query, request }, caller) {
        if (Object.keys(query).length === 0) return request.newestTasks(caller, NEWEST);
        const nextTurn = await request.reading(caller);
        return { status: 200, body: await taskPage(door, toFilter(query, caller.instance), nextTurn) };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getTask",
      method: "GET",
      path: "/task",
      tag: "tasks",
      summary: "Show a task that the query or a JSON body names",
      access: MAIL_USERS,
      query: TaskQuery,
      body: TaskQuery.strict(),
      bodyOptional: true,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle({ query, body, request }, caller) {
        const taskId = query.task_id ?? body.task_id;
        if (taskId === undefined) {
          throw new MailroomError("bad_request", "task_id is required", { details: { field: "task_id" } });
        }
        const task = await mailroom.instance(caller.instance).requireTask(taskId);
        return request.taskRecord(caller, task);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getTaskByPath",
      method: "GET",
      path: "/tasks/{task_id}",
      tag: "tasks",
      summary: "Show a task",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, request }, caller) {
        const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
        return request.taskRecord(caller, task);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "getTaskEvents",
      method: "GET",
      path: "/tasks/{task_id}/events",
      tag: "tasks",
      summary: "Read or stream the events of a task",
      description:
        "With `Accept: text/event-stream` everything after `after` (or `Last-Event-ID`) and then what happens; otherwise " +
        "a page of JSON.",
      access: USERS_AND_ADMINS,
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
      async handle({ params, query, request }, caller) {
        const task = await mailroom.instance(caller.instance).requireTask(params.task_id);
        request.taskKey = task.key;
        return request.taskEvents(caller, task, query);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "cancelTask",
      method: "POST",
      path: "/tasks/{task_id}/cancel",
      tag: "tasks",
      summary: "Cancel a task",
      description:
        "Running work is abandoned. A later message resumes the task, as it would a completed one.",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      idempotent: true,
      answers: { 200: { description: "The task is cancelled.", schema: CancelAnswer } },
      errors: ["unknown_task", "already_ended"],
      handle({ params, request }, caller) {
        return request.once(caller, async (remember) => {
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
