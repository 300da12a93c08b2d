/** How settings are declared: see `settings/` for the table of them. */
import type { Kind } from "./kinds.js";
import type { Source } from "./source.js";

export type Command = "server" | "client";

export interface Flag {
  /** Long names; the first is the one that is shown. */
  readonly names: readonly [string, ...string[]];
  /** Other spellings, as the reference has them. */
  readonly short?: string;
  /** What follows the flag, as in `<port>`; absent for one that stands by itself. */
  readonly value?: string;
  readonly commands: readonly Command[];
}

export interface SettingSpec<T> {
  readonly kind: Kind<T>;
  /** A sentence for people. */
  readonly doc: string;
  readonly flag?: Flag;
  /** Variables beside the one that every setting has (`MAILROOM_…`), which comes first. */
  readonly env?: readonly string[];
  /** Other names that the key may have in the file. */
  readonly aliases?: readonly string[];
  /** Its value is never shown, and may stand as `${VARIABLE}` in the file. */
  readonly secret?: boolean;
  /** The default in words, where it depends on something else. */
  readonly otherwise?: string;
}

/**
 * Reads the settings of one table. A declaration is a function from this to an object: run with real sources it gives
 * the configuration, run with none it gives the defaults, and both times the reader has seen every setting there is.
 */
export interface Section {
  setting<T>(name: string, spec: SettingSpec<T> & { readonly default: NoInfer<T> }): T;
  optional<T>(name: string, spec: SettingSpec<T>): T | undefined;
  section<V>(name: string, doc: string, read: (section: Section) => V): V;
}

/** A setting, its value in force and where that came from. Holds no secret. */
export interface SettingRow {
  /** As in the file, with dots: `server.port`. */
  readonly key: string;
  readonly doc: string;
  /** What the value is, in a word or two. */
  readonly kind: string;
  /** As people read it; masked if it is secret, `undefined` if there is none. */
  readonly value: string | undefined;
  readonly default: string | undefined;
  readonly source: Source;
  readonly secret: boolean;
  /** In order of precedence. */
  readonly env: readonly string[];
  readonly flag?: Flag;
}

export interface SectionRow {
  readonly key: string;
  readonly doc: string;
}

/** `server.swarm.name` is MAILROOM_SWARM_NAME, `auth.jwt.issuer` MAILROOM_AUTH_JWT_ISSUER. */
export function variableOf(key: string): string {
  const short = key.replace(/^server\.(settings\.)?/, "");
  return `MAILROOM_${short.replaceAll(".", "_").toUpperCase()}`;
}

/** `--swarm-name` is `swarmName`, as command line parsers have it. */
export function attributeOf(flag: string): string {
  return flag.replace(/^--/, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
