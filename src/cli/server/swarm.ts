/** The swarm that is served: from its file, or the demonstration swarm. */
import type { Settings } from "../../config/index.js";
import type { Action } from "../../engine/agent.js";
import type { SwarmDefinition } from "../../engine/definition.js";
import { formatProblem } from "../../mail/swarm-file/problems.js";
import { type Builtins, defaultBuiltins, demoSwarm, loadSwarm } from "../../swarm/index.js";
import { DEMO_SWARM, swarmFileOf } from "../place.js";

export interface ServedSwarm {
  readonly definition: SwarmDefinition;
  /** Nothing for the demonstration swarm. */
  readonly file: string | undefined;
  readonly warnings: readonly string[];
}

/** Everything that comes with the package, and what the rooms of a server add to it. */
export function builtinsWith(
  { models, actions: { fileRoots, allow } }: Pick<Settings, "models" | "actions">,
  actions: Readonly<Record<string, Action>> = {},
): Builtins {
  const standard = defaultBuiltins({
    models: { env: modelEnvironment(models), prices: models.prices },
    files: { roots: fileRoots },
    outbound: { allow },
  });
  return { ...standard, actions: { ...standard.actions, ...actions } };
}

/** @throws SwarmFileError */
export async function servedSwarm(
  settings: Settings,
  directory: string,
  builtins: Builtins = builtinsWith(settings),
): Promise<ServedSwarm> {
  const file = swarmFileOf(settings, directory);
  const { name } = settings.server.swarm;
  if (file === undefined) {
    return { definition: demoSwarm({ name: name ?? DEMO_SWARM }), file, warnings: [] };
  }
  const { definition, warnings } = await loadSwarm(file, name, {
    builtins,
    outbound: { allow: settings.actions.allow },
  });
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

/** Providers are found in the environment; what the configuration says comes first. */
export function modelEnvironment({ proxyUrl, proxyKey, openaiKey, anthropicKey }: Settings["models"]) {
  return {
    ...process.env,
    ...(proxyUrl !== undefined && { LITELLM_PROXY_API_BASE: proxyUrl }),
    ...(proxyKey !== undefined && { LITELLM_PROXY_API_KEY: proxyKey }),
    ...(openaiKey !== undefined && { OPENAI_API_KEY: openaiKey }),
    ...(anthropicKey !== undefined && { ANTHROPIC_API_KEY: anthropicKey }),
  };
}
