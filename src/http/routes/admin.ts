/** Decisions A6: admins see any task by its internal key, and may cancel it. Every look is logged. */
import { summaryOf } from "../../engine/view/record.js";
import type { Task } from "../../library/task.js";
import type { Door } from "../door.js";
import { HttpError } from "../errors.js";
import { type Caller, defineRoute, NOTHING, OUR_ADMINS, type RawCall, type Route } from "../route.js";
import { EventPage, EventQuery, KeyPath, PageQuery, TaskPage, TaskRecord } from "../schemas/common.js";
import { CancelAnswer } from "../schemas/server.js";
import { eventPage, streamEvents, wantsStream } from "../task-events.js";
import { answerRecord } from "../task-records.js";

export function adminRoutes(door: Door): Route[] {
  const { mailroom } = door;

  async function taskOf(key: string): Promise<Task> {
    const row = await mailroom.store.tasks.byKey(key);
    if (row === undefined) throw new HttpError("unknown_task", `there is no task with the key '${key}'`);
    return mailroom.instance(row.instance).requireTask(row.taskId);
  }

  function note({ request }: RawCall, caller: Caller, what: string, key?: string): void {
    if (key !== undefined) request.taskKey = key;
    request.log.info({ admin: caller.principal.id, ...(key !== undefined && { task: key }) }, what);
  }

  return [
    defineRoute({
      ...NOTHING,
      id: "adminListTasks",
      method: "GET",
      path: "/admin/tasks",
      tag: "administration",
      summary: "Everybody's tasks",
      access: OUR_ADMINS,
      query: PageQuery,
      answers: { 200: { description: "A page of summaries, newest first.", schema: TaskPage } },
      async handle(call, caller) {
        const { limit = 100, ...rest } = call.query;
        note(call, caller, "an admin listed all tasks");
        const { tasks, nextCursor } = await mailroom.store.tasks.list({ limit, ...rest });
        return { status: 200, body: { tasks: tasks.map(summaryOf), next_cursor: nextCursor ?? null } };
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "adminGetTask",
      method: "GET",
      path: "/admin/tasks/{key}",
      tag: "administration",
      summary: "Anybody's task",
      access: OUR_ADMINS,
      params: KeyPath,
      answers: { 200: { description: "The task.", schema: TaskRecord } },
      errors: ["unknown_task", "overloaded"],
      async handle(call, caller) {
        const task = await taskOf(call.params.key);
        note(call, caller, "an admin read a task", task.key);
        return answerRecord(door, call.reply, caller, task);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "adminGetTaskEvents",
      method: "GET",
      path: "/admin/tasks/{key}/events",
      tag: "administration",
      summary: "The events of anybody's task",
      access: OUR_ADMINS,
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
      async handle(call, caller) {
        const task = await taskOf(call.params.key);
        note(call, caller, "an admin read the events of a task", task.key);
        const wanted = { task, query: call.query, request: call.request };
        return wantsStream(call.request)
          ? streamEvents(door, call.reply, caller, wanted)
          : eventPage(door, wanted);
      },
    }),
    defineRoute({
      ...NOTHING,
      id: "adminCancelTask",
      method: "POST",
      path: "/admin/tasks/{key}/cancel",
      tag: "administration",
      summary: "Cancel anybody's task",
      access: OUR_ADMINS,
      params: KeyPath,
      idempotent: true,
      answers: { 200: { description: "The task is cancelled.", schema: CancelAnswer } },
      errors: ["unknown_task", "already_ended"],
      handle(call, caller) {
        const { request, params } = call;
        const write = { request, caller, route: "adminCancelTask", params, body: undefined };
        return door.writes.answer(write, async (remember) => {
          const task = await taskOf(params.key);
          const answer = { status: 200, body: { task_id: task.id, status: "cancelled" } } as const;
          const by = `admin '${caller.principal.id}'`;
          await mailroom.runtime.cancel(task.key, by, remember({ kind: "answer", ...answer }));
          note(call, caller, "an admin cancelled a task", task.key);
          return answer;
        });
      },
    }),
  ];
}
