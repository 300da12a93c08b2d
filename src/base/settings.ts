/**
 * How a module declares its settings: key, kind, default, flag, variables and documentation, once. Flags, environment,
 * `mail.toml`, `docs/configuration.md` and the defaults of the library all come from these declarations.
 */
import {
  anyTextKind,
  booleanKind,
  bytesKind,
  choiceKind,
  durationKind,
  httpUrlKind,
  integerKind,
  type Kind,
  listKind,
  pathKind,
  type Range,
  tableKind,
  textKind,
} from "./setting-kinds.js";

/** Commands that get the flags of every setting that names them. */
export type FlagCommand = "server" | "client";

export interface Flag {
  /** Long names; the first one is shown. */
  readonly names: readonly [string, ...string[]];
  /** One dash: a letter, or several as in the reference (`-rf`). */
  readonly short?: string;
  /** The value in help texts, such as `<port>`. Absent for a switch. */
  readonly value?: string;
  /** For lists: the flag may be given several times. */
  readonly repeatable?: boolean;
  /** Without any, the flag belongs to the commands that ask for this setting by itself. */
  readonly commands?: readonly FlagCommand[];
}

interface Description {
  /** For people: sentences, the first of which is also the help text of the flag. */
  readonly doc: string;
  readonly flag?: Flag;
  /** Variables read after the one that every setting has (`MAILROOM_…`). */
  readonly env?: readonly string[];
  /** Other keys that mean the same, such as the reference's. */
  readonly aliases?: readonly string[];
  /** Keys that this setting had before. They still work, with a warning. */
  readonly renamedFrom?: readonly string[];
  /** The value is never shown, and the file may hold `${VARIABLE}` instead of it. */
  readonly secret?: boolean;
  /** The default in words, where it depends on something else. */
  readonly defaultText?: string;
}

/** Reads the value of another setting. */
export type ReadSetting = <T>(setting: Setting<T>) => T;

export interface Setting<T> extends Description {
  /** As in the file, with dots: `server.port`. */
  readonly key: string;
  readonly kind: Kind<T>;
  /** The default of a server. */
  defaultValue(read: ReadSetting): T;
  /** The default for a module that is used without a server. */
  libraryDefault(read: ReadSetting): T;
}

export interface SettingDeclarations {
  readonly [name: string]: Setting<unknown> | SettingDeclarations;
}

export type DeclaredValues<D> = {
  readonly [Name in keyof D]: D[Name] extends Setting<infer T> ? T : DeclaredValues<D[Name]>;
};

/** Reports a setting that contradicts another one. */
export type ReportSetting = (key: string, message: string, hint: string) => void;

/** The settings of one module. */
export interface ModuleSettings<D extends SettingDeclarations = SettingDeclarations> {
  readonly declarations: D;
  /** What must hold between these settings. Each by itself is valid here. */
  check?(values: DeclaredValues<D>, report: ReportSetting): void;
}

export type SettingValues<S extends ModuleSettings> = DeclaredValues<S["declarations"]>;

/**
 * Declares the settings of a module or an extension, with checks between them.
 *
 * @example
 * const settings = defineSettings({
 *   target: httpUrl("webhook.target", { default: "http://127.0.0.1:9000/", doc: "Receives mail for `name@webhook`." }),
 *   retries: integer("webhook.retries", { default: 3, min: 0, doc: "Attempts after the first." }),
 * });
 */
export function defineSettings<const D extends SettingDeclarations>(
  declarations: D,
  { check }: { readonly check?: (values: DeclaredValues<D>, report: ReportSetting) => void } = {},
): ModuleSettings<D> {
  return { declarations, ...(check !== undefined && { check }) };
}

/** Every value of a module, as `read` has it. */
export function readDeclared<D extends SettingDeclarations>(
  declarations: D,
  read: ReadSetting,
): DeclaredValues<D>;
export function readDeclared(
  declarations: SettingDeclarations,
  read: ReadSetting,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(declarations).map(([name, declared]) => [
      name,
      isSetting(declared) ? read(declared) : readDeclared(declared, read),
    ]),
  );
}

/** The defaults of a module that is used without a server. */
export function defaultsOf<D extends SettingDeclarations>({
  declarations,
}: ModuleSettings<D>): DeclaredValues<D> {
  const read: ReadSetting = (setting) => setting.libraryDefault(read);
  return readDeclared(declarations, read);
}

export function settingsIn(declarations: SettingDeclarations): Setting<unknown>[] {
  return Object.values(declarations).flatMap((declared) =>
    isSetting(declared) ? [declared] : settingsIn(declared),
  );
}

function isSetting(declared: Setting<unknown> | SettingDeclarations): declared is Setting<unknown> {
  return typeof declared.key === "string";
}

type Optional<Extra = unknown> = Description & Extra;
/** `Given` is how the default may be written; `library` is the default without a server, where it differs. */
type Defaulted<T, Extra = unknown, Given = T> = Description &
  Extra &
  ({ readonly default: Given; readonly library?: Given } | { readonly derive: (read: ReadSetting) => T });
type Given<T> = Description & {
  readonly default?: T;
  readonly library?: T;
  readonly derive?: (read: ReadSetting) => T;
};

/** A setting of any kind. Without a default its value may be absent. */
export function setting<T>(key: string, kind: Kind<T>, options: Defaulted<T>): Setting<T>;
export function setting<T>(key: string, kind: Kind<T>, options: Optional): Setting<T | undefined>;
export function setting<T>(
  key: string,
  kind: Kind<T>,
  { default: server, library = server, derive, ...description }: Given<T>,
): Setting<T | undefined> {
  const { resolve } = kind;
  return {
    ...description,
    key,
    kind: {
      ...kind,
      show: (value) => (value === undefined ? "" : kind.show(value)),
      resolve: (value, absolute) =>
        value === undefined || resolve === undefined ? value : resolve(value, absolute),
    },
    defaultValue: (read) => derive?.(read) ?? server,
    libraryDefault: (read) => derive?.(read) ?? library,
  };
}

/** A setting that is a text. */
export function text(key: string, options: Defaulted<string>): Setting<string>;
export function text(key: string, options: Optional): Setting<string | undefined>;
export function text(key: string, options: Given<string>): Setting<string | undefined> {
  return setting(key, options.default === "" ? anyTextKind : textKind, options);
}

/** A setting that is true or false. */
export function boolean(key: string, options: Defaulted<boolean>): Setting<boolean> {
  return setting(key, booleanKind, options);
}

/** A setting that is a whole number, perhaps with limits (`min`, `max`). */
export function integer(key: string, options: Defaulted<number, Range>): Setting<number> {
  const { min, max, ...rest } = options;
  return setting(key, integerKind({ min, max }), rest);
}

/** Milliseconds; the default may be a text such as `10m`. */
export function duration(
  key: string,
  options: Description & Range & { readonly default: number | string },
): Setting<number> {
  return quantity(key, durationKind(options), options);
}

/** Bytes; the default may be a text such as `4mb`. */
export function bytes(
  key: string,
  options: Description & Range & { readonly default: number | string },
): Setting<number> {
  return quantity(key, bytesKind(options), options);
}

/** A setting that is an HTTP or HTTPS URL. */
export function httpUrl(key: string, options: Defaulted<string>): Setting<string>;
export function httpUrl(key: string, options: Optional): Setting<string | undefined>;
export function httpUrl(key: string, options: Given<string>): Setting<string | undefined> {
  return setting(key, httpUrlKind, options);
}

/** A setting that is a path, relative to the file that names it. */
export function path(key: string, options: Optional): Setting<string | undefined> {
  return setting(key, pathKind, options);
}

/** A setting that is one of several words. */
export function choice<const Word extends string>(
  key: string,
  words: readonly Word[],
  options: Defaulted<NoInfer<Word>>,
): Setting<Word> {
  return setting(key, choiceKind(words), options);
}

/** A setting that is a list of values of one kind. */
export function list<T>(
  key: string,
  item: Kind<T>,
  options: Defaulted<readonly NoInfer<T>[]>,
): Setting<readonly T[]> {
  return setting(key, listKind(item), options);
}

/** A setting that is a table of named values of one kind. */
export function table<T>(
  key: string,
  item: Kind<T>,
  options: Defaulted<Readonly<Record<string, NoInfer<T>>>>,
): Setting<Readonly<Record<string, T>>> {
  return setting(key, tableKind(item), options);
}

function quantity(
  key: string,
  kind: Kind<number>,
  { default: given, ...rest }: Description & Range & { readonly default: number | string },
): Setting<number> {
  if (typeof given === "number") return setting(key, kind, { ...rest, default: given });
  const parsed = kind.parse(given);
  if (!("value" in parsed)) throw new TypeError(`${key}: invalid default '${given}'`);
  return setting(key, kind, { ...rest, default: parsed.value });
}
