import { checkSettings } from "./check.js";
import type { Section, SectionRow, SettingRow } from "./declare.js";
import { ConfigError } from "./errors.js";
import { findConfigFile } from "./file.js";
import { SettingsReader, type Sources, valueAt } from "./reader.js";
import { declareSettings, RESERVED_TABLES, type Settings } from "./settings/index.js";
import { type KnownNames, unknownKeys, unknownVariables } from "./unknown-keys.js";

export interface Config<Values extends object = Settings> {
  readonly settings: Values;
  /** Every setting with its value and where that came from; no secrets. */
  readonly rows: readonly SettingRow[];
  /** The file that was read, if any. */
  readonly file: string | undefined;
  /** Tables of the file whose rooms have not declared their settings (see `extend`), as they stand there. */
  readonly reserved: Readonly<Record<string, unknown>>;
}

export interface LoadOptions<Extra extends object> {
  /** What the command line parser found, by its names (`swarmName`); `config` is the file to read. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `mail.toml` is looked for, and what paths are relative to. */
  readonly directory: string;
  /** Declares the tables of further rooms: `(root) => ({ mesh: root.section("mesh", "…", meshSettings) })`. */
  readonly extend?: (root: Section) => Extra;
}

/**
 * The configuration in force: flags before environment before file before defaults.
 * @throws ConfigError (code `bad_config`) with everything that is wrong.
 */
export function loadConfig<Extra extends object = object>(
  options: LoadOptions<Extra>,
): Config<Settings & Extra> {
  const { flags = {}, env, directory, extend } = options;
  const named = flags.config;
  const file = findConfigFile({ flag: typeof named === "string" ? named : undefined, env, directory });
  const reader = new SettingsReader({ flags, env, file, directory });
  const settings = declareSettings(reader);
  const extra = extend?.(reader);
  const known = knownNames(reader);
  const wrong = [...reader.problems, ...(file === undefined ? [] : unknownKeys(file, known))];
  wrong.push(...unknownVariables(env, known));
  const sources = new Map(reader.rows.map(({ key, source }) => [key, source]));
  // Only once each value is in order: a default that stands in for a bad one would give false alarms.
  if (wrong.length === 0)
    wrong.push(...checkSettings(settings, (key) => sources.get(key) ?? { from: "default" }));
  if (wrong.length > 0) throw new ConfigError(wrong);
  const reserved = known.reserved.map((name) => [name, valueAt(file?.table, name)] as const);
  return {
    settings: Object.assign(settings, extra),
    rows: reader.rows,
    file: file?.path,
    reserved: Object.fromEntries(reserved.filter(([, table]) => table !== undefined)),
  };
}

function knownNames({ rows, sections, aliases }: SettingsReader): KnownNames {
  const declared = new Set(sections.map(({ key }) => key));
  return { rows, sections, aliases, reserved: RESERVED_TABLES.filter((name) => !declared.has(name)) };
}

/** Every setting and table there is, with the defaults in force. */
export function describeSettings(extend?: (root: Section) => unknown): {
  readonly rows: readonly SettingRow[];
  readonly sections: readonly SectionRow[];
} {
  const nothing: Sources = { flags: {}, env: {}, file: undefined, directory: "." };
  const reader = new SettingsReader(nothing);
  declareSettings(reader);
  extend?.(reader);
  return { rows: reader.rows, sections: reader.sections };
}
