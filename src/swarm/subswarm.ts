/** A smaller swarm made of some agents of a larger one. */

import { didYouMean } from "../base/index.js";
import type { SwarmDefinition } from "../engine/index.js";
import { isInterswarmAddress, isMailToolName, normalizeAddress } from "../mail/index.js";
import { badSwarm, defineSwarm } from "./define.js";

export interface SubswarmOptions {
  /** Suffix of the swarm's name. Default: `-sub`. */
  readonly suffix?: string;
  /** Default: the larger swarm's entrypoint if it is among the names, otherwise the only entrypoint among them. */
  readonly entrypoint?: string;
}

/**
 * Keeps the named agents, their comm targets among themselves and in other swarms, and the actions that they use.
 * @throws MailroomError `bad_swarm` when a name is unknown or the result is not a valid swarm.
 * @example
 * const small = subswarm(office, ["clerk", "archivist"]);
 */
export function subswarm(
  definition: SwarmDefinition,
  names: readonly string[],
  options: SubswarmOptions = {},
): SwarmDefinition {
  const all = definition.agents.map(({ name }) => name);
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) {
    throw badSwarm(
      definition.name,
      unknown.map((name) => {
        const hint = didYouMean(name, all);
        return { path: "names", message: `unknown agent '${name}'`, ...(hint === undefined ? {} : { hint }) };
      }),
    );
  }
  const stays = (target: string): boolean =>
    isInterswarmAddress(target, definition.name) || names.includes(normalizeAddress(target, definition.name));
  const agents = definition.agents
    .filter(({ name }) => names.includes(name))
    .map((agent) => ({
      ...agent,
      // Remove the old swarm's name, which now names another swarm.
      commTargets: agent.commTargets.filter(stays).map((target) => normalizeAddress(target, definition.name)),
      ownActions: [],
    }));
  const used = new Set(agents.flatMap((agent) => agent.actions));
  const actions = definition.actions.filter(({ name }) => used.has(name));
  const entrypoint =
    options.entrypoint ?? (names.includes(definition.entrypoint) ? definition.entrypoint : undefined);
  return defineSwarm({
    name: `${definition.name}-${(options.suffix ?? "sub").replace(/^-/, "")}`,
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
