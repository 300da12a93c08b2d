/** Builds the simulation with mistakes in the sources, without changing the files. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import type { SimulationOptions, Summary } from "./simulate.js";

/** A mistake: a file in `src`, the correct text, and its replacement. */
export interface Mistake {
  readonly file: string;
  readonly right: string;
  readonly wrong: string;
}

export interface Mutant {
  simulate(seed: number, options?: SimulationOptions): Promise<Summary>;
  remove(): void;
}

const project = fileURLToPath(new URL("../../", import.meta.url));

export async function buildMutant(mistakes: readonly Mistake[]): Promise<Mutant> {
  const cache = join(project, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  // Below `node_modules`, so that external packages resolve.
  const folder = mkdtempSync(join(cache, "mailroom-mutant-"));
  const outfile = join(folder, "simulate.mjs");
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    await build({
      entryPoints: [join(project, "test/simulation/simulate.ts")],
      outfile,
      bundle: true,
      packages: "external",
      platform: "node",
      format: "esm",
      target: "node20",
      plugins: [plant(mistakes)],
      logLevel: "silent",
    });
    const module: { simulate: Mutant["simulate"] } = await import(pathToFileURL(outfile).href);
    return { simulate: module.simulate, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function plant(mistakes: readonly Mistake[]): Plugin {
  return {
    name: "plant",
    setup({ onLoad }) {
      for (const file of new Set(mistakes.map((mistake) => mistake.file))) {
        const path = join(project, "src", file);
        // A moved file would never be loaded, and the mutant would equal the original.
        if (!existsSync(path)) throw new Error(`src/${file} does not exist`);
        const own = mistakes.filter((mistake) => mistake.file === file);
        onLoad({ filter: new RegExp(`${path.replaceAll(/[.\\+*?[^\]$(){}=!<>|:]/g, "\\$&")}$`) }, () => ({
          contents: own.reduce(replaced, readFileSync(path, "utf8")),
          loader: "ts",
        }));
      }
    },
  };
}

function replaced(source: string, { file, right, wrong }: Mistake): string {
  const parts = source.split(right);
  if (parts.length !== 2) {
    throw new Error(
      `${file} contains this text ${parts.length - 1} times, and a mistake needs exactly one place: ${right}`,
    );
  }
  return parts.join(wrong);
}

/** The violation of the first seed that finds the mistake. */
export async function firstViolation(mutant: Mutant, seeds: number): Promise<string | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      await mutant.simulate(seed);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  return undefined;
}
