import { hasCode, MailroomError } from "../../base/index.js";
import type { Refusal } from "../task/commands.js";

/** A command was rejected; no state changed. */
export function refused({ code, message, details }: Refusal): MailroomError {
  return new MailroomError(code, message, { details });
}

export function unknownTask(taskId: string): MailroomError {
  return new MailroomError("unknown_task", `unknown task '${taskId}'`);
}

/** The journal's errors in terms of tasks. */
export function toTaskError(error: Error, taskId: string): Error {
  if (hasCode(error, "unknown_journal")) return unknownTask(taskId);
  return hasCode(error, "store_closed") ? closed(error) : error;
}

export function closed(cause?: Error): MailroomError {
  return new MailroomError("closed", "the mailroom was closed; the task continues when it is opened again", {
    cause,
  });
}
