/**
 * Confines file actions to the configured directories. Symbolic links are resolved before a path is checked, and the
 * open file is checked again.
 */

import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { MailroomError } from "../../base/index.js";
import { fileError, toFileError } from "./errors.js";

export class Roots {
  readonly #configured: readonly string[];

  /** Agents' relative paths start at the first root. */
  constructor(directories: readonly string[]) {
    this.#configured = directories.map((directory) => resolve(directory));
  }

  /** Returns the real path of an existing file. @throws MailroomError when it does not exist or is outside */
  async locate(path: string): Promise<string> {
    const wanted = this.#absolute(path);
    const real = await this.#real(wanted, path);
    await this.#assertInside(real, path);
    return real;
  }

  /** Returns the real path of a file that may be missing. Its directory exists and is inside. */
  async place(path: string, options: { readonly makeDirectories?: boolean } = {}): Promise<string> {
    const wanted = this.#absolute(path);
    const parent = await this.#directory(dirname(wanted), path, options.makeDirectories === true);
    const name = basename(wanted);
    const place = join(parent, name);
    await this.#assertInside(place, path);
    return place;
  }

  /**
   * Opens a regular file that `locate` or `place` returned, and checks that it is still the same file. Does not follow
   * a link in the last component.
   */
  async open(place: string, path: string, flags: number): Promise<FileHandle> {
    // Without O_NONBLOCK, opening a named pipe would block until its other end is open.
    const handle = await open(place, flags | NO_FOLLOW | NON_BLOCKING).catch((error: unknown) => {
      throw toFileError(error, path);
    });
    try {
      const [opened, now, real] = await Promise.all([handle.stat(), lstat(place), realpath(place)]);
      if (!opened.isFile()) throw fileError("not_a_file", path, "it is not a regular file");
      const same = opened.dev === now.dev && opened.ino === now.ino && real === place;
      if (!same) throw fileError("file_outside", path, "it was replaced while it was being opened");
      await this.#assertInside(real, path);
      return handle;
    } catch (error) {
      await handle.close();
      throw toFileError(error, path);
    }
  }

  #absolute(path: string): string {
    if (path.includes("\0")) throw fileError("file_bad_path", path, "a path must not contain NUL characters");
    const [first] = this.#configured;
    if (first === undefined) {
      throw fileError("file_no_roots", path, "agents have access to no directory; set files.roots");
    }
    const wanted = isAbsolute(path) ? resolve(path) : resolve(first, path);
    // Also checked as written, so that errors reveal nothing about files outside.
    if (!this.#configured.some((root) => isInside(root, wanted))) throw outside(path);
    return wanted;
  }

  async #directory(directory: string, path: string, make: boolean): Promise<string> {
    try {
      const real = await realpath(directory);
      await this.#assertInside(real, path);
      return real;
    } catch (error) {
      const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (!missing || !make || this.#configured.includes(directory)) throw toFileError(error, path);
    }
    // Each missing directory is created inside a checked one, so no link can lead outside.
    const parent = await this.#directory(dirname(directory), path, make);
    const made = join(parent, basename(directory));
    await mkdir(made).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
        throw toFileError(error, path);
      }
    });
    const real = await realpath(made);
    await this.#assertInside(real, path);
    return real;
  }

  async #real(wanted: string, path: string): Promise<string> {
    return realpath(wanted).catch((error: unknown) => {
      throw toFileError(error, path);
    });
  }

  async #assertInside(real: string, path: string): Promise<void> {
    for (const root of this.#configured) {
      const realRoot = await realpath(root).catch(() => undefined);
      if (realRoot !== undefined && isInside(realRoot, real)) return;
    }
    throw outside(path);
  }
}

const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NON_BLOCKING = constants.O_NONBLOCK ?? 0;

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function outside(path: string): MailroomError {
  return fileError("file_outside", path, "it is outside of the directories that agents may access");
}
