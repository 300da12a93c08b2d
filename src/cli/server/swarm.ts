/** The swarm that is served: from its file, or the demonstration swarm. */
import type { Settings } from "../../config/index.js";
import type { SwarmDefinition } from "../../engine/definition.js";
import { formatProblem } from "../../mail/swarm-file/problems.js";
import { demoSwarm, loadSwarm } from "../../swarm/index.js";
import { DEMO_SWARM, swarmFileOf } from "../place.js";

export interface ServedSwarm {
  readonly definition: SwarmDefinition;
  /** Nothing for the demonstration swarm. */
  readonly file: string | undefined;
  readonly warnings: readonly string[];
}

/** @throws SwarmFileError */
export async function servedSwarm(settings: Settings, directory: string): Promise<ServedSwarm> {
  const file = swarmFileOf(settings, directory);
  const { name } = settings.server.swarm;
  if (file === undefined) {
    return { definition: demoSwarm({ name: name ?? DEMO_SWARM }), file, warnings: [] };
  }
  const { definition, warnings } = await loadSwarm(file, name);
  return { definition: withSettings(definition, settings), file, warnings: warnings.map(formatProblem) };
}

/** What other swarms see of it may be said in the configuration. */
function withSettings(definition: SwarmDefinition, { server }: Settings): SwarmDefinition {
  const { description, keywords, public: isPublic } = server.swarm;
  return {
    ...definition,
    ...(description !== "" && { description }),
    ...(keywords.length > 0 && { keywords }),
    public: definition.public || isPublic,
  };
}
