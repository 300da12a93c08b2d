/** The measured builds of Mailroom: the one in this folder, and another for comparison. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** The public library. Nothing else of a build is used, so that one script measures any version. */
export type Library = typeof import("../src/index.js");
type OpenStore = Library["openStore"];

/** Earlier versions use another name. */
export function openerOf(library: Library & { readonly openSqliteStore?: OpenStore }): OpenStore {
  return library.openStore ?? library.openSqliteStore;
}

export interface Build {
  /** Absolute; has `dist/index.js` and `bin/mailroom.js`. */
  readonly folder: string;
  readonly version: string;
}

/** @throws Error when nothing is built there. */
export function buildIn(folder: string): Build {
  const absolute = resolve(folder);
  if (!existsSync(entryOf(absolute)))
    throw new Error(`${entryOf(absolute)} is missing: build that folder first`);
  const about: { version?: string } = JSON.parse(readFileSync(join(absolute, "package.json"), "utf8"));
  return { folder: absolute, version: about.version ?? "unknown" };
}

export const loadLibrary = (folder: string): Promise<Library> => import(pathToFileURL(entryOf(folder)).href);

const entryOf = (folder: string): string => join(folder, "dist", "index.js");
