/** Loads the modules that swarm files refer to. TypeScript is loaded through tsx, and only when there is some. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { isAbsolute, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { BadReferenceError } from "./references.js";

/** What `module:<specifier>#<exportName>` names. Relative files are looked up from `directory`. */
export type ModuleLoader = (specifier: string, exportName: string, directory: string) => Promise<unknown>;

/** @throws BadReferenceError when there is no such module, it fails to load, or has no such export. */
export const loadModuleExport: ModuleLoader = async (specifier, exportName, directory) => {
  const file = locate(specifier, directory);
  const exports = await importFile(file, specifier);
  if (Object.hasOwn(exports, exportName)) return exports[exportName];
  const names = Object.keys(exports);
  throw new BadReferenceError(
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
    throw new BadReferenceError(
      `there is no file '${specifier}' in ${directory}`,
      sibling !== file && existsSync(sibling)
        ? `there is a TypeScript file: write '${specifier.replace(/\.([cm]?)js$/, ".$1ts")}'`
        : "paths are relative to the swarm file",
    );
  }
  try {
    return createRequire(resolve(directory, "swarms.json")).resolve(specifier);
  } catch (error) {
    throw new BadReferenceError(
      `there is no package '${specifier}' to be found from ${directory}`,
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
    if (error instanceof BadReferenceError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new BadReferenceError(`module '${specifier}' could not be loaded: ${reason}`, undefined, {
      cause: error,
    });
  }
}

async function importTypeScript(url: string): Promise<Readonly<Record<string, unknown>>> {
  const { tsImport } = await import("tsx/esm/api").catch((error: unknown) => {
    throw new BadReferenceError(
      "loading TypeScript needs the package 'tsx', which is not installed",
      "run 'npm install tsx', or compile the file and refer to the .js file",
      { cause: error },
    );
  });
  return tsImport(url, import.meta.url);
}
