import { type ReadSetting, readDeclared, settingsIn } from "../base/index.js";
import {
  type CatalogValues,
  type SettingRow,
  type SettingsCatalog,
  settingRows,
  tablesOf,
} from "./catalog.js";
import { badConfig, type ConfigProblem } from "./errors.js";
import { findConfigFile } from "./file.js";
import { resolveSetting, type Sources } from "./resolve.js";
import { formatSource } from "./source.js";
import { unknownKeys, unknownVariables } from "./unknown-keys.js";

export interface LoadedSettings<Values> {
  readonly settings: Values;
  /** Every setting with its value and where that came from; no secrets. */
  readonly rows: readonly SettingRow[];
  /** The file that was read, if any. */
  readonly file: string | undefined;
  /** Names that still work and should be replaced. */
  readonly warnings: readonly ConfigProblem[];
}

export interface LoadOptions {
  /** What commander found, by its names (`swarmName`); `config` is the file to read. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `mail.toml` is searched, and the base of relative paths. */
  readonly directory: string;
}

/**
 * The settings in force: flags before environment before file before defaults.
 * @throws MailroomError `bad_config` with every problem.
 */
export function loadSettings<C extends SettingsCatalog>(
  catalog: C,
  { flags = {}, env, directory }: LoadOptions,
): LoadedSettings<CatalogValues<C>> {
  const named = flags.config;
  const file = findConfigFile({ flag: typeof named === "string" ? named : undefined, env, directory });
  const sources = { flags, env, file, directory };
  const rows = settingRows(catalog, sources);
  const resolved = allSettings(catalog).map((setting) => resolveSetting(setting, sources));
  const read: ReadSetting = (setting) => resolveSetting(setting, sources).value;
  const known = { rows, tables: tablesOf(catalog), isOpen: catalog.isOpen?.(read) ?? false };
  const problems = [
    ...resolved.flatMap((one) => one.problems),
    ...(file === undefined ? [] : unknownKeys(file, known)),
    ...unknownVariables(env, known),
  ];
  // Only valid values are compared: a default in place of a bad value would raise false alarms.
  if (problems.length === 0) problems.push(...contradictions(catalog, sources));
  if (problems.length > 0) throw badConfig(problems);
  return {
    settings: readCatalog(catalog, sources),
    rows,
    file: file?.path,
    warnings: resolved.flatMap((one) => one.warnings),
  };
}

function allSettings({ modules }: SettingsCatalog) {
  return Object.values(modules).flatMap(({ declarations }) => settingsIn(declarations));
}

/** The values by module, in the shape of the declarations. */
function readCatalog<C extends SettingsCatalog>(catalog: C, sources: Sources): CatalogValues<C>;
function readCatalog({ modules }: SettingsCatalog, sources: Sources): Readonly<Record<string, unknown>> {
  const read: ReadSetting = (setting) => resolveSetting(setting, sources).value;
  return Object.fromEntries(
    Object.entries(modules).map(([name, { declarations }]) => [name, readDeclared(declarations, read)]),
  );
}

/** What the modules' own checks find. */
function contradictions({ modules }: SettingsCatalog, sources: Sources): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const read: ReadSetting = (setting) => resolveSetting(setting, sources).value;
  for (const { declarations, check } of Object.values(modules)) {
    const settings = settingsIn(declarations);
    check?.(readDeclared(declarations, read), (key, message, hint) => {
      const setting = settings.find((one) => one.key === key);
      const source = setting === undefined ? undefined : resolveSetting(setting, sources).source;
      const place = source === undefined || source.from === "default" ? {} : { place: formatSource(source) };
      problems.push({ key, ...place, message, hint });
    });
  }
  return problems;
}
