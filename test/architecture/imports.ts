import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

/** An import of one file by another, in any form: `import`, `export … from`, `import()` or `import("…").T`. */
export interface Import {
  /** The importing file, relative to the root. */
  readonly file: string;
  readonly specifier: string;
  /** The imported file relative to the root; undefined for packages. */
  readonly target: string | undefined;
  /** Nothing of it is left at runtime. */
  readonly typeOnly: boolean;
  /** Loaded when the importing file is, not by `import()`. */
  readonly static: boolean;
}

export interface Source {
  readonly file: string;
  readonly text: string;
}

function* paths(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* paths(path);
    else if (/\.tsx?$/.test(entry.name) && !/\.test(-d)?\.tsx?$/.test(entry.name)) yield path;
  }
}

function portable(path: string): string {
  return path.replaceAll(sep, "/");
}

/** The files below `root` that are not tests. */
export function sourcesOf(root: string): Source[] {
  return [...paths(root)].sort().map((path) => ({
    file: portable(relative(root, path)),
    text: readFileSync(path, "utf8"),
  }));
}

function targetOf(root: string, file: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const path = resolve(root, dirname(file), specifier);
  const base = path.replace(/\.jsx?$/, "");
  const found = path === base ? path : [`${base}.ts`, `${base}.tsx`].find((each) => existsSync(each));
  return portable(relative(root, found ?? path));
}

export function importsOf(root: string, { file, text }: Source): Import[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean, isStatic = true) =>
    found.push({
      file,
      specifier,
      target: targetOf(root, file, specifier),
      typeOnly,
      static: isStatic,
    });
  for (const node of program.body) {
    // An import of inline types only (`import { type T }`) still loads the file: the compiler keeps the statement.
    if (node.type === "ImportDeclaration") add(node.source.value, node.importKind === "type");
    else if (
      (node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") &&
      node.source !== null
    )
      add(node.source.value, node.exportKind === "type");
  }
  if (/\bimport\s*\(/.test(text))
    new Visitor({
      ImportExpression(node) {
        if (node.source.type === "Literal" && typeof node.source.value === "string")
          add(node.source.value, false, false);
      },
      TSImportType(node) {
        add(node.source.value, true);
      },
    }).visit(program);
  return found;
}

/** The strongly connected components with more than one node (Tarjan), each sorted. */
export function cyclesOf(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const open = new Set<string>();
  const cycles: string[][] = [];
  function visit(node: string): number {
    const mine = index.size;
    let lowest = mine;
    index.set(node, mine);
    stack.push(node);
    open.add(node);
    for (const next of graph.get(node) ?? []) {
      const seen = index.get(next);
      if (seen === undefined) lowest = Math.min(lowest, visit(next));
      else if (open.has(next)) lowest = Math.min(lowest, low.get(next) ?? seen, seen);
    }
    low.set(node, lowest);
    if (lowest === mine) {
      const cycle = stack.splice(stack.indexOf(node));
      for (const each of cycle) open.delete(each);
      if (cycle.length > 1) cycles.push(cycle.sort());
    }
    return lowest;
  }
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return cycles;
}
