import { KernelClosedError, UnknownJournalError } from "../../journal/kernel.js";
import { StoreBusyError, StoreClosedError, StoreFailedError } from "../../journal/ports.js";
import type { Refusal, RefusalCode } from "../commands.js";

export type RuntimeErrorCode =
  | RefusalCode
  | "unknown_task"
  | "task_exists"
  | "owner_mismatch"
  | "overloaded"
  | "closed"
  | "bad_input"
  | "store_busy"
  | "store_failed";

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

/** What the runtime says when it cannot now. All else that it refuses it would refuse again. */
const LATER: ReadonlySet<RuntimeErrorCode> = new Set<RuntimeErrorCode>([
  "overloaded",
  "mailbox_full",
  "store_busy",
  "store_failed",
  "closed",
]);

/** Whether the same may be asked again later. */
export function isForLater({ code }: RuntimeError): boolean {
  return LATER.has(code);
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

/** Why a command was not carried out, in the runtime's words. */
export function asRuntimeError(error: Error, taskId: string): Error {
  if (error instanceof UnknownJournalError) return unknownTask(taskId);
  if (error instanceof KernelClosedError || error instanceof StoreClosedError) return closed(error);
  if (error instanceof StoreFailedError) return storeFailed(error);
  if (error instanceof StoreBusyError) return new RuntimeError("store_busy", error.message, { cause: error });
  return error;
}

export function closed(cause?: Error): RuntimeError {
  return new RuntimeError("closed", "the mailroom was closed; the task goes on when it is opened again", {
    ...(cause !== undefined && { cause }),
  });
}

export function storeFailed(cause: StoreFailedError): RuntimeError {
  return new RuntimeError("store_failed", `${cause.message}; the task goes on after that`, { cause });
}
