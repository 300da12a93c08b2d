/** A smaller swarm made of some agents of a larger one. */
import type { SwarmDefinition } from "../engine/definition.js";
import { isInterswarmAddress, normaliseAddress } from "../mail/address.js";
import { didYouMean } from "../mail/swarm-file/suggest.js";
import { isMailToolName } from "../mail/tool-table.js";
import { defineSwarm, SwarmDefinitionError } from "./define.js";

export interface SubswarmOptions {
  /** Put behind the name of the swarm. Default: `-sub`. */
  readonly suffix?: string;
  /** Default: that of the larger swarm if it is among the names, else the only entrypoint among them. */
  readonly entrypoint?: string;
}

/**
 * Keeps the agents named, what they may write to among themselves (and in other swarms), and the actions they use.
 * @throws SwarmDefinitionError when a name is unknown or what remains is no usable swarm.
 */
export function subswarm(
  definition: SwarmDefinition,
  names: readonly string[],
  options: SubswarmOptions = {},
): SwarmDefinition {
  const all = definition.agents.map(({ name }) => name);
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    throw new SwarmDefinitionError(
      definition.name,
      unknown.map((name) => {
        const hint = didYouMean(name, all);
        return { path: "names", message: `unknown agent '${name}'`, ...(hint === undefined ? {} : { hint }) };
      }),
    );
  }
  const stays = (target: string): boolean =>
    isInterswarmAddress(target, definition.name) || names.includes(normaliseAddress(target, definition.name));
  const agents = definition.agents
    .filter(({ name }) => names.includes(name))
    .map((agent) => ({
      ...agent,
      // Written without the old swarm's name, which is another swarm's name now.
      commTargets: agent.commTargets.filter(stays).map((target) => normaliseAddress(target, definition.name)),
      ownActions: [],
    }));
  const used = new Set(agents.flatMap((agent) => agent.actions));
  const actions = definition.actions.filter(({ name }) => used.has(name));
  const entrypoint =
    options.entrypoint ?? (names.includes(definition.entrypoint) ? definition.entrypoint : undefined);
  return defineSwarm({
    name: `${definition.name}${options.suffix ?? "-sub"}`,
    version: definition.version,
    description: definition.description,
    keywords: definition.keywords,
    public: definition.public,
    ...(entrypoint === undefined ? {} : { entrypoint }),
    enableInterswarm: definition.enableInterswarm,
    agents,
    actions,
    breakpointTools: definition.breakpointTools.filter((name) => isMailToolName(name) || used.has(name)),
    excludeTools: definition.excludeTools,
  });
}
