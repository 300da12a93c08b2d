/** Which data directory a command is about: the same one that the server would use (decisions A1). */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Settings } from "../config/index.js";
import { loadConfig } from "../config/index.js";
import { parseSwarmFile } from "../mail/swarm-file/read.js";
import { CliError, EXIT } from "./exit.js";
import type { PlaceOptions } from "./options.js";
import type { Terminal } from "./terminal.js";

export const DEMO_SWARM = "demo";
const DEFAULT_SWARM_FILE = "swarms.json";

/** The swarm file in force; nothing for the demonstration swarm. */
export function swarmFileOf(settings: Settings, directory: string): string | undefined {
  const { source } = settings.server.swarm;
  if (source !== undefined) return source;
  const file = resolve(directory, DEFAULT_SWARM_FILE);
  return existsSync(file) ? file : undefined;
}

export async function dataDirectoryOf(settings: Settings, directory: string): Promise<string> {
  const { data, swarm } = settings.server;
  if (data !== undefined) return data;
  const name = swarm.name ?? (await onlySwarmOf(swarmFileOf(settings, directory)));
  return dataDirectoryFor(name, directory);
}

export function dataDirectoryFor(swarm: string, directory: string): string {
  return resolve(directory, join(".mailroom", swarm));
}

/** For commands that look at what is stored. */
export async function placeFor(
  options: PlaceOptions,
  terminal: Terminal,
): Promise<{ readonly settings: Settings; readonly data: string }> {
  const directory = process.cwd();
  const { settings } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  return { settings, data: await dataDirectoryOf(settings, directory) };
}

/** What the table of settings knows; other options of a command are none of its business. */
export function flagsOf(options: object): Readonly<Record<string, unknown>> {
  return { ...options };
}

async function onlySwarmOf(file: string | undefined): Promise<string> {
  if (file === undefined) return DEMO_SWARM;
  const { swarms } = parseSwarmFile(await readFile(file, "utf8"), file);
  const [only, ...others] = swarms;
  if (only !== undefined && others.length === 0) return only.name;
  const names = swarms.map(({ name }) => name).join(", ");
  throw new CliError("usage", `${file} holds several swarms, and it is not clear which is meant`, {
    exit: EXIT.usage,
    hint: `name the data directory with --data, or the swarm in mail.toml ([server.swarm] name); there are: ${names}`,
  });
}
