/** The part of a swarm definition that decisions depend on: agents, permissions and limits. */
import { mailToolNamesFor, normalizeAddress } from "../../mail/index.js";
import type { SwarmDefinition } from "../definition.js";
import type { RuntimeLimits } from "../settings.js";
import type { BudgetLimits } from "../usage.js";

/** The limits that decisions depend on. */
export type EngineLimits = Pick<
  RuntimeLimits,
  | "maxSteps"
  | "repetition"
  | "errorsInARow"
  | "ownTurns"
  | "recoveries"
  | "actionAttempts"
  | "actionsPerTask"
  | "approvalTimeout"
  | "mailbox"
  | "taskTimeout"
  | "replyTimeout"
  | "replyTimeouts"
  | "taskBudget"
>;

export interface AgentRules {
  readonly name: string;
  /** Normalized addresses that the agent may write to. */
  readonly targets: ReadonlySet<string>;
  readonly canCompleteTasks: boolean;
  readonly isEntrypoint: boolean;
  readonly interswarm: boolean;
  readonly remote: boolean;
  /** The agent's MAIL tools. A call of any other MAIL tool is refused. */
  readonly tools: ReadonlySet<string>;
  readonly actions: ReadonlySet<string>;
  /** Limits on what its model calls use in one task. */
  readonly budget: BudgetLimits;
}

export interface SwarmRules {
  readonly swarm: string;
  readonly entrypoint: string;
  readonly agents: ReadonlyMap<string, AgentRules>;
  /** Every action of the swarm, regardless of which agents may call it. */
  readonly actions: ReadonlySet<string>;
  /** Actions that never run beside another action of the same answer. */
  readonly sequential: ReadonlySet<string>;
  /** Actions whose calls may need approval, with the milliseconds after which it expires; 0 means never. */
  readonly approvals: ReadonlyMap<string, number>;
  readonly breakpointTools: ReadonlySet<string>;
  /** Limits on what the model calls of one task use. */
  readonly budget: BudgetLimits;
  readonly limits: EngineLimits;
  readonly hash: string;
}

export function rulesOf(definition: SwarmDefinition, limits: EngineLimits): SwarmRules {
  const agents = new Map<string, AgentRules>();
  for (const agent of definition.agents) {
    const interswarm = definition.enableInterswarm && agent.enableInterswarm;
    agents.set(agent.name, {
      name: agent.name,
      targets: new Set(agent.commTargets.map((target) => normalizeAddress(target, definition.name))),
      canCompleteTasks: agent.canCompleteTasks,
      isEntrypoint: agent.enableEntrypoint,
      interswarm,
      remote: agent.implementation.kind === "remote",
      tools: new Set(
        mailToolNamesFor({
          commTargets: agent.commTargets,
          canCompleteTasks: agent.canCompleteTasks,
          enableInterswarm: interswarm,
          excludeTools: [...definition.excludeTools, ...agent.excludeTools],
        }),
      ),
      actions: new Set(agent.actions),
      budget: agent.budget ?? {},
    });
  }
  return {
    swarm: definition.name,
    entrypoint: definition.entrypoint,
    agents,
    actions: new Set(definition.actions.map((action) => action.name)),
    sequential: new Set(
      definition.actions.filter(({ parallel }) => parallel === false).map(({ name }) => name),
    ),
    approvals: new Map(
      definition.actions
        .filter(({ approval = false }) => approval !== false)
        .map(({ name, approvalTimeout }) => [name, approvalTimeout ?? limits.approvalTimeout]),
    ),
    breakpointTools: new Set(definition.breakpointTools),
    budget: { ...limits.taskBudget, ...definition.budget },
    limits,
    hash: definition.hash,
  };
}
