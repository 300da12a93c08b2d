/** The value of one setting: flags before environment before file before default. */
import { dirname, resolve } from "node:path";
import type { ReadSetting, Setting } from "../base/index.js";
import type { ConfigProblem } from "./errors.js";
import type { ConfigFile } from "./file.js";
import { formatSource, type Source } from "./source.js";

export interface Sources {
  /** By commander's names: `swarmName` for `--swarm-name`. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | undefined;
  /** The base of relative paths in flags and the environment. */
  readonly directory: string;
}

export interface Resolved<T> {
  readonly value: T;
  readonly default: T;
  readonly source: Source;
  readonly problems: readonly ConfigProblem[];
  /** Old names in use. */
  readonly warnings: readonly ConfigProblem[];
}

/** A value before it is checked. */
interface RawValue {
  readonly raw: unknown;
  readonly source: Source;
  readonly directory: string;
  readonly problems?: readonly ConfigProblem[];
  /** The old key or variable that was used. */
  readonly renamed?: string;
}

const SHOWN_LENGTH = 60;

/** A bad value is a problem, not an exception: the default stands in for it, so that all problems are found. */
export function resolveSetting<T>(setting: Setting<T>, sources: Sources): Resolved<T> {
  const read: ReadSetting = (other) => resolveSetting(other, sources).value;
  const fallback = setting.defaultValue(read);
  const given =
    fromFlags(setting, sources) ?? fromEnvironment(setting, sources) ?? fromFile(setting, sources);
  if (given === undefined) {
    return { value: fallback, default: fallback, source: { from: "default" }, problems: [], warnings: [] };
  }
  const { source, renamed } = given;
  const problems = [...(given.problems ?? [])];
  const warnings =
    renamed === undefined
      ? []
      : [{ key: setting.key, place: formatSource(source), message: `${renamed} is now ${setting.key}` }];
  if (given.raw === undefined) return { value: fallback, default: fallback, source, problems, warnings };
  const parsed = setting.kind.parse(given.raw);
  if ("value" in parsed) {
    const absolute = (path: string) => resolve(given.directory, path);
    const value = setting.kind.resolve?.(parsed.value, absolute) ?? parsed.value;
    return { value, default: fallback, source, problems, warnings };
  }
  problems.push({
    key: setting.key,
    place: formatSource(source),
    message: rejection(setting, given.raw, parsed.problem),
  });
  return { value: fallback, default: fallback, source, problems, warnings };
}

function rejection(
  { key, kind, secret }: Setting<unknown>,
  raw: unknown,
  reason: string | undefined,
): string {
  if (reason !== undefined) return `${key} ${reason}`;
  return `${key} must be ${kind.name}${secret === true ? "" : `, not ${shorten(raw)}`}`;
}

function fromFlags({ flag, kind }: Setting<unknown>, { flags, directory }: Sources): RawValue | undefined {
  const [name, other] = (flag?.names ?? []).filter((one) => flags[attributeOf(one)] !== undefined);
  if (name === undefined) return undefined;
  const value = flags[attributeOf(name)];
  return {
    raw: typeof value === "string" ? kind.fromText(value) : value,
    source: { from: "flag", flag: name },
    directory,
    ...(other !== undefined && {
      problems: [{ place: other, message: `means the same as ${name}: use only one of them` }],
    }),
  };
}

function fromEnvironment(setting: Setting<unknown>, { env, directory }: Sources): RawValue | undefined {
  const old = (setting.renamedFrom ?? []).map(variableOf);
  for (const variable of variablesOf(setting)) {
    const value = env[variable];
    // Containers unset a variable by setting it to nothing.
    if (value === undefined || value === "") continue;
    return {
      raw: setting.kind.fromText(value),
      source: { from: "environment", variable },
      directory,
      ...(old.includes(variable) && { renamed: variable }),
    };
  }
  return undefined;
}

/** Every variable that sets it, in order of precedence. */
export function variablesOf({ key, aliases = [], renamedFrom = [], env = [] }: Setting<unknown>): string[] {
  return [...[key, ...aliases].map(variableOf), ...env, ...renamedFrom.map(variableOf)];
}

function fromFile(setting: Setting<unknown>, sources: Sources): RawValue | undefined {
  const { file } = sources;
  if (file === undefined) return undefined;
  const { key, aliases = [], renamedFrom = [], secret } = setting;
  const [written, other] = [key, ...aliases, ...renamedFrom].filter(
    (name) => valueAt(file.table, name) !== undefined,
  );
  if (written === undefined) return undefined;
  const source = sourceIn(file, written);
  const problems: ConfigProblem[] = [];
  if (other !== undefined) {
    problems.push({
      key,
      place: formatSource(sourceIn(file, other)),
      message: `${other} means the same as ${written}: use only one of them`,
    });
  }
  const raw = valueAt(file.table, written);
  const variable = secret === true && typeof raw === "string" ? /^\$\{(\w+)\}$/.exec(raw)?.[1] : undefined;
  const value = variable === undefined ? raw : sources.env[variable] || undefined;
  if (value === undefined) {
    problems.push({
      key,
      place: formatSource(source),
      message: `${key} refers to the environment variable ${variable}, which is not set`,
    });
  }
  return {
    raw: value,
    source,
    directory: dirname(file.path),
    problems,
    ...(renamedFrom.includes(written) && { renamed: written }),
  };
}

function sourceIn(file: ConfigFile, key: string): Source {
  const line = file.lines.get(key);
  return { from: "file", file: file.path, ...(line === undefined ? {} : { line }) };
}

function valueAt(table: unknown, key: string): unknown {
  let value = table;
  for (const name of key.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.getOwnPropertyDescriptor(value, name)?.value;
  }
  return value;
}

function shorten(raw: unknown): string {
  const text = JSON.stringify(raw) ?? String(raw);
  return text.length <= SHOWN_LENGTH ? text : `${text.slice(0, SHOWN_LENGTH)}…`;
}

/** `server.swarm.name` is MAILROOM_SWARM_NAME, `auth.jwt.issuer` MAILROOM_AUTH_JWT_ISSUER. */
function variableOf(key: string): string {
  const short = key.replace(/^server\.(settings\.)?/, "");
  return `MAILROOM_${short.replaceAll(".", "_").toUpperCase()}`;
}

/** The property that commander uses for a flag: `swarmName` for `--swarm-name`. */
function attributeOf(flag: string): string {
  return flag.replace(/^--/, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
