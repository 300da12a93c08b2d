/**
 * Keeps file actions inside the directories that the operator named. What counts is where a path really leads:
 * symbolic links are resolved before it is judged, and judged again once the file is open.
 */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { FileActionError } from "./errors.js";

export class Roots {
  readonly #configured: readonly string[];

  /** Relative paths of agents start at the first root. */
  constructor(directories: readonly string[]) {
    this.#configured = directories.map((directory) => resolve(directory));
  }

  /** Where an existing thing really is. @throws FileActionError when there is none or it is outside */
  async locate(path: string): Promise<string> {
    const wanted = this.#absolute(path);
    const real = await this.#real(wanted, path);
    await this.#assertInside(real, path);
    return real;
  }

  /** Where a thing is or would be: its directory exists and is inside, it itself may be missing. */
  async place(path: string, options: { readonly makeDirectories?: boolean } = {}): Promise<string> {
    const wanted = this.#absolute(path);
    const parent = await this.#directory(dirname(wanted), path, options.makeDirectories === true);
    const name = basename(wanted);
    const place = join(parent, name);
    await this.#assertInside(place, path);
    return place;
  }

  /**
   * Opens a regular file that `locate` or `place` found, and makes sure that it is still the one that was judged.
   * Links in the last place are not followed.
   */
  async open(place: string, path: string, flags: number): Promise<FileHandle> {
    // Without O_NONBLOCK opening a named pipe would wait for somebody at its other end.
    const handle = await open(place, flags | NO_FOLLOW | NON_BLOCKING).catch((error: unknown) => {
      throw FileActionError.from(error, path);
    });
    try {
      const [opened, now, real] = await Promise.all([handle.stat(), lstat(place), realpath(place)]);
      if (!opened.isFile()) throw new FileActionError("not_a_file", path, "it is not a regular file");
      const same = opened.dev === now.dev && opened.ino === now.ino && real === place;
      if (!same) throw new FileActionError("outside", path, "it was exchanged while it was being opened");
      await this.#assertInside(real, path);
      return handle;
    } catch (error) {
      await handle.close();
      throw FileActionError.from(error, path);
    }
  }

  #absolute(path: string): string {
    if (path.includes("\0")) throw new FileActionError("bad_path", path, "a path has no NUL characters");
    const [first] = this.#configured;
    if (first === undefined) {
      throw new FileActionError(
        "no_roots",
        path,
        "no directory is open to agents here; the operator has to name one (files.roots)",
      );
    }
    const wanted = isAbsolute(path) ? resolve(path) : resolve(first, path);
    // Judged as it is written, too, so that nothing can be learned about what exists outside.
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
      if (!missing || !make || this.#configured.includes(directory)) throw FileActionError.from(error, path);
    }
    // Each missing directory is made inside one that was judged, so no link can lead the way out.
    const parent = await this.#directory(dirname(directory), path, make);
    const made = join(parent, basename(directory));
    await mkdir(made).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
        throw FileActionError.from(error, path);
      }
    });
    const real = await realpath(made);
    await this.#assertInside(real, path);
    return real;
  }

  async #real(wanted: string, path: string): Promise<string> {
    return realpath(wanted).catch((error: unknown) => {
      throw FileActionError.from(error, path);
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

function outside(path: string): FileActionError {
  return new FileActionError("outside", path, "it is outside of the directories that are open to agents");
}
