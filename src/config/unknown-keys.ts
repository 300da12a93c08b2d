/** Finds what was meant to be a setting and is none: a mistyped name must not be taken for a choice. */
import { didYouMean, nearest } from "../mail/swarm-file/suggest.js";
import type { SectionRow, SettingRow } from "./declare.js";
import type { ConfigProblem } from "./errors.js";
import type { ConfigFile } from "./file.js";

export interface KnownNames {
  readonly rows: readonly Pick<SettingRow, "key" | "env">[];
  readonly sections: readonly Pick<SectionRow, "key">[];
  readonly aliases: readonly string[];
}

export function unknownKeys(file: ConfigFile, known: KnownNames): ConfigProblem[] {
  const settings = new Set([...known.rows.map(({ key }) => key), ...known.aliases]);
  const sections = new Set(known.sections.map(({ key }) => key));
  const problems: ConfigProblem[] = [];

  const walk = (table: object, prefix: string): void => {
    for (const [name, value] of Object.entries(table)) {
      const key = prefix + name;
      if (settings.has(key)) continue;
      const isTable = typeof value === "object" && value !== null && !Array.isArray(value);
      if (!sections.has(key)) problems.push(unknown(key));
      else if (!isTable) problems.push({ key, ...placeOf(key), message: `${key} must be a table` });
      else walk(value, `${key}.`);
    }
  };

  const placeOf = (key: string) => {
    const line = file.lines.get(key);
    return { place: line === undefined ? file.path : `${file.path}:${line}` };
  };

  const unknown = (key: string): ConfigProblem => {
    const hint = suggest(key, [...settings, ...sections]);
    return { key, ...placeOf(key), message: `unknown key '${key}'`, ...(hint === undefined ? {} : { hint }) };
  };

  walk(file.table, "");
  return problems;
}

/** A neighbour with a similar name; else a key of that name in another table; else what there is. */
function suggest(key: string, all: readonly string[]): string | undefined {
  const dot = key.lastIndexOf(".");
  const [prefix, name] = [key.slice(0, dot + 1), key.slice(dot + 1)];
  const neighbours = all
    .filter((other) => other.startsWith(prefix) && !other.slice(prefix.length).includes("."))
    .map((other) => other.slice(prefix.length));
  if (nearest(name, neighbours) === undefined) {
    const leaves = new Map(all.map((other) => [other.slice(other.lastIndexOf(".") + 1), other]));
    const elsewhere = leaves.get(nearest(name, leaves.keys()) ?? "");
    if (elsewhere !== undefined) return `did you mean '${elsewhere}'?`;
  }
  return didYouMean(name, neighbours);
}

/** `MAILROOM_…` variables that no setting has. */
export function unknownVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: KnownNames,
): ConfigProblem[] {
  const variables = new Set(known.rows.flatMap((row) => row.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("MAILROOM_") && env[name] !== "" && env[name] !== undefined)
    .filter((name) => !variables.has(name))
    .map((name) => {
      const near = variableOfKey(name, known) ?? nearest(name, variables);
      return {
        place: name,
        message: "there is no setting with this environment variable",
        hint: near === undefined ? "docs/configuration.md lists those there are" : `did you mean '${near}'?`,
      };
    });
}

/** Of `server.port` one expects `MAILROOM_SERVER_PORT`; some of the variables are shorter than that. */
function variableOfKey(name: string, { rows }: KnownNames): string | undefined {
  const row = rows.find(({ key }) => `MAILROOM_${key.replaceAll(".", "_").toUpperCase()}` === name);
  return row?.env.find((variable) => variable.startsWith("MAILROOM_"));
}
