/** Settings of a server that is made in code: what the program gives, and the defaults of a server for the rest. */
import {
  isRecord,
  type ModuleSettings,
  type ReadSetting,
  readDeclared,
  type Setting,
  type SettingDeclarations,
} from "../base/index.js";
import { badConfig, type ConfigProblem } from "../settings/index.js";
import { catalog, type Settings } from "./catalog.js";

/** A part of the settings, by module, as TypeScript values: milliseconds and bytes are numbers. */
export type PartialSettings = { readonly [Module in keyof Settings]?: DeepPartial<Settings[Module]> };

type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [Key in keyof T]?: DeepPartial<T[Key]> | undefined }
    : T;

/** Values of extensions that are not in the catalog, by the extension's name. */
export type ExtensionSettings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ResolvedSettings {
  readonly settings: Settings;
  /** The values of an extension, from the same settings. Their type is known only where it was defined. */
  readonly valuesFor: ValuesFor;
}

type ValuesFor = (name: string, module: ModuleSettings | undefined) => never;

export function resolveSettings(given: PartialSettings & ExtensionSettings = {}): ResolvedSettings {
  const values = new Map<string, unknown>();
  for (const [name, { declarations }] of Object.entries(catalog.modules))
    collect(declarations, given[name], values);
  const read = reader(values);
  for (const module of Object.values(catalog.modules)) check(module, read);
  return { settings: readModules(read), valuesFor: extensionValues(given, values) };
}

function extensionValues(given: ExtensionSettings, values: ReadonlyMap<string, unknown>): ValuesFor;
function extensionValues(given: ExtensionSettings, values: ReadonlyMap<string, unknown>): object {
  return (name: string, module: ModuleSettings | undefined) => {
    if (module === undefined) return {};
    const own = new Map(values);
    if (!(name in catalog.modules)) collect(module.declarations, given[name], own);
    const read = reader(own);
    check(module, read);
    return readDeclared(module.declarations, read);
  };
}

/** @throws MailroomError `bad_config` for values that contradict each other */
function check(module: ModuleSettings, read: ReadSetting): void {
  const problems: ConfigProblem[] = [];
  module.check?.(readDeclared(module.declarations, read), (key, message, hint) => {
    problems.push({ key, message, hint });
  });
  if (problems.length > 0) throw badConfig(problems);
}

function reader(values: ReadonlyMap<string, unknown>): ReadSetting {
  const read: ReadSetting = (setting) =>
    values.has(setting.key) ? givenValue(setting, values) : setting.defaultValue(read);
  return read;
}

function readModules(read: ReadSetting): Settings;
function readModules(read: ReadSetting): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(catalog.modules).map(([name, { declarations }]) => [
      name,
      readDeclared(declarations, read),
    ]),
  );
}

/** The type of a given value was checked where it was written. */
function givenValue<T>(setting: Setting<T>, values: ReadonlyMap<string, unknown>): T;
function givenValue(setting: Setting<unknown>, values: ReadonlyMap<string, unknown>): unknown {
  return values.get(setting.key);
}

function collect(declarations: SettingDeclarations, given: unknown, into: Map<string, unknown>): void {
  if (!isRecord(given)) return;
  for (const [name, declared] of Object.entries(declarations)) {
    const value = given[name];
    if (value === undefined) continue;
    if (isSetting(declared)) into.set(declared.key, value);
    else collect(declared, value, into);
  }
}

function isSetting(declared: Setting<unknown> | SettingDeclarations): declared is Setting<unknown> {
  return typeof declared.key === "string";
}
