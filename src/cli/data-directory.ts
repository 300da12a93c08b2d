/** Resolves the data directory of a command: the one that the server would use (decision A1). */

import { readFile } from "node:fs/promises";
import { MailroomError } from "../base/index.js";
import { parseSwarmFile } from "../mail/index.js";
import { DEMO_SWARM, dataDirectoryFor, swarmFileOf } from "../server/control.js";
import type { Settings } from "../server/index.js";
import { loadConfig } from "../server/index.js";
import type { DataOptions } from "./options.js";
import type { Terminal } from "./terminal.js";

export async function dataDirectoryOf(settings: Settings, directory: string): Promise<string> {
  const { data, swarm } = settings.server;
  if (data !== undefined) return data;
  const name = swarm.name ?? (await onlySwarmOf(swarmFileOf(settings, directory)));
  return dataDirectoryFor(name, directory);
}

/** For commands that read stored data. */
export async function resolveDataDirectory(
  options: DataOptions,
  terminal: Terminal,
): Promise<{ readonly settings: Settings; readonly data: string }> {
  const directory = process.cwd();
  const { settings } = loadConfig({ flags: flagsOf(options), env: terminal.env, directory });
  return { settings, data: await dataDirectoryOf(settings, directory) };
}

/** Returns the options as flags; the settings ignore options that they do not declare. */
export function flagsOf(options: object): Readonly<Record<string, unknown>> {
  return { ...options };
}

async function onlySwarmOf(file: string | undefined): Promise<string> {
  if (file === undefined) return DEMO_SWARM;
  const { swarms } = parseSwarmFile(await readFile(file, "utf8"), file);
  const [only, ...others] = swarms;
  if (only !== undefined && others.length === 0) return only.name;
  const names = swarms.map(({ name }) => name).join(", ");
  throw new MailroomError("usage", `${file} contains several swarms`, {
    details: {
      hint: `select one with --data, or with its name in mail.toml ([server.swarm] name): ${names}`,
    },
  });
}
