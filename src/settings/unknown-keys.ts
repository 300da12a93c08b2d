/** Finds names that are not settings: a mistyped name must not be ignored. */
import { didYouMean, nearest } from "../base/index.js";
import type { SettingRow } from "./catalog.js";
import type { ConfigProblem } from "./errors.js";
import type { ConfigFile } from "./file.js";

export interface KnownNames {
  readonly rows: readonly Pick<SettingRow, "key" | "env" | "aliases">[];
  readonly tables: ReadonlySet<string>;
  /** Other modules have tables and variables that are not known here. */
  readonly isOpen?: boolean;
}

export function unknownKeys(file: ConfigFile, { rows, tables, isOpen = false }: KnownNames): ConfigProblem[] {
  const settings = new Set(rows.flatMap(({ key, aliases }) => [key, ...aliases]));
  const problems: ConfigProblem[] = [];

  const walk = (table: object, prefix: string): void => {
    for (const [name, value] of Object.entries(table)) {
      const key = prefix + name;
      if (settings.has(key)) continue;
      const isTable = typeof value === "object" && value !== null && !Array.isArray(value);
      if (isOpen && isTable && prefix === "" && !tables.has(key)) continue;
      if (!tables.has(key)) problems.push(unknown(key));
      else if (!isTable) problems.push({ key, ...placeOf(key), message: `${key} must be a table` });
      else walk(value, `${key}.`);
    }
  };

  const placeOf = (key: string) => {
    const line = file.lines.get(key);
    return { place: line === undefined ? file.path : `${file.path}:${line}` };
  };

  const unknown = (key: string): ConfigProblem => {
    const hint = suggest(key, [...settings, ...tables]);
    return { key, ...placeOf(key), message: `unknown key '${key}'`, ...(hint === undefined ? {} : { hint }) };
  };

  walk(file.table, "");
  return problems;
}

/** A similar name in the same table; else in another table; else the names that exist. */
function suggest(key: string, all: readonly string[]): string | undefined {
  const dot = key.lastIndexOf(".");
  const [prefix, name] = [key.slice(0, dot + 1), key.slice(dot + 1)];
  const neighbors = all
    .filter((other) => other.startsWith(prefix) && !other.slice(prefix.length).includes("."))
    .map((other) => other.slice(prefix.length));
  if (nearest(name, neighbors) === undefined) {
    const leaves = new Map(all.map((other) => [other.slice(other.lastIndexOf(".") + 1), other]));
    const elsewhere = leaves.get(nearest(name, leaves.keys()) ?? "");
    if (elsewhere !== undefined) return `did you mean '${elsewhere}'?`;
  }
  return didYouMean(name, neighbors);
}

/** `MAILROOM_…` variables that no setting has. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: KnownNames,
): ConfigProblem[] {
  if (known.isOpen === true) return [];
  const variables = new Set(known.rows.flatMap((row) => row.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("MAILROOM_") && env[name] !== "" && env[name] !== undefined)
    .filter((name) => !variables.has(name))
    .map((name) => {
      const near = variableOfKey(name, known) ?? nearest(name, variables);
      return {
        place: name,
        message: "no setting has this environment variable",
        hint: near === undefined ? "see docs/configuration.md" : `did you mean '${near}'?`,
      };
    });
}

/** For `server.port` one expects `MAILROOM_SERVER_PORT`; the variables are shorter than that. */
function variableOfKey(name: string, { rows }: KnownNames): string | undefined {
  const row = rows.find(({ key }) => `MAILROOM_${key.replaceAll(".", "_").toUpperCase()}` === name);
  return row?.env.find((variable) => variable.startsWith("MAILROOM_"));
}
