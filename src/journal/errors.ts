/** Why the kernel did not decide a command. */
import { MailroomError } from "../base/index.js";
import type { JournalKey } from "./ports.js";

export function unknownJournal(key: JournalKey): MailroomError {
  return new MailroomError("unknown_journal", `there is no journal ${key}`);
}

/** The rules threw instead of deciding: a bug that would throw again for the same command. */
export function decideFailed(thrown: unknown): MailroomError<"decide_failed"> {
  return new MailroomError("decide_failed", asError(thrown).message, { cause: thrown });
}

export function kernelClosed(): MailroomError {
  return new MailroomError(
    "closed",
    "the journals are closed; acknowledged work continues when they are opened again",
  );
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
