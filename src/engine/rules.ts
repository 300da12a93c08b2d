/** The part of a swarm's definition that decides: who exists, who may do what, and the limits. */
import { normaliseAddress } from "../mail/address.js";
import { mailToolNamesFor } from "../mail/tools.js";
import type { SwarmDefinition } from "./definition.js";

export interface EngineLimits {
  /** Steps of a task before it is made to finish; `undefined` for no limit (decisions B8). */
  readonly maxSteps: number | undefined;
  /** The same message this often is a loop; 0 switches the guard off (decisions B9). */
  readonly repetition: number;
  /** System error messages in a row to one agent that fail the task. */
  readonly errorsInARow: number;
  /**
   * Turns in a row that an agent may take without mail from anybody else (acting, asking for help). They are no steps,
   * so nothing else would end an agent that acts for ever. 0 switches the guard off.
   */
  readonly ownTurns: number;
  /** Recoveries without progress after which a message is given up (decisions B12). */
  readonly recoveries: number;
  /** How often an idempotent action is run in all (decisions B11). */
  readonly actionAttempts: number;
  /** Messages that may wait for one agent of a task. */
  readonly mailbox: number;
  /** Milliseconds from opening or resuming to the end; `undefined` for no limit. */
  readonly taskTime: number | undefined;
  /** Milliseconds that another swarm has to answer a request it accepted; `undefined` for no limit (decisions E6). */
  readonly replyTime: number | undefined;
}

export const DEFAULT_ENGINE_LIMITS: EngineLimits = {
  maxSteps: undefined,
  repetition: 3,
  errorsInARow: 5,
  ownTurns: 100,
  recoveries: 3,
  actionAttempts: 3,
  mailbox: 10_000,
  taskTime: undefined,
  replyTime: 900_000,
};

export interface AgentRules {
  readonly name: string;
  /** Normalised addresses that the agent may write to. */
  readonly targets: ReadonlySet<string>;
  readonly canCompleteTasks: boolean;
  readonly isEntrypoint: boolean;
  readonly interswarm: boolean;
  readonly remote: boolean;
  /** MAIL tools that the agent has; a call of any other is refused. */
  readonly tools: ReadonlySet<string>;
  readonly actions: ReadonlySet<string>;
}

export interface SwarmRules {
  readonly swarm: string;
  readonly entrypoint: string;
  readonly agents: ReadonlyMap<string, AgentRules>;
  /** Every action of the swarm, whoever may call it. */
  readonly actions: ReadonlySet<string>;
  readonly breakpointTools: ReadonlySet<string>;
  readonly limits: EngineLimits;
  readonly hash: string;
}

export function rulesOf(definition: SwarmDefinition, limits: EngineLimits): SwarmRules {
  const agents = new Map<string, AgentRules>();
  for (const agent of definition.agents) {
    const interswarm = definition.enableInterswarm && agent.enableInterswarm;
    agents.set(agent.name, {
      name: agent.name,
      targets: new Set(agent.commTargets.map((target) => normaliseAddress(target, definition.name))),
      canCompleteTasks: agent.canCompleteTasks,
      isEntrypoint: agent.enableEntrypoint,
      interswarm,
      remote: agent.mind.kind === "remote",
      tools: new Set(
        mailToolNamesFor({
          commTargets: agent.commTargets,
          canCompleteTasks: agent.canCompleteTasks,
          enableInterswarm: interswarm,
          excludeTools: [...definition.excludeTools, ...agent.excludeTools],
        }),
      ),
      actions: new Set(agent.actions),
    });
  }
  return {
    swarm: definition.name,
    entrypoint: definition.entrypoint,
    agents,
    actions: new Set(definition.actions.map((action) => action.name)),
    breakpointTools: new Set(definition.breakpointTools),
    limits,
    hash: definition.hash,
  };
}
