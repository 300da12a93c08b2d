/** Whose task a caller may read. */
import { MailroomError } from "../../base/index.js";
import type { TaskRow } from "../../engine/index.js";
import type { Caller, RouteRequest } from "../../extension/index.js";
import type { Mailroom } from "../../library/index.js";

/** @throws MailroomError `unknown_task`, also for another caller's task */
export async function ownTask({ store }: Mailroom, caller: Caller, taskId: string): Promise<TaskRow> {
  const row = await store.tasks.find(caller.instance, taskId);
  if (row === undefined) throw new MailroomError("unknown_task", `unknown task '${taskId}'`);
  return row;
}

/** @throws MailroomError `unknown_task` */
export async function adminTask({ store }: Mailroom, key: string): Promise<TaskRow> {
  const row = await store.tasks.byKey(key);
  if (row === undefined) throw new MailroomError("unknown_task", `there is no task with the key '${key}'`);
  return row;
}

/** Every access of an admin to tasks is logged (decision A6). */
export function noteAccess(request: RouteRequest, caller: Caller, what: string, key?: string): void {
  if (key !== undefined) request.taskKey = key;
  request.log.info({ admin: caller.principal.id, ...(key !== undefined && { task: key }) }, what);
}
