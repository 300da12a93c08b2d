/** Error messages of file actions, which reveal nothing about files outside of the roots. */
import { type ErrorCode, isMailroomError, MailroomError } from "../../base/index.js";

const SYSTEM_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOENT: ["file_missing", "no such file or directory"],
  EEXIST: ["file_exists", "it already exists"],
  ENOTDIR: ["not_a_directory", "a part of the path is not a directory"],
  EISDIR: ["not_a_file", "it is a directory"],
  ELOOP: ["file_outside", "it is a symbolic link, which is not followed"],
  ENXIO: ["not_a_file", "it is not a regular file"],
  EACCES: ["file_refused", "permission denied"],
  EPERM: ["file_refused", "permission denied"],
  ENOTEMPTY: ["file_refused", "the directory is not empty"],
  ENOSPC: ["file_refused", "the disk is full"],
  EDQUOT: ["file_refused", "the disk is full"],
  EFBIG: ["file_refused", "it exceeds the system's size limit"],
  ENAMETOOLONG: ["file_bad_path", "the name is too long"],
};

export function fileError(code: ErrorCode, path: string, reason: string, cause?: unknown): MailroomError {
  return new MailroomError(code, `'${path}': ${reason}`, { cause });
}

/** Converts an error of the file system. */
export function toFileError(error: unknown, path: string): MailroomError<string> {
  if (isMailroomError(error)) return error;
  const system = error instanceof Error && "code" in error ? SYSTEM_ERRORS[String(error.code)] : undefined;
  const [code, reason] = system ?? (["file_refused", "the file system rejected the operation"] as const);
  return fileError(code, path, reason, error);
}
