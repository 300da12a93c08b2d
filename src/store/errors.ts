/** The errors of stores, beside those that the port declares. */
import { hasCode, MailroomError, messageOf } from "../base/index.js";

/** The process that holds a data directory. `started` is the start of the process as an ISO 8601 time. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
  readonly started: string;
}

/**
 * Another process, or another store in this process, has the same data open.
 * @param holder absent when the holder has not written its name yet
 */
export function storeLocked(lock: string, holder: LockHolder | undefined): MailroomError {
  const who = holder
    ? `process ${holder.pid} on ${holder.host}, started ${holder.started}`
    : "an unnamed process";
  return new MailroomError("store_locked", `${lock} is held by ${who}`, { details: { lock, holder } });
}

/** The lock file and its holder, if another process has the data open. */
export function lockOf(error: unknown): { lock: string; holder: LockHolder | undefined } | undefined {
  if (!hasCode(error, "store_locked")) return undefined;
  const { lock, holder } = error.details;
  return { lock: String(lock), holder: isLockHolder(holder) ? holder : undefined };
}

export function isLockHolder(value: unknown): value is LockHolder {
  return (
    typeof value === "object" &&
    value !== null &&
    "pid" in value &&
    typeof value.pid === "number" &&
    "host" in value &&
    typeof value.host === "string" &&
    "started" in value &&
    typeof value.started === "string"
  );
}

/** The data directory does not exist and cannot be created. */
export function storeDirectoryUnusable(directory: string, cause: unknown): MailroomError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
  const what =
    code === "EEXIST" || code === "ENOTDIR"
      ? "is a file or is below one"
      : `cannot be created (${code}): check permissions and the disk`;
  return new MailroomError("store_directory", `the data directory ${directory} ${what}`, { cause });
}

/** The file is damaged. It was not changed. */
export function storeDamaged(file: string, cause: unknown): MailroomError {
  const message =
    `${file} is damaged (${messageOf(cause)}): restore a backup and remove the files ${file}-wal and ${file}-shm, ` +
    "or use another data directory";
  return new MailroomError("store_damaged", message, { cause });
}
