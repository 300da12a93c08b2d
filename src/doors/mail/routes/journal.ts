/** Tasks as their journals have them. */
import { MailroomError } from "../../../base/index.js";
import type { TaskRow } from "../../../engine/index.js";
import {
  ADMINS,
  type Caller,
  defineRoute,
  KeyPath,
  NO_INPUT,
  type Route,
  type RouteRequest,
  type RouteResponse,
  TaskPath,
  USERS_AND_ADMINS,
} from "../../../extension/index.js";
import type { MailDoor } from "../door.js";
import { entriesAfter, journalPage, type JournalQuery as Query } from "../journal-page.js";
import { JournalPage, JournalQuery, TaskCounts } from "../schemas/journal.js";
import { adminTask, noteAccess, ownTask } from "../task-access.js";

export function journalRoutes(door: MailDoor): Route[] {
  const { mailroom, cursors } = door;
  const { store } = mailroom;

  async function page(
    request: RouteRequest,
    caller: Caller,
    task: TaskRow,
    query: Query,
  ): Promise<RouteResponse> {
    if (query.after !== undefined && query.before !== undefined) {
      throw new MailroomError("bad_request", "after and before exclude each other", {
        details: { field: "before" },
      });
    }
    const position = await store.position();
    const cursor = cursors.encode(caller, { entries: position, tasks: position });
    return request.pieces(caller, journalPage(store, task, query, cursor));
  }

  /** The file's name has the key, which a caller has not chosen. */
  function exported(request: RouteRequest, caller: Caller, key: string): Promise<RouteResponse> {
    return request.pieces(caller, linesOf(entriesAfter(store, key, 0)), {
      "content-type": "application/jsonl; charset=utf-8",
      "content-disposition": `attachment; filename="mailroom-${key}.jsonl"`,
    });
  }

  const journal = {
    ...NO_INPUT,
    method: "GET",
    query: JournalQuery,
    description: "Entries as they are stored. A model's opaque `memo` is replaced by `true`.",
    answers: { 200: { description: "Part of the journal.", schema: JournalPage } },
    errors: ["unknown_task"],
  } as const;
  const lines = {
    ...NO_INPUT,
    method: "GET",
    answers: { 200: { description: "One entry per line.", contentType: "application/jsonl" } },
    errors: ["unknown_task"],
  } as const;
  const counts = {
    ...NO_INPUT,
    method: "GET",
    answers: { 200: { description: "The counts.", schema: TaskCounts } },
  } as const;

  return [
    defineRoute({
      ...journal,
      id: "getTaskJournal",
      path: "/tasks/{task_id}/journal",
      tag: "tasks",
      summary: "Read the journal of a task",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      async handle({ params, query, request }, caller) {
        const task = await ownTask(mailroom, caller, params.task_id);
        request.taskKey = task.key;
        return page(request, caller, task, query);
      },
    }),
    defineRoute({
      ...journal,
      id: "adminGetTaskJournal",
      path: "/admin/tasks/{key}/journal",
      tag: "administration",
      summary: "Read the journal of a task of any caller",
      access: ADMINS,
      params: KeyPath,
      async handle({ params, query, request }, caller) {
        const task = await adminTask(mailroom, params.key);
        noteAccess(request, caller, "an admin read the journal of a task", task.key);
        return page(request, caller, task, query);
      },
    }),
    defineRoute({
      ...lines,
      id: "exportTask",
      path: "/tasks/{task_id}/export",
      tag: "tasks",
      summary: "Download the journal of a task as JSON Lines",
      access: USERS_AND_ADMINS,
      params: TaskPath,
      async handle({ params, request }, caller) {
        const task = await ownTask(mailroom, caller, params.task_id);
        request.taskKey = task.key;
        return exported(request, caller, task.key);
      },
    }),
    defineRoute({
      ...lines,
      id: "adminExportTask",
      path: "/admin/tasks/{key}/export",
      tag: "administration",
      summary: "Download the journal of a task of any caller as JSON Lines",
      access: ADMINS,
      params: KeyPath,
      async handle({ params, request }, caller) {
        const task = await adminTask(mailroom, params.key);
        noteAccess(request, caller, "an admin exported a task", task.key);
        return exported(request, caller, task.key);
      },
    }),
    defineRoute({
      ...counts,
      id: "countTasks",
      path: "/tasks/counts",
      tag: "tasks",
      summary: "Count the caller's tasks",
      access: USERS_AND_ADMINS,
      handle: async (_call, caller) => ({ status: 200, body: await store.tasks.counts(caller.instance) }),
    }),
    defineRoute({
      ...counts,
      id: "adminCountTasks",
      path: "/admin/tasks/counts",
      tag: "administration",
      summary: "Count all tasks",
      access: ADMINS,
      handle: async () => ({ status: 200, body: await store.tasks.counts() }),
    }),
  ];
}

async function* linesOf(entries: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const entry of entries) yield `${entry}\n`;
}
