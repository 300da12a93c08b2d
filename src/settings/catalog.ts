/** All settings of a program: what each module declared, and what the tables of `mail.toml` are for. */
import {
  type Flag,
  type FlagCommand,
  type ModuleSettings,
  type ReadSetting,
  type Setting,
  type SettingValues,
  settingsIn,
} from "../base/index.js";
import { resolveSetting, type Sources, variablesOf } from "./resolve.js";
import { formatSource, type Source } from "./source.js";

export interface SettingsCatalog<
  Modules extends Readonly<Record<string, ModuleSettings>> = Readonly<Record<string, ModuleSettings>>,
> {
  readonly modules: Modules;
  /** Descriptions of the tables, in the order of the documentation. */
  readonly tables: Readonly<Record<string, string>>;
  /** Whether modules that are not in the catalog have tables and variables too. */
  isOpen?(read: ReadSetting): boolean;
}

export type CatalogValues<C extends SettingsCatalog> = {
  readonly [Name in keyof C["modules"]]: SettingValues<C["modules"][Name]>;
};

/** A setting, its value in force and where that came from. Contains no secret. */
export interface SettingRow {
  /** As in the file, with dots: `server.port`. */
  readonly key: string;
  readonly doc: string;
  /** What the value is, in a word or two. */
  readonly kind: string;
  /** As people read it; masked if it is secret, absent if it is not set. */
  readonly value: string | undefined;
  readonly default: string | undefined;
  readonly source: Source;
  readonly secret: boolean;
  /** Variables in order of precedence. */
  readonly env: readonly string[];
  readonly flag?: Flag;
  /** Other keys that are accepted, old ones last. */
  readonly aliases: readonly string[];
}

const MASK = "********";

const NO_SOURCES: Sources = { flags: {}, env: {}, file: undefined, directory: "." };

/** Every setting, by table. */
export function settingRows(
  { modules, tables }: SettingsCatalog,
  sources: Sources = NO_SOURCES,
): SettingRow[] {
  const order = new Map(Object.keys(tables).map((table, index) => [table, index]));
  const position = ({ key }: SettingRow) => order.get(tableOf(key)) ?? order.size;
  return Object.values(modules)
    .flatMap(({ declarations }) => settingsIn(declarations))
    .map((setting): SettingRow => {
      const { key, doc, kind, flag, secret = false, defaultText, aliases = [], renamedFrom = [] } = setting;
      const resolved = resolveSetting(setting, sources);
      const show = (value: unknown) => (value === undefined ? undefined : kind.show(value));
      const [value, standard] = [show(resolved.value), show(resolved.default)];
      return {
        key,
        doc,
        kind: kind.brief,
        // The default is documented, so it is no secret, and it shows that nothing was set.
        value: secret && value !== standard ? MASK : value,
        default: defaultText ?? standard,
        source: resolved.source,
        secret,
        env: variablesOf(setting),
        ...(flag !== undefined && { flag }),
        aliases: [...aliases, ...renamedFrom],
      };
    })
    .sort((a, b) => position(a) - position(b));
}

/** Every table that has a setting or a description. */
export function tablesOf({ modules, tables }: SettingsCatalog): Set<string> {
  const found = new Set(Object.keys(tables));
  for (const { declarations } of Object.values(modules)) {
    for (const { key } of settingsIn(declarations)) {
      for (let table = tableOf(key); table !== ""; table = tableOf(table)) found.add(table);
    }
  }
  return found;
}

export function tableOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf(".")));
}

export interface FlagRow extends Flag {
  readonly key: string;
  readonly doc: string;
  readonly default: string | undefined;
}

/** The flags of a command. */
export function settingFlags({ modules }: SettingsCatalog, command: FlagCommand): FlagRow[] {
  return Object.values(modules)
    .flatMap(({ declarations }) => settingsIn(declarations))
    .flatMap((setting) => flagOf(setting) ?? [])
    .filter(({ commands }) => commands?.includes(command));
}

/** The flag of a setting, if it has one. */
export function flagOf(setting: Setting<unknown>): FlagRow | undefined {
  const { key, doc, kind, flag, defaultText } = setting;
  if (flag === undefined) return undefined;
  const standard = resolveSetting(setting, NO_SOURCES).default;
  return {
    ...flag,
    key,
    doc,
    default: defaultText ?? (standard === undefined ? undefined : kind.show(standard)),
  };
}
export interface ExplainedSetting {
  readonly key: string;
  /** As people read it; secrets are masked, and the value of an unset one is empty. */
  readonly value: string;
  /** `--port`, `MAILROOM_PORT`, `/srv/mail.toml:3` or `default`. */
  readonly source: string;
}

/** The values in force and where each came from, for `mailroom config`. */
export function explainSettings({ rows }: { readonly rows: readonly SettingRow[] }): ExplainedSetting[] {
  return rows.map(({ key, value, source }) => ({ key, value: value ?? "", source: formatSource(source) }));
}
