/** The settings of a server with extensions of its own, which declare settings too. */
import { isRecord, type ModuleSettings } from "../base/index.js";
import type { AnyExtensionFactory } from "../extension/index.js";
import { badConfig, type LoadOptions, loadSettings, type SettingsCatalog } from "../settings/index.js";
import { loadModuleExport } from "../swarm/index.js";
import { type Config, catalog, loadConfig } from "./catalog.js";
import { standardExtensions } from "./extensions.js";

/** The settings of a server, with their sources and warnings. */
export interface ServerConfig extends Config {
  /** The standard ones, and those of `server.extensions`. */
  readonly extensions: readonly AnyExtensionFactory[];
}

/**
 * Reads flags, environment and `mail.toml`, and loads the extensions that they name.
 * @throws MailroomError `bad_config` with every problem, or `bad_reference`
 * @example
 * const { settings, extensions } = await loadServerConfig({ directory: process.cwd(), env: process.env });
 */
export async function loadServerConfig(options: LoadOptions): Promise<ServerConfig> {
  const config = loadConfig(options);
  const { extensions: modules } = config.settings.server;
  if (modules.length === 0) return { ...config, extensions: standardExtensions };
  const own: AnyExtensionFactory[] = [];
  for (const module of modules) own.push(await loadExtension(module, options.directory));
  const extensions = [...standardExtensions, ...own];
  rejectDuplicates(extensions);
  // Again, now that the settings of all extensions are known: a mistyped key must not be ignored.
  return { ...loadSettings(catalogWith(own), options), extensions };
}

async function loadExtension(module: string, directory: string): Promise<AnyExtensionFactory> {
  const found = await loadModuleExport(module, "default", directory);
  if (isFactory(found)) return found;
  // A TypeScript file in a CommonJS package: its exports are the default export.
  if (isRecord(found) && isFactory(found.default)) return found.default;
  throw badConfig([
    {
      key: "server.extensions",
      message: `the default export of '${module}' is not an extension`,
      hint: "export default defineExtension({ name, create })",
    },
  ]);
}

function isFactory(value: unknown): value is AnyExtensionFactory {
  return isRecord(value) && typeof value.name === "string" && typeof value.create === "function";
}

function rejectDuplicates(extensions: readonly AnyExtensionFactory[]): void {
  const names = extensions.map(({ name }) => name);
  const twice = names.find(
    (name, index) => names.indexOf(name) !== index || (name in catalog.modules && !isStandard(name)),
  );
  if (twice === undefined) return;
  throw badConfig([
    {
      key: "server.extensions",
      message: `the name '${twice}' is taken`,
      hint: "give the extension another name",
    },
  ]);
}

const isStandard = (name: string): boolean => standardExtensions.some((extension) => extension.name === name);

function catalogWith(extensions: readonly AnyExtensionFactory[]): typeof catalog;
function catalogWith(extensions: readonly AnyExtensionFactory[]): SettingsCatalog {
  const declared = extensions.flatMap(({ name, settings }) =>
    settings === undefined ? [] : [[name, settings] as const],
  );
  const modules: Readonly<Record<string, ModuleSettings>> = Object.fromEntries(declared);
  const tables = Object.fromEntries(declared.map(([name]) => [name, `The extension '${name}'.`]));
  return { modules: { ...catalog.modules, ...modules }, tables: { ...catalog.tables, ...tables } };
}
