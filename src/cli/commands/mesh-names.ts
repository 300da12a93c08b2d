/** Names that an alias of the mesh must not take, while no server runs: those that a server here would have for others. */
import { readFile } from "node:fs/promises";
import type { Settings } from "../../config/index.js";
import { readRegistryFile } from "../../federation/registry/file.js";
import { parseSwarmFile } from "../../mail/swarm-file/read.js";
import type { FullStore } from "../../store/index.js";
import { DEMO_SWARM, swarmFileOf } from "../place.js";

export interface NamesInput {
  readonly settings: Settings;
  readonly store: FullStore;
  /** Where the server would be started. */
  readonly directory: string;
  readonly report: (line: string) => void;
}

export async function takenNames(input: NamesInput): Promise<ReadonlySet<string>> {
  const { settings, report } = input;
  // Which names a file has is no reason for an operation on the mesh to fail.
  const orNone = async (what: string, names: Promise<readonly string[]>): Promise<readonly string[]> => {
    try {
      return await names;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      report(`${what} cannot be read, so its names may be taken as aliases: ${why}`);
      return [];
    }
  };
  return new Set([
    ...Object.keys(settings.a2a.agents),
    ...(await orNone("the swarm file", ownNames(input))),
    ...(await orNone("the registry", registeredNames(input))),
  ]);
}

/** Where it is not clear which swarm of the file is meant, all of them. */
async function ownNames({ settings, directory }: NamesInput): Promise<readonly string[]> {
  const { name } = settings.server.swarm;
  if (name !== undefined) return [name];
  const file = swarmFileOf(settings, directory);
  if (file === undefined) return [DEMO_SWARM];
  return parseSwarmFile(await readFile(file, "utf8"), file).swarms.map((swarm) => swarm.name);
}

async function registeredNames({ settings, store }: NamesInput): Promise<readonly string[]> {
  if (!settings.federation.enabled) return [];
  const { registry } = settings.server.swarm;
  const inFile = registry === undefined ? [] : await readRegistryFile(registry, "");
  const kept = await store.federation.swarms();
  return [...kept.map(({ name }) => name), ...inFile.map(({ entry }) => entry.name)];
}
