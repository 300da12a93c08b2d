import { parse } from "smol-toml";

/**
 * The line of each key of a TOML document, by its path with dots. The parser does not report lines, so the document is
 * split into statements, each of which is parsed by itself.
 *
 * The document must parse: then every statement ends at the end of a line, and the first lines that parse together are
 * one statement.
 */
export function keyLines(document: string): ReadonlyMap<string, number> {
  const lines = document.replace(/^\uFEFF/, "").split(/\r?\n/);
  const found = new Map<string, number>();
  let table = "";
  for (let first = 0; first < lines.length; ) {
    let statement = lines[first] ?? "";
    let next = first + 1;
    let parsed = tryParse(statement);
    while (parsed === undefined && next < lines.length) {
      statement += `\n${lines[next]}`;
      next += 1;
      parsed = tryParse(statement);
    }
    const isHeader = statement.trimStart().startsWith("[");
    const paths = pathsOf(parsed, isHeader ? "" : table);
    for (const path of paths) if (!found.has(path)) found.set(path, first + 1);
    if (isHeader) table = paths.at(-1) ?? "";
    first = next;
  }
  return found;
}

function tryParse(statement: string): unknown {
  try {
    return parse(statement);
  } catch {
    return undefined;
  }
}

function pathsOf(value: unknown, prefix: string): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    // `[[table]]`: an array of one table.
    return Array.isArray(value) ? pathsOf(value[0], prefix) : [];
  }
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    return [path, ...pathsOf(inner, path)];
  });
}
