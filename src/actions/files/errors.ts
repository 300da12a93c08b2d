/** Why a file action failed, in words that say nothing about the world outside of the roots. */

export type FileActionErrorCode =
  | "no_roots"
  | "bad_path"
  | "outside"
  | "missing"
  | "exists"
  | "not_a_file"
  | "not_a_directory"
  | "not_text"
  | "too_large"
  | "refused";

const SYSTEM_ERRORS: Readonly<Record<string, readonly [FileActionErrorCode, string]>> = {
  ENOENT: ["missing", "there is no such file or directory"],
  EEXIST: ["exists", "it exists already"],
  ENOTDIR: ["not_a_directory", "a part of the path is not a directory"],
  EISDIR: ["not_a_file", "it is a directory"],
  ELOOP: ["outside", "it is a symbolic link, and those are not followed here"],
  ENXIO: ["not_a_file", "it is not a regular file"],
  EACCES: ["refused", "permission denied"],
  EPERM: ["refused", "permission denied"],
  ENOTEMPTY: ["refused", "the directory is not empty"],
  ENOSPC: ["refused", "the disk is full"],
  EDQUOT: ["refused", "the disk is full"],
  EFBIG: ["refused", "it would be larger than the system allows"],
  ENAMETOOLONG: ["bad_path", "the name is too long"],
};

export class FileActionError extends Error {
  override readonly name = "FileActionError";
  readonly code: FileActionErrorCode;
  constructor(code: FileActionErrorCode, path: string, reason: string, options?: ErrorOptions) {
    super(`'${path}': ${reason}`, options);
    this.code = code;
  }

  static from(error: unknown, path: string): FileActionError {
    if (error instanceof FileActionError) return error;
    const system = error instanceof Error && "code" in error ? SYSTEM_ERRORS[String(error.code)] : undefined;
    const [code, reason] = system ?? (["refused", "the file system refused"] as const);
    return new FileActionError(code, path, reason, { cause: error });
  }
}
