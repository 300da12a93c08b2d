/** Reads declarations and their doc comments from the sources, for the generated pages of `docs/`. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Comment, Directive, Statement } from "oxc-parser";
import { parseSync } from "oxc-parser";

export const SRC = fileURLToPath(new URL("../src", import.meta.url));

export interface Doc {
  /** Without tags. */
  readonly text: string;
  readonly tags: readonly { readonly name: string; readonly text: string }[];
}

export interface Declaration {
  readonly file: SourceFile;
  readonly name: string;
  /** The declaration without `export`. */
  readonly node: Node;
  readonly doc: Doc | undefined;
}

type Node = Exclude<Statement | Directive, { type: "ExportNamedDeclaration" }>;

interface Span {
  readonly start: number;
  readonly end: number;
}

export class SourceFile {
  readonly path: string;
  readonly text: string;
  readonly #comments: readonly Comment[];
  readonly #declared = new Map<string, { node: Node; doc: Doc | undefined }[]>();
  /** Where names come from that are imported or exported again. */
  readonly #origins = new Map<string, { file: string; name: string }>();
  readonly #all: string[] = [];

  constructor(path: string) {
    this.path = path;
    this.text = readFileSync(path, "utf8");
    const { program, comments } = parseSync(path, this.text);
    this.#comments = comments;
    for (const statement of program.body) this.#add(statement);
  }

  /** The names that it exports by name. */
  exportedNames(): string[] {
    return parseSync(this.path, this.text)
      .module.staticExports.flatMap(({ entries }) => entries)
      .flatMap(({ exportName }) => exportName.name ?? []);
  }

  /** All declarations of a name: overloads, or a value and a type. */
  find(name: string): Declaration[] {
    const here = this.#declared.get(name);
    if (here !== undefined) return here.map((each) => ({ ...each, file: this, name }));
    const origin = this.#origins.get(name);
    if (origin !== undefined) return read(origin.file).find(origin.name);
    return this.#all.flatMap((file) => read(file).find(name));
  }

  /** The doc comment directly before a node. */
  docOf(node: Span): Doc | undefined {
    const comment = this.#comments.findLast(({ end }) => end <= node.start);
    if (comment?.type !== "Block" || !comment.value.startsWith("*")) return undefined;
    return /^\s*$/.test(this.text.slice(comment.end, node.start)) ? parseDoc(comment.value) : undefined;
  }

  slice({ start, end }: Span): string {
    return this.text.slice(start, end);
  }

  #add(statement: Statement | Directive): void {
    switch (statement.type) {
      case "ImportDeclaration":
        for (const { type, local, ...rest } of statement.specifiers) {
          if (type !== "ImportSpecifier" || !("imported" in rest)) continue;
          this.#origin(local.name, statement.source.value, nameOf(rest.imported));
        }
        break;
      case "ExportAllDeclaration": {
        const file = this.#resolve(statement.source.value);
        if (file !== undefined) this.#all.push(file);
        break;
      }
      case "ExportNamedDeclaration": {
        if (statement.declaration !== null) this.#declare(statement.declaration, this.docOf(statement));
        for (const { local, exported } of statement.specifiers) {
          const [from, to] = [nameOf(local), nameOf(exported)];
          if (statement.source !== null) this.#origin(to, statement.source.value, from);
          else if (from !== to) this.#origins.set(to, { file: this.path, name: from });
        }
        break;
      }
      default:
        this.#declare(statement, this.docOf(statement));
    }
  }

  #declare(node: Node, doc: Doc | undefined): void {
    for (const name of declaredNames(node)) {
      this.#declared.set(name, [...(this.#declared.get(name) ?? []), { node, doc }]);
    }
  }

  #origin(local: string, specifier: string, name: string): void {
    const file = this.#resolve(specifier);
    if (file !== undefined) this.#origins.set(local, { file, name });
  }

  #resolve(specifier: string): string | undefined {
    if (!specifier.startsWith(".")) return undefined;
    const path = resolve(dirname(this.path), specifier).replace(/\.js$/, ".ts");
    return existsSync(path) ? path : undefined;
  }
}

const files = new Map<string, SourceFile>();

function read(path: string): SourceFile {
  let file = files.get(path);
  if (file === undefined) {
    file = new SourceFile(path);
    files.set(path, file);
  }
  return file;
}

/** A file below `src/`. */
export function sourceFile(path: string): SourceFile {
  return read(join(SRC, path));
}

function declaredNames(node: Node): string[] {
  switch (node.type) {
    case "FunctionDeclaration":
    case "TSDeclareFunction":
    case "ClassDeclaration":
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
      return node.id === null ? [] : [node.id.name];
    case "VariableDeclaration":
      return node.declarations.flatMap(({ id }) => (id.type === "Identifier" ? [id.name] : []));
    default:
      return [];
  }
}

function nameOf(node: { type: string; name?: string; value?: string }): string {
  return node.name ?? node.value ?? "";
}

function parseDoc(comment: string): Doc {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*? ?/, "").trimEnd());
  const text: string[] = [];
  const tags: { name: string; lines: string[] }[] = [];
  for (const line of lines) {
    const tag = /^@(\w+) ?(.*)$/.exec(line);
    if (tag !== null) tags.push({ name: tag[1] ?? "", lines: [tag[2] ?? ""] });
    else (tags.at(-1)?.lines ?? text).push(line);
  }
  return {
    text: text.join("\n").trim(),
    tags: tags.map(({ name, lines: rest }) => ({ name, text: rest.join("\n").trim() })),
  };
}
