import type { Refusal, RefusalCode } from "../commands.js";

export type RuntimeErrorCode =
  | RefusalCode
  | "unknown_task"
  | "task_exists"
  | "owner_mismatch"
  | "overloaded"
  | "closed"
  | "bad_input"
  | "store_failure";

/** Something that was asked for and not done. Nothing has changed. */
export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly code: RuntimeErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  constructor(
    code: RuntimeErrorCode,
    message: string,
    options: { details?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
  }
}

export function refused(refusal: Refusal): RuntimeError {
  return new RuntimeError(
    refusal.code,
    refusal.message,
    refusal.details === undefined ? {} : { details: refusal.details },
  );
}

export function unknownTask(taskId: string): RuntimeError {
  return new RuntimeError("unknown_task", `there is no task '${taskId}'`);
}

export function beingReadAgain(): RuntimeError {
  return new RuntimeError("store_failure", "the task is being read again; try once more");
}
