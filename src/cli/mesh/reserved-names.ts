/** Names that a mesh alias must not take while no server runs: those that a server here would reserve. */

import { readFile } from "node:fs/promises";
import { messageOf } from "../../base/index.js";
import { readRegistryFile } from "../../federation/index.js";
import { parseSwarmFile } from "../../mail/index.js";
import { DEMO_SWARM, swarmFileOf } from "../../server/control.js";
import type { Settings } from "../../server/index.js";
import type { FullStore } from "../../store/index.js";

export interface NamesInput {
  readonly settings: Settings;
  readonly store: FullStore;
  /** The directory in which the server would be started. */
  readonly directory: string;
  readonly report: (line: string) => void;
}

export async function reservedNames(input: NamesInput): Promise<ReadonlySet<string>> {
  const { settings, report } = input;
  // An unreadable file must not make a mesh operation fail.
  const orNone = async (what: string, names: Promise<readonly string[]>): Promise<readonly string[]> => {
    try {
      return await names;
    } catch (error) {
      const why = messageOf(error);
      report(`cannot read ${what}, so its names are not reserved: ${why}`);
      return [];
    }
  };
  return new Set([
    ...Object.keys(settings.a2a.agents),
    ...(await orNone("the swarm file", ownNames(input))),
    ...(await orNone("the registry", registeredNames(input))),
  ]);
}

/** If the served swarm is ambiguous, the names of all swarms in the file. */
async function ownNames({ settings, directory }: NamesInput): Promise<readonly string[]> {
  const { name } = settings.server.swarm;
  if (name !== undefined) return [name];
  const file = swarmFileOf(settings, directory);
  if (file === undefined) return [DEMO_SWARM];
  return parseSwarmFile(await readFile(file, "utf8"), file).swarms.map((swarm) => swarm.name);
}

async function registeredNames({ settings, store }: NamesInput): Promise<readonly string[]> {
  if (!settings.federation.enabled) return [];
  const { registryFile: registry } = settings.federation;
  const inFile = registry === undefined ? [] : await readRegistryFile(registry, "");
  const kept = await store.federation.swarms();
  return [...kept.map(({ name }) => name), ...inFile.map(({ entry }) => entry.name)];
}
