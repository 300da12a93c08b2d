import { checkSettings } from "./check.js";
import type { SectionRow, SettingRow } from "./declare.js";
import { ConfigError } from "./errors.js";
import { findConfigFile } from "./file.js";
import { SettingsReader, type Sources } from "./reader.js";
import { declareSettings, type Settings } from "./settings/index.js";
import { unknownKeys, unknownVariables } from "./unknown-keys.js";

export interface Config {
  readonly settings: Settings;
  /** Every setting with its value and where that came from; no secrets. */
  readonly rows: readonly SettingRow[];
  /** The file that was read, if any. */
  readonly file: string | undefined;
}

export interface LoadOptions {
  /** What the command line parser found, by its names (`swarmName`); `config` is the file to read. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `mail.toml` is looked for, and what paths are relative to. */
  readonly directory: string;
}

/**
 * The configuration in force: flags before environment before file before defaults.
 * @throws ConfigError (code `bad_config`) with everything that is wrong.
 */
export function loadConfig({ flags = {}, env, directory }: LoadOptions): Config {
  const named = flags.config;
  const file = findConfigFile({ flag: typeof named === "string" ? named : undefined, env, directory });
  const reader = new SettingsReader({ flags, env, file, directory });
  const settings = declareSettings(reader);
  const wrong = [...reader.problems, ...(file === undefined ? [] : unknownKeys(file, reader))];
  wrong.push(...unknownVariables(env, reader));
  const sources = new Map(reader.rows.map(({ key, source }) => [key, source]));
  // Only once each value is in order: a default that stands in for a bad one would give false alarms.
  if (wrong.length === 0)
    wrong.push(...checkSettings(settings, (key) => sources.get(key) ?? { from: "default" }));
  if (wrong.length > 0) throw new ConfigError(wrong);
  return { settings, rows: reader.rows, file: file?.path };
}

/** Every setting and table there is, with the defaults in force. */
export function describeSettings(): {
  readonly rows: readonly SettingRow[];
  readonly sections: readonly SectionRow[];
} {
  const nothing: Sources = { flags: {}, env: {}, file: undefined, directory: "." };
  const reader = new SettingsReader(nothing);
  declareSettings(reader);
  return { rows: reader.rows, sections: reader.sections };
}
