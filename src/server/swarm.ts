/** The swarm that is served: from its file, or the demonstration swarm. */
import { readFile } from "node:fs/promises";
import type { Report } from "../base/index.js";
import { demoSwarm, withExamples } from "../demo/index.js";
import type { Action, SwarmDefinition } from "../engine/index.js";
import { formatProblem, parseSwarmFile } from "../mail/index.js";
import { type Builtins, defaultBuiltins, loadSwarm } from "../swarm/index.js";
import type { Settings } from "./catalog.js";
import { DEMO_SWARM, swarmFileOf } from "./data-directory.js";

/** A swarm whose definition needs the actions of the server's extensions, such as a swarm file. */
export interface SwarmSource {
  readonly name: string;
  load(builtins: Builtins): Promise<SwarmDefinition>;
}

export interface ServedSwarm {
  readonly definition: SwarmDefinition;
  /** Absent for the demonstration swarm. */
  readonly file: string | undefined;
  readonly warnings: readonly string[];
}

/** Everything that comes with the package, and the actions of extensions. */
export function builtinsWith(
  { models, actions: { fileRoots, allow } }: Pick<Settings, "models" | "actions">,
  actions: Readonly<Record<string, Action>> = {},
  env: Readonly<Record<string, string | undefined>> = modelEnvironment(models),
  report?: Report,
): Builtins {
  const { concurrency, requestsPerMinute } = models;
  const standard = withExamples(
    defaultBuiltins({
      models: {
        env,
        prices: models.prices,
        limits: { concurrency, requestsPerMinute },
        ...(report !== undefined && { report }),
      },
      ...(models.defaultModel !== undefined && { defaultModel: models.defaultModel }),
      files: { roots: fileRoots },
      outbound: { allow },
    }),
  );
  return { ...standard, actions: { ...standard.actions, ...actions } };
}

/**
 * The configured swarm, by name at once and by definition when it is loaded.
 * @throws MailroomError `bad_swarm_file`
 */
export async function swarmSource(
  settings: Settings,
  directory: string,
): Promise<SwarmSource & { served(): Omit<ServedSwarm, "definition"> }> {
  const file = swarmFileOf(settings, directory);
  let warnings: readonly string[] = [];
  return {
    name: await swarmName(settings, file),
    async load(builtins) {
      const served = await servedSwarm(settings, directory, builtins);
      warnings = served.warnings;
      return served.definition;
    },
    served: () => ({ file, warnings }),
  };
}

/**
 * Loads the swarm that the settings name: from a swarm file, or the demo.
 * @throws MailroomError `bad_swarm_file`
 * @example
 * const { definition } = await servedSwarm(settings, process.cwd());
 */
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

/** The name without resolving the definition: an invalid file must not create a data directory. */
async function swarmName(settings: Settings, file: string | undefined): Promise<string> {
  const { name } = settings.server.swarm;
  if (file === undefined) return name ?? DEMO_SWARM;
  const text = await readFile(file, "utf8").catch(() => undefined);
  const names = text === undefined ? [] : parseSwarmFile(text, file).swarms.map((swarm) => swarm.name);
  const [only] = names;
  if (name !== undefined && names.includes(name)) return name;
  if (name === undefined && only !== undefined && names.length === 1) return only;
  // Explains why the file cannot be read, or which swarms it has.
  return (await loadSwarm(file, name)).definition.name;
}

/** The configuration may describe the swarm for others. */
function withSettings(definition: SwarmDefinition, { server }: Settings): SwarmDefinition {
  const { description, keywords, public: isPublic } = server.swarm;
  return {
    ...definition,
    ...(description !== "" && { description }),
    ...(keywords.length > 0 && { keywords }),
    public: definition.public || isPublic,
  };
}

/** The environment, with the model settings in place of its variables. */
export function modelEnvironment(
  { proxyUrl, proxyKey, openaiKey, anthropicKey }: Settings["models"],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> {
  return {
    ...env,
    ...(proxyUrl !== undefined && { LITELLM_PROXY_API_BASE: proxyUrl }),
    ...(proxyKey !== undefined && { LITELLM_PROXY_API_KEY: proxyKey }),
    ...(openaiKey !== undefined && { OPENAI_API_KEY: openaiKey }),
    ...(anthropicKey !== undefined && { ANTHROPIC_API_KEY: anthropicKey }),
  };
}
