/** `defineSwarm`: agents and actions put together, checked, and given a fingerprint. */
import type { Action } from "../engine/agent.js";
import type { AgentDefinition, SwarmDefinition } from "../engine/definition.js";
import { checkSwarm, type SwarmOutline } from "../mail/swarm-file/check.js";
import { type Finding, formatPath, formatProblems, type Problem } from "../mail/swarm-file/problems.js";
import type { DefinedAgent } from "./agent.js";
import { hashOf } from "./hash.js";

export interface SwarmOptions {
  readonly name: string;
  /** Default: `0.0.0`. */
  readonly version?: string;
  readonly description?: string;
  readonly keywords?: readonly string[];
  /** Whether other swarms may learn of it. Default: false. */
  readonly public?: boolean;
  /** Who gets the mail of users. Default: the one agent with `enableEntrypoint`. */
  readonly entrypoint?: string;
  /** Whether it takes part in mail between swarms. Default: false. */
  readonly enableInterswarm?: boolean;
  readonly agents: readonly (DefinedAgent | AgentDefinition)[];
  /** Actions beyond those that agents bring along. */
  readonly actions?: readonly Action[];
  /** Actions or MAIL tools whose calls wait for a person. */
  readonly breakpointTools?: readonly string[];
  /** MAIL tools that no agent is to have. */
  readonly excludeTools?: readonly string[];
}

/** A swarm defined in code that cannot be used. All its problems are listed. */
export class SwarmDefinitionError extends Error {
  override readonly name = "SwarmDefinitionError";
  readonly code = "bad_swarm";
  readonly problems: readonly Problem[];
  constructor(swarm: string, problems: readonly Problem[]) {
    super(formatProblems(`swarm '${swarm}' cannot be used as it is defined:`, problems));
    this.problems = problems;
  }
}

/** @throws SwarmDefinitionError (code `bad_swarm`) with everything that is wrong. */
export function defineSwarm(options: SwarmOptions): SwarmDefinition {
  const actions = gatherActions(options);
  const outline = outlineOf(options, chooseEntrypoint(options), actions);
  const { errors } = checkSwarm(outline);
  if (errors.length > 0) throw new SwarmDefinitionError(options.name, errors.map(toProblem));
  return assemble(options, outline.entrypoint, actions);
}

/** Actions of the swarm and of its agents; one that several agents share is there once. */
function gatherActions(options: Pick<SwarmOptions, "agents" | "actions">): Action[] {
  const own = options.agents.flatMap((agent) => ("ownActions" in agent ? agent.ownActions : []));
  return [...new Set([...(options.actions ?? []), ...own])];
}

/** Puts together what was checked already. */
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
  };
  return {
    ...data,
    agents: options.agents,
    actions,
    hash: hashOf({ ...data, agents: options.agents.map(agentData), actions: actions.map(actionData) }),
  };
}

function agentData(agent: DefinedAgent | AgentDefinition): unknown {
  const { name, description, commTargets, enableEntrypoint, enableInterswarm, canCompleteTasks } = agent;
  const { toolFormat, actions, excludeTools, mind } = agent;
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
    mind: mind.kind,
    origin: "origin" in agent ? agent.origin : undefined,
  };
}

function actionData(action: Action): unknown {
  const { name, description, parameters, idempotent, timeLimit } = action;
  return { name, description, parameters, idempotent, timeLimit };
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
  const problem: Problem =
    only === undefined
      ? {
          path: "agents",
          message: "no agent is an entrypoint, so no user could write to the swarm",
          hint: "set enableEntrypoint to true on the agent that is to get the mail of users",
        }
      : {
          path: "entrypoint",
          message: "several agents are entrypoints, and none of them is named as the default",
          hint: `set entrypoint to one of ${open.map((name) => `'${name}'`).join(", ")}`,
        };
  throw new SwarmDefinitionError(options.name, [problem]);
}

/** Findings speak of the file's keys; in code the same things are written in camelCase. */
function toProblem(finding: Finding): Problem {
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
] as const;

function keysInCamelCase(text: string): string {
  return FILE_KEYS.reduce((result, key) => result.replaceAll(key, inCamelCase(key)), text);
}

function inCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
