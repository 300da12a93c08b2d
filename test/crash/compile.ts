/** Builds a child and its imports, so that the tests kill a built program like the one that users run. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface CompiledChild {
  /** The script to run. */
  readonly script: string;
  remove(): void;
}

/** Two folders below the package, like `dist/cli`, so that packages resolve. Each caller gets its own folder. */
export function compileChild(suite = "crash"): CompiledChild {
  const out = mkdtempSync(join(ROOT, "node_modules", `.mailroom-${suite}-`));
  buildSync({
    entryPoints: [join(ROOT, "test", suite, "child.ts")],
    outdir: out,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    packages: "external",
    sourcemap: true,
    outExtension: { ".js": ".mjs" },
  });
  return { script: join(out, "child.mjs"), remove: () => rmSync(out, { recursive: true, force: true }) };
}
