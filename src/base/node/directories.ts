import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a directory and those above it that are missing, as `mkdir -p` does. Node's own `recursive` never returns
 * below a directory that reports itself as missing (`/proc`): it loops forever.
 * @returns the topmost that was made; nothing if all of them were there
 * @throws Error of the file system
 */
export function makeDirectories(path: string, mode?: number): string | undefined {
  try {
    return makeDirectory(path, mode);
  } catch (error) {
    const parent = dirname(path);
    if (codeOf(error) !== "ENOENT" || parent === path) throw error;
    const topmost = makeDirectories(parent, mode);
    const made = makeDirectory(path, mode);
    return topmost ?? made;
  }
}

/** Returns nothing if it exists already, or another process has just created it. */
function makeDirectory(path: string, mode: number | undefined): string | undefined {
  try {
    mkdirSync(path, mode);
    return path;
  } catch (error) {
    // Not only EEXIST: the root of a drive, or of a disk that cannot be written, is refused in other ways.
    if (codeOf(error) === "ENOENT" || !isDirectory(path)) throw error;
    return undefined;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
