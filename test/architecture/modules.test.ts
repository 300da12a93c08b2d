/** Checks the dependency rules of `modules.ts` against the imports of every file in `src/`. */
import { readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { cyclesOf, importsOf, sourcesOf } from "./imports.js";
import { BROWSER, MODULES, ONLY_IN_THE_JOURNAL, OWNED_WAITS, OWNERS, PURE } from "./modules.js";

const SRC = resolve(import.meta.dirname, "../../src");

const sources = sourcesOf(SRC);
const imports = sources.flatMap((source) => importsOf(SRC, source));
const known = new Set(sources.map(({ file }) => file));

/** `doors/map` for `doors/map/rpc.ts`, `mail` for `mail/message.ts`; undefined outside all modules. */
function moduleOf(file: string): string | undefined {
  const parts = file.split("/");
  return [parts.slice(0, 2).join("/"), parts[0] ?? ""].find((name) => name in MODULES);
}

function isEntry(module: string, file: string): boolean {
  const entries = MODULES[module]?.entries ?? ["index.ts", "settings.ts"];
  return file === module || entries.some((entry) => file === `${module}/${entry}`);
}

function allows(names: readonly string[], module: string, file: string): boolean {
  if (names.includes(`!${module}`)) return false;
  return names.includes("*") || names.includes(module) || names.includes(file);
}

const crossing = imports.flatMap((each) => {
  const from = moduleOf(each.file);
  const to = each.target === undefined ? undefined : moduleOf(each.target);
  if (from === undefined || each.target === undefined || from === to) return [];
  return [{ ...each, from, to, target: each.target }];
});

function packageOf(specifier: string): string {
  const parts = specifier.split("/");
  return specifier.startsWith("@") ? parts.slice(0, 2).join("/") : (parts[0] ?? "");
}

function graphOf(edges: readonly (readonly [string, string])[]): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>();
  for (const [from, to] of edges) {
    const targets = graph.get(from) ?? new Set();
    graph.set(from, targets.add(to));
  }
  return graph;
}

/** The files whose text matches, with what was found. */
function matches(pattern: RegExp, within: (file: string) => boolean): string[] {
  return sources.flatMap(({ file, text }) => {
    const found = within(file) ? pattern.exec(text) : null;
    return found === null ? [] : [`${file}: ${found[0]}`];
  });
}

describe("modules", () => {
  it("are all listed", () => {
    const folders = readdirSync(SRC).filter((name) => statSync(join(SRC, name)).isDirectory());
    const unlisted = folders.filter(
      (name) => !(name in MODULES) && !Object.keys(MODULES).some((module) => module.startsWith(`${name}/`)),
    );
    const strays = [...known].filter((file) => moduleOf(file) === undefined);
    expect([...unlisted, ...strays]).toEqual([]);
  });

  it("import only modules that they may", () => {
    const wrong = crossing.flatMap(({ file, specifier, from, to, target, typeOnly }) => {
      const rule = MODULES[from];
      if (to !== undefined && rule !== undefined) {
        if (allows(rule.may, to, target)) return [];
        if (typeOnly && allows(rule.types ?? [], to, target)) return [];
      }
      return [`${file} imports ${specifier}`];
    });
    expect(wrong).toEqual([]);
  });

  it("import other modules at their entry points", () => {
    const deep = crossing.filter(({ to, target }) => to !== undefined && !isEntry(to, target));
    expect(deep.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
  });

  it("have no import cycles between files, types included", () => {
    const edges = imports.flatMap(({ file, target }) =>
      target === undefined ? [] : [[file, target] as const],
    );
    expect(cyclesOf(graphOf(edges))).toEqual([]);
  });

  it("have no cycles between their subfolders", () => {
    const edges = imports.flatMap(({ file, target }) => {
      const module = moduleOf(file);
      if (module === undefined || target === undefined || moduleOf(target) !== module) return [];
      const [from, to] = [file, target].map((path) => path.slice(module.length + 1).split("/"));
      if (from?.[1] === undefined || to?.[1] === undefined || from[0] === to[0]) return [];
      return [[`${module}/${from[0]}/`, `${module}/${to[0]}/`] as const];
    });
    expect(cyclesOf(graphOf(edges))).toEqual([]);
  });

  it("that are doors import neither each other nor the listener", () => {
    const wrong = crossing.filter(
      ({ from, to }) => from.startsWith("doors/") && (to === "http" || to?.startsWith("doors/")),
    );
    expect(wrong.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
  });

  it("leave SQL to the store", () => {
    const sql =
      /\bSELECT\s[^;`"]*?\sFROM\s|\bINSERT (?:OR \w+ )?INTO\s|\bUPDATE\s+\w+\s+SET\s|\bDELETE FROM\s|\bCREATE TABLE\s/;
    expect(matches(sql, (file) => moduleOf(file) !== "store")).toEqual([]);
  });

  it("do not say outside the store which database it is", () => {
    expect(matches(/Sqlite/, (file) => moduleOf(file) !== "store")).toEqual([]);
  });

  it("import packages only where these belong", () => {
    const wrong = imports.filter(({ file, specifier }) => {
      const name = packageOf(specifier);
      const owners = OWNERS[name] ?? OWNERS[`${name.split("/")[0]}/*`];
      return owners?.some((owner) => file === `${owner}.ts` || file.startsWith(`${owner}/`)) === false;
    });
    expect(wrong.map(({ file, specifier }) => `${file} imports ${specifier}`)).toEqual([]);
  });

  it("leave appending, folding, reading whole and following of journals to the journal itself", () => {
    const wrong = sources
      .filter(({ file }) => !["journal", "store", "testing"].includes(moduleOf(file) ?? ""))
      .flatMap(({ file, text }) =>
        ONLY_IN_THE_JOURNAL.flatMap(({ what, pattern, except }) =>
          pattern.test(text) && except?.test(file) !== true ? [`${file} ${what}`] : [],
        ),
      );
    expect(wrong).toEqual([]);
  });

  it("leave every wait of the kernel and the runtime to the ports that a simulation owns", () => {
    const waits =
      /\b(setTimeout|setImmediate|setInterval|queueMicrotask|nextTick|Date\.now|performance\.now|Math\.random)\b/;
    expect(matches(waits, (file) => OWNED_WAITS.test(file))).toEqual([]);
  });

  it("keep the pure parts free of clocks, chance and input", () => {
    const impure =
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|from "node:(?!util)|\bfetch\(|\bsetTimeout\b/;
    expect(matches(impure, (file) => PURE.some((pure) => pure.test(file)))).toEqual([]);
  });

  it("that run in browsers load nothing of Node's", () => {
    const loads = graphOf(
      imports
        .filter(({ typeOnly }) => !typeOnly)
        .map(({ file, target, specifier }) => [file, target ?? specifier] as const),
    );
    const wrong = BROWSER.filter((entry) => known.has(entry)).flatMap((entry) => {
      const seen = new Set([entry]);
      for (const file of seen) for (const next of loads.get(file) ?? []) seen.add(next);
      return [...seen].filter((each) => each.startsWith("node:")).map((each) => `${entry} loads ${each}`);
    });
    expect(wrong).toEqual([]);
  });
});
