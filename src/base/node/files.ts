import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { makeDirectories } from "./directories.js";

/** Writes a file of mode 0600 so that readers see the old or the new one, whole, even after a power cut. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  renameSync(writeBeside(path, content), path);
  syncFolder(dirname(path));
}

/**
 * Makes a file of mode 0600 that is there whole or not at all, even after a power cut.
 * @throws Error `EEXIST` when there is one, which stays as it is
 */
export function createFile(path: string, content: string | Uint8Array): void {
  const temporary = writeBeside(path, content);
  try {
    linkSync(temporary, path);
  } catch (error) {
    if (isExisting(error)) throw error;
    // A file system without hard links.
    copyFileSync(temporary, path, constants.COPYFILE_EXCL);
    sync(path, "r+");
  } finally {
    rmSync(temporary);
  }
  syncFolder(dirname(path));
}

export function isExisting(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

/** Writes it durably under another name in the same folder; returns that. */
function writeBeside(path: string, content: string | Uint8Array): string {
  makeDirectories(dirname(path), 0o700);
  const temporary = `${path}.${process.pid}.tmp`;
  // Left over from a crash, perhaps.
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, content, { mode: 0o600, flag: "wx", flush: true });
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  return temporary;
}

/** So that the new name lasts, too. */
function syncFolder(path: string): void {
  try {
    sync(path, "r");
  } catch {
    // Not every system can sync a folder (Windows cannot). The file is still complete, the old or the new one.
  }
}

function sync(path: string, mode: "r" | "r+"): void {
  const file = openSync(path, mode);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
