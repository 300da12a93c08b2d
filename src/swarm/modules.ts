/** Loads the modules that swarm files refer to. TypeScript is loaded through tsx, which is loaded only when needed. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { didYouMean, hasCode, messageOf } from "../base/index.js";
import { badReference } from "./references.js";

/** Returns the export that `module:<specifier>#<exportName>` names. Relative paths start at `directory`. */
export type ModuleLoader = (specifier: string, exportName: string, directory: string) => Promise<unknown>;

/** @throws MailroomError `bad_reference` when the module is missing, fails to load, or lacks the export. */
export const loadModuleExport: ModuleLoader = async (specifier, exportName, directory) => {
  const file = locate(specifier, directory);
  const exports = await importFile(file, specifier);
  if (Object.hasOwn(exports, exportName)) return exports[exportName];
  const names = Object.keys(exports);
  throw badReference(
    `module '${specifier}' has no export '${exportName}'`,
    didYouMean(exportName, names) ?? "it exports nothing",
  );
};

function locate(specifier: string, directory: string): string {
  const isFile = specifier.startsWith(".") || isAbsolute(specifier);
  if (isFile) {
    const file = resolve(directory, specifier);
    if (existsSync(file)) return file;
    const sibling = file.replace(/\.([cm]?)js$/, ".$1ts");
    throw badReference(
      `no file '${specifier}' in ${directory}`,
      sibling !== file && existsSync(sibling)
        ? `found a TypeScript file; write '${specifier.replace(/\.([cm]?)js$/, ".$1ts")}'`
        : "paths are relative to the swarm file",
    );
  }
  try {
    return createRequire(resolve(directory, "swarms.json")).resolve(specifier);
  } catch (error) {
    throw badReference(
      `package '${specifier}' not found from ${directory}`,
      `install it, or write './${specifier}' if it is a file`,
      { cause: error },
    );
  }
}

async function importFile(file: string, specifier: string): Promise<Readonly<Record<string, unknown>>> {
  const url = pathToFileURL(file).href;
  try {
    return /\.[cm]?ts$/.test(file) ? await importTypeScript(url) : await import(url);
  } catch (error) {
    if (hasCode(error, "bad_reference")) throw error;
    const reason = messageOf(error);
    throw badReference(`module '${specifier}' could not be loaded: ${reason}`, undefined, {
      cause: error,
    });
  }
}

async function importTypeScript(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { tsImport } = await import("tsx/esm/api").catch((error: unknown) => {
    throw badReference(
      "loading TypeScript requires the package 'tsx', which is not installed",
      "run 'npm install tsx', or compile the file and refer to the .js file",
      { cause: error },
    );
  });
  return tsImport(url, import.meta.url);
}
