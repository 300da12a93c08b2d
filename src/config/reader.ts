import { dirname } from "node:path";
import {
  attributeOf,
  type Section,
  type SectionRow,
  type SettingRow,
  type SettingSpec,
  variableOf,
} from "./declare.js";
import type { ConfigProblem } from "./errors.js";
import type { ConfigFile } from "./file.js";
import { formatSource, type Source } from "./source.js";

export interface Sources {
  /** By the names that a command line parser gives them: `swarmName` for `--swarm-name`. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | undefined;
  /** What paths from flags and the environment are relative to. */
  readonly directory: string;
}

/** A value that somebody gave, not yet looked at. */
interface Given {
  readonly raw: unknown;
  readonly source: Source;
  readonly directory: string;
}

const MASK = "********";
const SHOWN_LENGTH = 60;

/** Runs a declaration against the sources. Notes problems instead of throwing, so that all of them are found. */
export class SettingsReader implements Section {
  readonly rows: SettingRow[] = [];
  readonly sections: SectionRow[] = [];
  readonly problems: ConfigProblem[] = [];
  /** Names that keys have in the file beside their own. */
  readonly aliases: string[] = [];
  readonly #sources: Sources;
  readonly #prefix: string;

  constructor(sources: Sources, parent?: { readonly reader: SettingsReader; readonly prefix: string }) {
    this.#sources = sources;
    this.#prefix = parent?.prefix ?? "";
    if (parent !== undefined) {
      this.rows = parent.reader.rows;
      this.sections = parent.reader.sections;
      this.problems = parent.reader.problems;
      this.aliases = parent.reader.aliases;
    }
  }

  setting<T>(name: string, spec: SettingSpec<T> & { readonly default: NoInfer<T> }): T {
    return this.#read(name, spec, spec.default) ?? spec.default;
  }

  optional<T>(name: string, spec: SettingSpec<T>): T | undefined {
    return this.#read(name, spec, undefined);
  }

  section<V>(name: string, doc: string, read: (section: Section) => V): V {
    const key = this.#prefix + name;
    this.sections.push({ key, doc });
    return read(new SettingsReader(this.#sources, { reader: this, prefix: `${key}.` }));
  }

  /** The value in force. A value that is no good is a problem, and the default stands in for it. */
  #read<T>(name: string, spec: SettingSpec<T>, fallback: T | undefined): T | undefined {
    const key = this.#prefix + name;
    const env = [variableOf(key), ...(spec.env ?? [])];
    this.aliases.push(...(spec.aliases ?? []).map((alias) => this.#prefix + alias));
    const given = this.#fromFlags(spec) ?? this.#fromEnvironment(env, spec) ?? this.#fromFile(key, spec);
    const value = given === undefined ? fallback : (this.#parse(key, spec, given) ?? fallback);
    const show = (one: T | undefined) => (one === undefined ? undefined : spec.kind.show(one));
    const shown = show(value);
    this.rows.push({
      key,
      doc: spec.doc,
      kind: spec.kind.brief,
      // A default stands in the documentation: it is no secret, and it tells that nothing was set.
      value: spec.secret === true && shown !== show(fallback) ? MASK : shown,
      default: spec.otherwise ?? show(fallback),
      source: given?.source ?? { from: "default" },
      secret: spec.secret === true,
      env,
      ...(spec.flag === undefined ? {} : { flag: spec.flag }),
    });
    return value;
  }

  #fromFlags<T>(spec: SettingSpec<T>): Given | undefined {
    const { flags, directory } = this.#sources;
    const named = (spec.flag?.names ?? []).filter((flag) => flags[attributeOf(flag)] !== undefined);
    const [flag, other] = named;
    if (flag === undefined) return undefined;
    if (other !== undefined)
      this.problems.push({ place: other, message: `means the same as ${flag}: give one` });
    const value = flags[attributeOf(flag)];
    return {
      raw: typeof value === "string" ? spec.kind.fromText(value) : value,
      source: { from: "flag", flag },
      directory,
    };
  }

  #fromEnvironment<T>(variables: readonly string[], spec: SettingSpec<T>): Given | undefined {
    const { env, directory } = this.#sources;
    for (const variable of variables) {
      const value = env[variable];
      // Set to nothing is how containers unset a variable.
      if (value === undefined || value === "") continue;
      return { raw: spec.kind.fromText(value), source: { from: "environment", variable }, directory };
    }
    return undefined;
  }

  #fromFile<T>(key: string, spec: SettingSpec<T>): Given | undefined {
    const { file } = this.#sources;
    if (file === undefined) return undefined;
    const names = [key, ...(spec.aliases ?? []).map((alias) => this.#prefix + alias)];
    const [written, other] = names.filter((name) => valueAt(file.table, name) !== undefined);
    if (written === undefined) return undefined;
    const source = sourceIn(file, written);
    if (other !== undefined) {
      this.problems.push({
        key,
        place: formatSource(sourceIn(file, other)),
        message: `${other} means the same as ${written}: give one`,
      });
    }
    const raw = valueAt(file.table, written);
    return {
      raw: spec.secret === true ? this.#dereference(key, raw, source) : raw,
      source,
      directory: dirname(file.path),
    };
  }

  /** Decisions C7: a secret in the file is best a reference to the environment. */
  #dereference(key: string, raw: unknown, source: Source): unknown {
    const variable = typeof raw === "string" ? /^\$\{(\w+)\}$/.exec(raw)?.[1] : undefined;
    if (variable === undefined) return raw;
    const value = this.#sources.env[variable];
    if (value !== undefined && value !== "") return value;
    this.problems.push({
      key,
      place: formatSource(source),
      message: `${key} refers to the environment variable ${variable}, which is not set`,
    });
    return undefined;
  }

  #parse<T>(key: string, spec: SettingSpec<T>, { raw, source, directory }: Given): T | undefined {
    if (raw === undefined) return undefined;
    const parsed = spec.kind.schema.safeParse(raw);
    if (parsed.success) return spec.kind.resolve?.(parsed.data, directory) ?? parsed.data;
    // A kind's own words are more precise than what it must be in general.
    const own = parsed.error.issues.find(
      (issue) => issue.code === "custom" && issue.message !== "Invalid input",
    );
    const shown = spec.secret === true || own !== undefined ? "" : `, not ${shorten(raw)}`;
    this.problems.push({
      key,
      place: formatSource(source),
      message: own === undefined ? `${key} must be ${spec.kind.name}${shown}` : `${key} ${own.message}`,
    });
    return undefined;
  }
}

function sourceIn(file: ConfigFile, key: string): Source {
  const line = file.lines.get(key);
  return { from: "file", file: file.path, ...(line === undefined ? {} : { line }) };
}

export function valueAt(table: unknown, key: string): unknown {
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
