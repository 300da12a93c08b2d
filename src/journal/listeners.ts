/** Calls into code outside the kernel. A throw is reported and stops nothing else. */
import type { Report } from "../base/index.js";
import { asError } from "./errors.js";
import type { JournalKey } from "./ports.js";

export function notify(report: Report, key: JournalKey, listener: () => void): void {
  try {
    listener();
  } catch (cause) {
    listenerFailed(report, key, cause);
  }
}

export function listenerFailed(report: Report, task: JournalKey, cause: unknown): void {
  report({ code: "listener_failed", message: asError(cause).message, task, cause });
}
