/**
 * File actions with the names and arguments of REF-21: confined to configured directories, bounded in size, text
 * only.
 */

import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, readdir, rename, rm, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { hasCode, type MailroomError } from "../../base/index.js";
import type { Action } from "../../engine/index.js";
import { defineAction } from "../define.js";
import { fileError, toFileError } from "./errors.js";
import { Roots } from "./roots.js";

/** What the file actions may access. */
export interface FileActionOptions {
  /** Directories that agents may read and write. Without any, every call is rejected. */
  readonly roots: readonly string[];
  /** Maximum size of a file in bytes. Default: 1 MiB. */
  readonly maxBytes?: number;
  /** Maximum number of names in a listing. Default: 2,000. */
  readonly maxEntries?: number;
}

export type FileActions = Readonly<
  Record<"read_file" | "write_file" | "delete_file" | "create_directory" | "read_directory", Action>
>;

const path = z.string().min(1).max(4_096);

/**
 * Makes the actions `read_file`, `write_file`, `delete_file`, `create_directory` and `read_directory`.
 *
 * @example
 * defineSwarm({ name: "desk", agents, actions: Object.values(fileActions({ roots: ["./notes"] })) });
 */
export function fileActions(options: FileActionOptions): FileActions {
  const roots = new Roots(options.roots);
  const { maxBytes = 1_048_576, maxEntries = 2_000 } = options;
  return {
    read_file: defineAction({
      name: "read_file",
      description: "Returns the text of a file.",
      parameters: z.strictObject({ path: path.describe("The file") }),
      idempotent: true,
      run: ({ path: wanted }) => readText(roots, wanted, maxBytes),
    }),
    write_file: defineAction({
      name: "write_file",
      description:
        "Writes text to a file. The file is replaced if it exists; missing directories are created.",
      parameters: z.strictObject({
        path: path.describe("The file"),
        content: z.string().describe("The complete new text"),
      }),
      // Writing the same text again has no further effect.
      idempotent: true,
      // Other calls of the same answer may concern the same path.
      parallel: false,
      run: async ({ path: wanted, content }) => {
        await writeText(roots, wanted, content, maxBytes);
        return `successfully wrote to ${wanted}`;
      },
    }),
    delete_file: defineAction({
      name: "delete_file",
      description: "Deletes a file, or an empty directory.",
      parameters: z.strictObject({ path: path.describe("The file") }),
      parallel: false,
      run: async ({ path: wanted }) => {
        // Deletes the link itself, not its target.
        const place = await roots.place(wanted);
        await remove(place).catch((error: unknown) => {
          throw toFileError(error, wanted);
        });
        return `deleted ${wanted}`;
      },
    }),
    create_directory: defineAction({
      name: "create_directory",
      description: "Creates a directory. It is an error if it exists.",
      parameters: z.strictObject({ path: path.describe("The directory") }),
      parallel: false,
      run: async ({ path: wanted }) => {
        const place = await roots.place(wanted, { makeDirectories: true });
        await mkdir(place).catch((error: unknown) => {
          throw toFileError(error, wanted);
        });
        return `created ${wanted}`;
      },
    }),
    read_directory: defineAction({
      name: "read_directory",
      description: "Lists the names in a directory, sorted, one per line.",
      parameters: z.strictObject({ path: path.describe("The directory; '.' is the first accessible one") }),
      idempotent: true,
      run: async ({ path: wanted }) => {
        const place = await roots.locate(wanted);
        const names = await readdir(place).catch((error: unknown) => {
          throw toFileError(error, wanted);
        });
        const shown = names.sort().slice(0, maxEntries);
        const rest = names.length - shown.length;
        return shown.join("\n") + (rest > 0 ? `\n… and ${rest} more` : "");
      },
    }),
  };
}

async function readText(roots: Roots, path: string, maxBytes: number): Promise<string> {
  const handle = await roots.open(await roots.locate(path), path, constants.O_RDONLY);
  try {
    const { size } = await handle.stat();
    if (size > maxBytes) throw tooLarge(path, size, maxBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxBytes + 1), 0, maxBytes + 1, 0);
    // Some files, such as those of /proc, report no size.
    if (bytesRead > maxBytes) throw tooLarge(path, bytesRead, maxBytes);
    return decode(buffer.subarray(0, bytesRead), path);
  } finally {
    await handle.close();
  }
}

/** The old text stays until the new one is complete, so that a full disk does not destroy both. */
async function writeText(roots: Roots, path: string, content: string, maxBytes: number): Promise<void> {
  const bytes = Buffer.from(content, "utf8");
  if (bytes.byteLength > maxBytes) throw tooLarge(path, bytes.byteLength, maxBytes);
  const place = await roots.place(path, { makeDirectories: true });
  const mode = await modeOf(roots, place, path);
  const temporary = join(dirname(place), `.${randomUUID()}.tmp`);
  const create = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const handle = await roots.open(temporary, path, create);
  try {
    try {
      await handle.writeFile(bytes);
      if (mode !== undefined) await handle.chmod(mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, place);
  } catch (error) {
    await rm(temporary, { force: true });
    throw toFileError(error, path);
  }
}

/**
 * The permissions of the file to replace; undefined if it does not exist.
 * @throws MailroomError if it is not a writable regular file
 */
async function modeOf(roots: Roots, place: string, path: string): Promise<number | undefined> {
  try {
    const handle = await roots.open(place, path, constants.O_WRONLY);
    try {
      return (await handle.stat()).mode & 0o777;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (hasCode(error, "file_missing")) return undefined;
    throw error;
  }
}

async function remove(place: string): Promise<void> {
  const isDirectory = await stat(place).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) return unlink(place);
  // `unlink` removes a link to a directory; `rmdir` rejects it.
  await unlink(place).catch(() => rmdir(place));
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw fileError("not_text", path, "not a text file (UTF-8)", error);
  }
}

function tooLarge(path: string, size: number, maxBytes: number): MailroomError {
  return fileError("file_too_large", path, `its size of ${size} bytes exceeds the limit of ${maxBytes}`);
}
