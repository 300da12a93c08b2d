/** Admins see any task by its internal key, and may cancel it. Every access is logged (decision A6). */
import {
  ADMINS,
  defineRoute,
  EventPage,
  EventQuery,
  KeyPath,
  NO_INPUT,
  type Route,
  TaskPage,
  TaskRecord,
} from "../../../extension/index.js";
import type { Task } from "../../../library/index.js";
import type { MailDoor } from "../door.js";
import { CancelAnswer } from "../schemas/server.js";
import { AdminTaskQuery } from "../schemas/tasks.js";
import { adminTask, noteAccess } from "../task-access.js";
import { instanceNamed, taskPage, toFilter } from "../task-filter.js";

export function adminRoutes(door: MailDoor): Route[] {
  const { mailroom } = door;
  async function taskOf(key: string): Promise<Task> {
    const { instance, taskId } = await adminTask(mailroom, key);
    return mailroom.instance(instance).requireTask(taskId);
  }

  return [
    defineRoute({
      ...NO_INPUT,
      id: "adminListTasks",
      method: "GET",
      path: "/admin/tasks",
      tag: "administration",
      summary: "List the tasks of all callers",
      access: ADMINS,
      query: AdminTaskQuery,
      answers: { 200: { description: "A page of summaries, newest first.", schema: TaskPage } },
      errors: ["overloaded"],
      async handle({ query, request }, caller) {
        noteAccess(request, caller, "an admin listed all tasks");
        const instance = query.owner === undefined ? undefined : instanceNamed(query.owner);
        const nextTurn = await request.reading(caller);
        return { status: 200, body: await taskPage(door, toFilter(query, instance), nextTurn) };
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminGetTask",
      method: "GET",
      path: "/admin/tasks/{key}",
      tag: "administration",
      summary: "Show a task of any caller",
      access: ADMINS,
      params: KeyPath,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle({ params, request }, caller) {
        const task = await taskOf(params.key);
        noteAccess(request, caller, "an admin read a task", task.key);
        return request.taskRecord(caller, task);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminGetTaskEvents",
      method: "GET",
      path: "/admin/tasks/{key}/events",
      tag: "administration",
      summary: "Read the events of a task of any caller",
      access: ADMINS,
      params: KeyPath,
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
        const task = await taskOf(params.key);
        noteAccess(request, caller, "an admin read the events of a task", task.key);
        return request.taskEvents(caller, task, query);
      },
    }),
    defineRoute({
      ...NO_INPUT,
      id: "adminCancelTask",
      method: "POST",
      path: "/admin/tasks/{key}/cancel",
      tag: "administration",
      summary: "Cancel a task of any caller",
      access: ADMINS,
      params: KeyPath,
      idempotent: true,
      answers: { 200: { description: "The task is cancelled.", schema: CancelAnswer } },
      errors: ["unknown_task", "already_ended"],
      handle({ params, request }, caller) {
        return request.once(caller, async (remember) => {
          const task = await taskOf(params.key);
          const answer = { status: 200, body: { task_id: task.id, status: "cancelled" } } as const;
          const actor = { role: "admin", id: caller.principal.id } as const;
          await mailroom.approvals.cancel(actor, task.key, remember({ kind: "answer", ...answer }));
          noteAccess(request, caller, "an admin cancelled a task", task.key);
          return answer;
        });
      },
    }),
  ];
}
