/** `defineSwarm`: combines agents and actions, checks them and computes the hash. */

import { MailroomError } from "../base/index.js";
import { digest } from "../base/node.js";
import {
  type Action,
  type AgentDefinition,
  type BudgetLimits,
  budgetProblem,
  type SwarmDefinition,
} from "../engine/index.js";
import {
  checkSwarm,
  formatPath,
  formatProblems,
  type SwarmFileProblem,
  type SwarmOutline,
  type UnplacedProblem,
} from "../mail/index.js";
import type { DefinedAgent } from "./agent.js";

/** What `defineSwarm` makes a swarm from. */
export interface SwarmOptions {
  /** Unique among the swarms that it exchanges mail with. */
  readonly name: string;
  /** Default: `0.0.0`. */
  readonly version?: string;
  /** What the swarm does, for people and other swarms. Default: none. */
  readonly description?: string;
  /** Words by which other swarms find it. Default: none. */
  readonly keywords?: readonly string[];
  /** Whether other swarms may see it. Default: false. */
  readonly public?: boolean;
  /** The agent that receives users' mail. Default: the only agent with `enableEntrypoint`. */
  readonly entrypoint?: string;
  /** Whether it exchanges mail with other swarms. Default: false. */
  readonly enableInterswarm?: boolean;
  readonly agents: readonly (DefinedAgent | AgentDefinition)[];
  /** Actions in addition to those of the agents. Default: none. */
  readonly actions?: readonly Action[];
  /** Actions or MAIL tools whose calls pause the task until a person supplies the result. Default: none. */
  readonly breakpointTools?: readonly string[];
  /** MAIL tools that no agent gets. Default: none. */
  readonly excludeTools?: readonly string[];
  /** Limits on what the model calls of one task use, in place of those of the server. At a limit the task pauses. */
  readonly budget?: BudgetLimits;
}

/** The error of an invalid swarm definition. */
export function badSwarm(swarm: string, problems: readonly SwarmFileProblem[]): MailroomError {
  const message = formatProblems(`swarm '${swarm}' is invalid:`, problems);
  return new MailroomError("bad_swarm", message, { details: { problems } });
}

/**
 * Defines a swarm, and checks it as a whole.
 * @throws MailroomError `bad_swarm` with all problems.
 * @example
 * defineSwarm({ name: "hello", agents: [greeter] });
 */
export function defineSwarm(options: SwarmOptions): SwarmDefinition {
  const actions = gatherActions(options);
  const outline = outlineOf(options, chooseEntrypoint(options), actions);
  const { errors } = checkSwarm(outline);
  const problems = [...errors.map(toProblem), ...budgetProblems(options)];
  if (problems.length > 0) throw badSwarm(options.name, problems);
  return assemble(options, outline.entrypoint, actions);
}

function budgetProblems({ budget = {}, agents }: SwarmOptions): SwarmFileProblem[] {
  const found: SwarmFileProblem[] = [];
  const check = (path: string, limits: BudgetLimits): void => {
    const message = budgetProblem(limits);
    if (message !== undefined) found.push({ path, message: keysInCamelCase(message) });
  };
  check("budget", budget);
  for (const [index, agent] of agents.entries()) check(`agents[${index}].budget`, agent.budget ?? {});
  return found;
}

/** Actions of the swarm and of its agents. Shared actions appear once. */
function gatherActions(options: Pick<SwarmOptions, "agents" | "actions">): Action[] {
  const own = options.agents.flatMap((agent) => ("ownActions" in agent ? agent.ownActions : []));
  return [...new Set([...(options.actions ?? []), ...own])];
}

/** Builds the definition from checked parts. */
export function assemble(
  options: SwarmOptions,
  entrypoint: string,
  actions: readonly Action[],
): SwarmDefinition {
  const data = {
    name: options.name,
    version: options.version ?? "0.0.0",
    description: options.description ?? "",
    keywords: [...(options.keywords ?? [])],
    public: options.public ?? false,
    entrypoint,
    enableInterswarm: options.enableInterswarm ?? false,
    breakpointTools: [...(options.breakpointTools ?? [])],
    excludeTools: [...(options.excludeTools ?? [])],
    ...(options.budget !== undefined && { budget: { ...options.budget } }),
  };
  return {
    ...data,
    agents: options.agents,
    actions,
    hash: digest({ ...data, agents: options.agents.map(agentData), actions: actions.map(actionData) }),
  };
}

function agentData(agent: DefinedAgent | AgentDefinition): unknown {
  const { name, description, commTargets, enableEntrypoint, enableInterswarm, canCompleteTasks } = agent;
  const { toolFormat, actions, excludeTools, implementation, budget } = agent;
  return {
    name,
    description,
    commTargets,
    enableEntrypoint,
    enableInterswarm,
    canCompleteTasks,
    toolFormat,
    actions,
    excludeTools,
    mind: implementation.kind,
    origin: "origin" in agent ? agent.origin : undefined,
    budget,
  };
}

function actionData(action: Action): unknown {
  const { name, description, parameters, idempotent, timeLimit, parallel, approvalTimeout } = action;
  const approval = typeof action.approval === "function" ? "predicate" : action.approval;
  return {
    name,
    description,
    parameters,
    idempotent,
    timeLimit,
    parallel,
    approval,
    approvalTimeout,
  };
}

function outlineOf(options: SwarmOptions, entrypoint: string, actions: readonly Action[]): SwarmOutline {
  return {
    name: options.name,
    entrypoint,
    enable_interswarm: options.enableInterswarm ?? false,
    agents: options.agents.map((agent) => ({
      name: agent.name,
      comm_targets: agent.commTargets,
      enable_entrypoint: agent.enableEntrypoint,
      enable_interswarm: agent.enableInterswarm,
      can_complete_tasks: agent.canCompleteTasks,
      actions: agent.actions,
      exclude_tools: agent.excludeTools,
    })),
    breakpoint_tools: options.breakpointTools ?? [],
    exclude_tools: options.excludeTools ?? [],
    actions: actions.map(({ name }, index) => ({ name, at: ["actions", index] })),
    allActionsKnown: true,
  };
}

function chooseEntrypoint(options: SwarmOptions): string {
  if (options.entrypoint !== undefined) return options.entrypoint;
  const open = options.agents.filter((agent) => agent.enableEntrypoint).map(({ name }) => name);
  const [only, ...more] = open;
  if (only !== undefined && more.length === 0) return only;
  const problem: SwarmFileProblem =
    only === undefined
      ? {
          path: "agents",
          message: "no agent is an entrypoint, so users cannot write to the swarm",
          hint: "set enableEntrypoint to true on the agent that receives users' mail",
        }
      : {
          path: "entrypoint",
          message: "several agents are entrypoints and no default is set",
          hint: `set entrypoint to one of ${open.map((name) => `'${name}'`).join(", ")}`,
        };
  throw badSwarm(options.name, [problem]);
}

/** Problems name the file's keys; code uses camelCase. */
function toProblem(finding: UnplacedProblem): SwarmFileProblem {
  return {
    path: formatPath(
      finding.at.map((segment) => (typeof segment === "string" ? inCamelCase(segment) : segment)),
    ),
    message: keysInCamelCase(finding.message),
    ...(finding.hint === undefined ? {} : { hint: keysInCamelCase(finding.hint) }),
  };
}

const FILE_KEYS = [
  "enable_entrypoint",
  "enable_interswarm",
  "can_complete_tasks",
  "comm_targets",
  "breakpoint_tools",
  "exclude_tools",
  "max_cost",
  "max_tokens",
  "max_calls",
] as const;

function keysInCamelCase(text: string): string {
  return FILE_KEYS.reduce((result, key) => result.replaceAll(key, inCamelCase(key)), text);
}

function inCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
