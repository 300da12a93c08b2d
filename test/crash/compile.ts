/** Compiles the child and its imports, so that the tests kill the compiled program that users run. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface CompiledChild {
  /** The script to run. */
  readonly script: string;
  remove(): void;
}

/** Below the project, so that imports of packages resolve; each caller gets a folder of its own. */
export function compileChild(suite = "crash"): CompiledChild {
  const project = fileURLToPath(new URL("../../", import.meta.url));
  const cache = join(project, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const out = mkdtempSync(join(cache, `mailroom-${suite}-`));
  const remove = () => rmSync(out, { recursive: true, force: true });
  writeFileSync(join(out, "package.json"), '{ "type": "module" }\n');
  const compiler = join(project, "node_modules", "typescript", "bin", "tsc");
  const config = join(project, "test", suite, "tsconfig.json");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", config, "--outDir", out], {
    encoding: "utf8",
  });
  const script = join(out, "test", suite, "child.js");
  // The type check reports type errors; here only the output matters.
  if (!existsSync(script)) {
    remove();
    throw new Error(`the child of test/${suite} does not compile:\n${stdout}`);
  }
  return { script, remove };
}
